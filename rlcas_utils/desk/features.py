"""The vector form of an episode: hashed text of the message, then what the services revealed.

Blocks (see `SLICES`): words, character 3- to 5-grams (each hashed with CRC-32, signed,
L2-normalised), identifiers written in the message, facts, services called, services failed, last action,
adviser's hint, step fraction. Identifiers and digits are masked in the text. The category is not in it.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlcas_utils.desk.actions import ACTIONS, SERVICES
from rlcas_utils.desk.facts import FACTS
from rlcas_utils.desk.identifiers import Identifiers, normalise

if TYPE_CHECKING:
    from rlcas_utils.desk.episode import Episode

NUM_WORD: int = 512
NUM_CHAR: int = 512
_IDENTIFIERS = tuple(Identifiers.__dataclass_fields__)


def _slices() -> dict[str, slice]:
    sizes = {
        "words": NUM_WORD,
        "characters": NUM_CHAR,
        "identifiers": len(_IDENTIFIERS),
        "facts": len(FACTS),
        "called": len(SERVICES),
        "failed": len(SERVICES),
        "last_action": len(ACTIONS),
        "hint": len(ACTIONS),
        "step_fraction": 1,
    }
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


SLICES: dict[str, slice] = _slices()
OBSERVATION_SIZE: int = SLICES["step_fraction"].stop
_FACT_AT = {fact: SLICES["facts"].start + i for i, fact in enumerate(FACTS)}
_CALLED_AT = {name: SLICES["called"].start + i for i, name in enumerate(SERVICES)}
_FAILED_AT = {name: SLICES["failed"].start + i for i, name in enumerate(SERVICES)}


def mask(text: str) -> str:
    """Lower-case a message and mask addresses, numbers and codes, so that no record can be recognised."""
    plain = re.sub(r"\S+@\S+", " emailaddress ", normalise(text))
    plain = re.sub(r"\bpx[ -]?\d{8}\b", " parcelnumber ", plain)
    plain = re.sub(r"\binv[ -]?\d{5}\b", " invoicenumber ", plain)
    plain = re.sub(r"\b[ef][ -]?\d{2}\b", " faultcode ", plain)
    plain = re.sub(r"\b\d{3}[ -]?\d{3}\b", " ordernumber ", plain)
    return re.sub(r"\d+", "0", plain)


def hashed(grams: list[str], size: int) -> NDArray[np.float32]:
    """Add +1 or -1 per gram at its hashed place and scale to length 1.

    Args:
        grams: Words, word pairs or character groups; repeats add up.
        size: Length of the vector.

    Returns:
        Shape (size,), of length 1, or 0 if there are no grams.

    Source: Weinberger et al. (2009), section 2.
    """
    vector = np.zeros(size, dtype=np.float32)
    for gram in grams:
        code = zlib.crc32(gram.encode())
        vector[(code >> 1) % size] += 1.0 if code & 1 else -1.0
    norm = float(np.linalg.norm(vector))
    return vector / norm if norm else vector


def text_features(text: str) -> NDArray[np.float32]:
    """Hash a message.

    Args:
        text: The customer's message.

    Returns:
        Shape (NUM_WORD + NUM_CHAR,), each half of length 1 (or 0 for empty text), values in [-1, 1].
    """
    words = re.findall(r"[a-z']+|0|[!?]", mask(text))
    padded = [f" {word} " for word in words if len(word) > 1]
    chars = [p[i : i + n] for p in padded for n in (3, 4, 5) for i in range(len(p) - n + 1)]
    return np.concatenate([hashed(words, NUM_WORD), hashed(chars, NUM_CHAR)])


@lru_cache(maxsize=8192)
def _opening(query: str, written: Identifiers) -> NDArray[np.float32]:
    """The part of the vector that does not change during an episode."""
    vector = np.zeros(OBSERVATION_SIZE, dtype=np.float32)
    vector[: NUM_WORD + NUM_CHAR] = text_features(query)
    vector[SLICES["identifiers"]] = [bool(getattr(written, name)) for name in _IDENTIFIERS]
    return vector


def observation(episode: Episode) -> NDArray[np.float32]:
    """Return what an agent may see of an episode as one vector.

    Args:
        episode: The running (or finished) episode.

    Returns:
        Fresh array of shape (OBSERVATION_SIZE,), float32, values in [-1, 1].
    """
    vector = _opening(episode.query, episode.ticket.written).copy()
    flags = [_FACT_AT[f"{name}={value}"] for name, value in episode.facts.items()]
    flags += [_CALLED_AT[name] for name in episode.called]
    flags += [_FAILED_AT[name] for name in episode.failed]
    if episode.history and (action := episode.history[-1].action) is not None:
        flags.append(SLICES["last_action"].start + action)
    if episode.hint is not None:
        flags.append(SLICES["hint"].start + episode.hint)
    vector[flags] = 1.0
    vector[-1] = min(1.0, len(episode.history) / episode.max_steps)
    return vector
