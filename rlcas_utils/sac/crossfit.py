"""Encoders tuned on folds, so that every training message is read by one that never saw its wording.

A policy that is trained on an encoder's readings of the encoder's own training messages learns that readings
are always right. On new messages they are not. With folds it meets wrong readings in training, as often as it
will at the desk, and can learn when to doubt one.

Source: Wolpert 1992, Stacked generalization, section 2 (a learner on top of out-of-fold guesses).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.sac.encoder import SentenceEncoder
from rlcas_utils.sac.encoder_training import tune_encoder
from rlcas_utils.sac.text import table


class CrossFittedEncoder:
    """Reads a new message with the mean of all its encoders, a training message with one of them."""

    def __init__(self, encoders: Sequence[SentenceEncoder]) -> None:
        """Keep the encoders.

        Args:
            encoders: The k-th was tuned without fold k; a single one was tuned on everything.
        """
        self.encoders = list(encoders)

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Mean probability of each kind, shape (N, len(KINDS)), for messages that nobody was tuned on."""
        return np.mean([encoder.probabilities(texts) for encoder in self.encoders], axis=0, dtype=np.float32)

    def training_vectors(self, tickets: Sequence[Ticket]) -> dict[str, NDArray[np.float32]]:
        """Read training messages, each with the encoder that was tuned without its wording.

        Args:
            tickets: Training tickets. A single encoder was tuned on them all and reads what it knows.

        Returns:
            Probabilities of the kinds, shape (len(KINDS),), by message.
        """
        vectors = {}
        for k, encoder in enumerate(self.encoders):
            own = [ticket.query for ticket in tickets if fold(ticket, len(self.encoders)) == k]
            vectors |= table(encoder.probabilities, own) if own else {}
        return vectors


def fold(ticket: Ticket, num_folds: int) -> int:
    """Fold of a ticket: all messages of one template share it, and each kind of request is spread over all.

    Args:
        ticket: A ticket made from a template.
        num_folds: Number of folds.

    Returns:
        A number from 0 to num_folds - 1.

    Raises:
        ValueError: If the ticket was written by hand, as those of the benchmark are.
    """
    if ticket.template_id is None:
        raise ValueError(
            f"ticket {ticket.ticket_id} has no template, so it was written by hand, for the benchmark; "
            "no encoder may be tuned on it. Pass tickets of the training split."
        )
    return int(ticket.template_id.rsplit("/", 1)[1]) % num_folds


def tune_folds(
    tickets: Sequence[Ticket],
    folder: Path,
    *,
    num_folds: int,
    rank: int,
    num_steps: int,
    learning_rate: float,
    seed: int,
) -> CrossFittedEncoder:
    """Tune one encoder per fold on the tickets of all other folds; a second call continues from the folder.

    Args:
        tickets: Training tickets.
        folder: Checkpoints live here.
        num_folds: Number of encoders; 1 tunes a single one on everything.
        rank: Rank of their adapters.
        num_steps: Optimiser steps of each.
        learning_rate: Peak of the linear schedule.
        seed: Seed of the first encoder; the others follow.

    Returns:
        The tuned encoders.
    """
    encoders = []
    for k in range(num_folds):
        encoder = SentenceEncoder(rank, seed=seed + k)
        others = [ticket for ticket in tickets if num_folds == 1 or fold(ticket, num_folds) != k]
        how = {"num_steps": num_steps, "learning_rate": learning_rate, "seed": seed + k}
        tune_encoder(encoder, others, folder / f"fold_{k}", **how)
        encoders.append(encoder)
    return CrossFittedEncoder(encoders)
