"""The message as numbers: any function from texts to vectors can take the text block of the observation.

The desk itself hashes the words of a message, which needs no model. A policy may read something better in
that place. What it reads is a `TextFunction`; the other blocks of the observation stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from rlcas_utils.desk import features
from rlcas_utils.desk.env import DeskEnv
from rlcas_utils.desk.ticket import Ticket

TextFunction = Callable[[Sequence[str]], NDArray[np.float32]]
"""Messages, N of them, to vectors of shape (N, K)."""

NUM_TEXT = features.SLICES["characters"].stop  # the text blocks come first in the observation


def with_text(observation: NDArray[np.float32], text_K: NDArray[np.float32]) -> NDArray[np.float32]:
    """Put a message's vector in place of the hashed text.

    Args:
        observation: As the desk gives it, shape (O,).
        text_K: Vector of the message, shape (K,).

    Returns:
        The vector, then the rest unchanged, shape (O - NUM_TEXT + K,).
    """
    return np.concatenate([text_K, observation[NUM_TEXT:]])


def table(function: TextFunction, queries: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """Compute the vectors of many messages once.

    Args:
        function: What to compute.
        queries: Messages; repetitions are computed once.

    Returns:
        Vector by message.
    """
    distinct = sorted(set(queries))
    return dict(zip(distinct, function(distinct), strict=True))


class DeskWithText(gymnasium.ObservationWrapper):
    """The desk with prepared text vectors in its observation."""

    def __init__(self, env: gymnasium.Env, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Wrap a desk.

        Args:
            env: Desk environment.
            vectors: Vector by message, for all messages of the environment's split.
        """
        super().__init__(env)
        self.vectors = vectors
        shape = (features.OBSERVATION_SIZE - NUM_TEXT + len(next(iter(vectors.values()))),)
        self.observation_space = spaces.Box(-np.inf, np.inf, shape, np.float32)

    def observation(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Replace the text block of the desk's observation."""
        return with_text(observation, self.vectors[self.unwrapped.episode.query])


def make_training_desk(vectors: Mapping[str, NDArray[np.float32]]) -> gymnasium.Env:
    """Make the environment that the expert is trained in; importable by a fresh process.

    Args:
        vectors: From `table`; training tickets without a vector are left out.

    Returns:
        Desk of the training split.
    """
    desk = DeskEnv(split="train")
    desk.tickets = {name: ticket for name, ticket in desk.tickets.items() if ticket.query in vectors}
    return DeskWithText(desk, vectors)


def hashed_components(queries: Sequence[str], num_components: int) -> TextFunction:
    """Fit principal directions of the hashed text: latent semantic analysis, without any label.

    Args:
        queries: Training messages; each distinct one counts once.
        num_components: Directions K kept.

    Returns:
        A function whose vectors have length one on average.

    Raises:
        ValueError: If there are fewer messages than components.

    Source: Deerwester et al. 1990, Indexing by Latent Semantic Analysis.
    """
    distinct = sorted(set(queries))
    if not 1 <= num_components <= min(len(distinct), NUM_TEXT):
        raise ValueError(
            f"num_components is {num_components} with {len(distinct)} queries of {NUM_TEXT} features; there "
            "are not that many directions. Set TEXT_COMPONENTS lower."
        )
    text_NT = np.array([features.text_features(query) for query in distinct])
    mean_T = text_NT.mean(axis=0)
    _, _, directions_KT = torch.linalg.svd(torch.from_numpy(text_NT - mean_T), full_matrices=False)
    basis_TK = directions_KT[:num_components].T.numpy()
    # A singular vector's sign is arbitrary; fixed, so that equal data gives equal numbers.
    basis_TK = basis_TK * np.sign(basis_TK[np.abs(basis_TK).argmax(axis=0), np.arange(num_components)])
    basis_TK = basis_TK / np.linalg.norm((text_NT - mean_T) @ basis_TK, axis=1).mean()

    def components(texts: Sequence[str]) -> NDArray[np.float32]:
        return (np.array([features.text_features(text) for text in texts]) - mean_T) @ basis_TK

    return components


def linear_probe(
    train_ND: NDArray[np.float32], labels_N: NDArray[np.int64], test_MD: NDArray[np.float32]
) -> NDArray[np.int64]:
    """Guess classes from vectors by logistic regression: how much a linear reader gets out of them.

    Args:
        train_ND: Training vectors; scaled here to zero mean and unit overall spread.
        labels_N: Their classes, 0 .. C - 1.
        test_MD: Vectors to judge.

    Returns:
        Guessed classes, shape (M,).
    """
    mean_D = train_ND.mean(axis=0)
    scale = np.sqrt(((train_ND - mean_D) ** 2).sum(axis=1).mean()) / 8.0
    x_ND, y_N = torch.from_numpy((train_ND - mean_D) / scale), torch.from_numpy(labels_N)
    layer = torch.nn.Linear(x_ND.shape[1], int(labels_N.max()) + 1)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimiser = torch.optim.LBFGS(layer.parameters(), max_iter=120)

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        value = torch.nn.functional.cross_entropy(layer(x_ND), y_N) + 2e-4 * layer.weight.square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    with torch.no_grad():
        return layer(torch.from_numpy((test_MD - mean_D) / scale)).argmax(dim=1).numpy()


def kind_guesses(read: TextFunction, train: Sequence[Ticket], test: Sequence[Ticket]) -> list[bool]:
    """Let a linear reader of a text function's vectors name the kind of request.

    Args:
        read: Text function to judge.
        train: Labelled tickets.
        test: Tickets to guess.

    Returns:
        Per test ticket, whether the kind was named right.
    """
    kinds = sorted({ticket.intent for ticket in train})
    labels = np.array([kinds.index(ticket.intent) for ticket in train])
    vectors = [read([ticket.query for ticket in tickets]) for tickets in (train, test)]
    guesses = linear_probe(vectors[0], labels, vectors[1])
    return [kinds[guess] == ticket.intent for guess, ticket in zip(guesses, test, strict=True)]
