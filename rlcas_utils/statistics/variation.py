"""Where the spread of a score comes from: training again, another ticket, another try at the same ticket.

An interval over tickets says what another choice of tickets would change. It does not say what training again
with another seed would change, and more trials do not help there. The two are estimated apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Variation:
    """Standard deviations of a score by cause, in the unit of the score.

    Attributes:
        mean: over training seeds, tickets and trials.
        training_sd: between training seeds, the same tickets played; NaN for one seed.
        ticket_sd: between tickets, the same for all seeds; NaN for one ticket.
        trial_sd: between trials of one trained agent on one ticket; NaN for one trial.
        seeds: number of training seeds.
        tickets: number of tickets.
        trials: trials of each seed on each ticket.
    """

    mean: float
    training_sd: float
    ticket_sd: float
    trial_sd: float
    seeds: int
    tickets: int
    trials: int


def variation(scores_SNK: np.ndarray) -> Variation:
    """Split the spread of scores into training, ticket and trial.

    Args:
        scores_SNK: score of each of S training seeds on each of the same N tickets in each of K trials; shape
            (S, N) stands for one trial.

    Returns:
        The three standard deviations. A cause whose share is smaller than chance alone would make it is 0.

    Raises:
        ValueError: for scores that are not all there.

    Source: Searle, Casella and McCulloch (1992), Variance components, chapter 4, two-way crossed model.
    """
    scores = np.asarray(scores_SNK, dtype=float)
    scores = scores[:, :, None] if scores.ndim == 2 else scores
    if scores.ndim != 3 or 0 in scores.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"scores have shape {scores.shape} or gaps; the causes can be told apart only when every "
            "training seed played every ticket equally often. Keep the shared tickets or play the rest."
        )
    seeds, tickets, trials = scores.shape
    grand, cell_SN = scores.mean(), scores.mean(axis=2)
    seed_S, ticket_N = cell_SN.mean(axis=1), cell_SN.mean(axis=0)
    left_SN = cell_SN - seed_S[:, None] - ticket_N[None, :] + grand
    chance = trials * _over((left_SN**2).sum(), (seeds - 1) * (tickets - 1))
    between_seeds = tickets * trials * _over(((seed_S - grand) ** 2).sum(), seeds - 1)
    between_tickets = seeds * trials * _over(((ticket_N - grand) ** 2).sum(), tickets - 1)
    within = _over(((scores - cell_SN[:, :, None]) ** 2).sum(), seeds * tickets * (trials - 1))
    return Variation(
        mean=float(grand),
        training_sd=_root((between_seeds - chance) / (tickets * trials)),
        ticket_sd=_root((between_tickets - (chance if seeds > 1 else 0.0)) / (seeds * trials)),
        trial_sd=_root(within),
        seeds=seeds,
        tickets=tickets,
        trials=trials,
    )


def _over(total: float, freedom: int) -> float:
    return float(total) / freedom if freedom else math.nan


def _root(variance: float) -> float:
    return math.nan if math.isnan(variance) else math.sqrt(max(0.0, variance))
