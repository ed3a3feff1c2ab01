"""Latent semantic analysis of the text features: many hashed counts in, a few dense directions out.

The hashed text makes up most of the observation and most of the arithmetic of an update. Its leading
principal directions, fitted on the training queries without any label, keep what the wordings share; the
first layer becomes several times smaller and unseen wordings fare no worse.

Source: Deerwester et al. 1990, Indexing by Latent Semantic Analysis.
"""

from __future__ import annotations

from collections.abc import Iterable

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from rlcas_utils.desk import features
from rlcas_utils.desk.env import DeskEnv
from rlcas_utils.desk.ticket import Ticket

NUM_TEXT = features.SLICES["characters"].stop  # the text blocks come first in the observation


class TextCompression:
    """Replaces the text block of an observation by its leading principal components."""

    def __init__(self, mean_T: NDArray[np.float32], basis_TK: NDArray[np.float32]) -> None:
        """Keep the fitted numbers.

        Args:
            mean_T: Mean text features of the training queries, shape (T,).
            basis_TK: Principal directions as columns, scaled, shape (T, K).

        Raises:
            ValueError: If the numbers were fitted to another text block.
        """
        if mean_T.shape != (NUM_TEXT,) or basis_TK.shape[0] != NUM_TEXT:
            raise ValueError(
                f"text compression has shapes {mean_T.shape} and {basis_TK.shape}, the desk's text block has "
                f"{NUM_TEXT} columns; the policy would read noise. Run notebook 02_sac_training again."
            )
        self.mean_T, self.basis_TK = mean_T, basis_TK
        self.observation_size = features.OBSERVATION_SIZE - NUM_TEXT + basis_TK.shape[1]

    def __call__(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compress one observation.

        Args:
            observation: As the desk gives it, shape (O,).

        Returns:
            Components of the text, then the rest unchanged, shape (observation_size,).
        """
        components = (observation[:NUM_TEXT] - self.mean_T) @ self.basis_TK
        return np.concatenate([components, observation[NUM_TEXT:]])


def fit_compression(tickets: Iterable[Ticket], num_components: int) -> TextCompression:
    """Fit the principal directions of the queries' text features; no label and no reward is looked at.

    Args:
        tickets: Training tickets; each distinct query counts once.
        num_components: Directions K kept.

    Returns:
        The compression, scaled so that compressed texts have about length one.

    Raises:
        ValueError: If there are fewer queries than components.
    """
    queries = sorted({ticket.query for ticket in tickets})
    if not 1 <= num_components <= min(len(queries), NUM_TEXT):
        raise ValueError(
            f"num_components is {num_components} with {len(queries)} queries of {NUM_TEXT} features; there "
            "are not that many directions. Set TEXT_COMPONENTS lower."
        )
    text_NT = np.array([features.text_features(query) for query in queries])
    mean_T = text_NT.mean(axis=0)
    # A singular vector's sign is arbitrary; it is fixed below so that equal data gives equal files.
    _, _, directions_KT = torch.linalg.svd(torch.from_numpy(text_NT - mean_T), full_matrices=False)
    basis_TK = directions_KT[:num_components].T.numpy()
    basis_TK = basis_TK * np.sign(basis_TK[np.abs(basis_TK).argmax(axis=0), np.arange(num_components)])
    lengths = np.linalg.norm((text_NT - mean_T) @ basis_TK, axis=1)
    return TextCompression(mean_T, np.ascontiguousarray(basis_TK / lengths.mean()))


class CompressedDesk(gymnasium.ObservationWrapper):
    """The desk with compressed text in its observation."""

    def __init__(self, env: gymnasium.Env, compression: TextCompression) -> None:
        """Wrap a desk.

        Args:
            env: Desk environment.
            compression: Fitted on training queries.
        """
        super().__init__(env)
        self.compression = compression
        shape = (compression.observation_size,)
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)

    def observation(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compress the desk's observation."""
        return self.compression(observation)


def make_training_desk(compression: TextCompression) -> gymnasium.Env:
    """Make the environment that the expert is trained in; importable by a fresh process.

    Args:
        compression: Fitted on training queries.

    Returns:
        Desk of the training split with compressed observations.
    """
    return CompressedDesk(DeskEnv(split="train"), compression)
