"""Searches benchmark messages among training messages: exact, masked and near duplicates, disguises too.

Messages are first made comparable (compatibility forms, accents, look-alike letters, punctuation), then
names, products and numbers are masked, then character 5-grams are compared. A near duplicate shares 60 % of
all grams, or is contained in the other message to 85 %.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import yaml

from rlcas_utils.config import project_root

NEAR: float = 0.60
CONTAINED: float = 0.85
_GRAM: int = 5
_LOOKALIKE = str.maketrans("авеёгікмнорсстухѕјαβεικνορτυχ", "abeerikmhopcctyxsjabeiknoptux")


class Leak(NamedTuple):
    """One training message that repeats a benchmark message."""

    kind: str
    benchmark: str
    training: str
    score: float


def fold(text: str) -> str:
    """Return the message without case, accents, look-alike letters, punctuation and spacing."""
    plain = unicodedata.normalize("NFKD", text).lower().translate(_LOOKALIKE)
    plain = "".join(c for c in plain if unicodedata.category(c) not in ("Mn", "Cf"))
    return " ".join(re.findall(r"[a-z]+|[0-9]+", plain.replace("'", "")))


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    seeds = yaml.safe_load((project_root() / "data/desk/world.yaml").read_text(encoding="utf-8"))
    models = [line.split("|")[0] for line in seeds["products"].splitlines()]
    words = [*seeds["first_names"], *seeds["last_names"], *seeds["cities"], *models, *seeds["carriers"]]
    return frozenset(part.lower() for word in words for part in word.split())


def masked(text: str) -> str:
    """Return the folded message with e-mail addresses, names, products and numbers replaced by `x`."""
    without_mail = re.sub(r"\S+@\S+", " x ", unicodedata.normalize("NFKC", text))
    words = [("x" if word in _names() or word.isdigit() else word) for word in fold(without_mail).split()]
    return " ".join(
        word for word, before in zip(words, ["", *words], strict=False) if (word, before) != ("x", "x")
    )


def _grams(text: str) -> set[str]:
    padded = f"  {text}  "
    return {padded[i : i + _GRAM] for i in range(len(padded) - _GRAM + 1)}


def find_leaks(benchmark: Sequence[str], training: Sequence[str]) -> list[Leak]:
    """Compare every benchmark message with every training message.

    Args:
        benchmark: Messages that must stay unseen.
        training: Messages used for training, prompting or validation.

    Returns:
        One entry per offending pair with its strongest kind: `exact`, `masked`, `near` or `contained`.
    """
    grams = [_grams(masked(text)) for text in benchmark]
    postings: defaultdict[str, list[int]] = defaultdict(list)
    for index, own in enumerate(grams):
        for gram in own:
            postings[gram].append(index)
    leaks = []
    for text in training:
        theirs = _grams(masked(text))
        shared = Counter(index for gram in theirs for index in postings.get(gram, ()))
        for index, count in shared.items():
            leak = _judge(benchmark[index], text, count, len(grams[index]), len(theirs))
            leaks += [leak] if leak else []
    return leaks


def _judge(left: str, right: str, shared: int, size_left: int, size_right: int) -> Leak | None:
    jaccard = shared / (size_left + size_right - shared)
    contained = shared / min(size_left, size_right)
    if jaccard < NEAR and (contained < CONTAINED or min(size_left, size_right) < 20):
        return None
    if fold(left) == fold(right):
        return Leak("exact", left, right, 1.0)
    if masked(left) == masked(right):
        return Leak("masked", left, right, 1.0)
    return (
        Leak("near", left, right, jaccard) if jaccard >= NEAR else Leak("contained", left, right, contained)
    )
