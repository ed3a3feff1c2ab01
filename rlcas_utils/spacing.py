"""A few taken from many, evenly spaced: neighbours in a list share a template or a fault."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def evenly(items: Sequence[T], at_most: int) -> list[T]:
    """Take items at equal distances, the first among them.

    Args:
        items: In an order that puts like beside like.
        at_most: How many to take; all where there are no more.

    Raises:
        ValueError: ``at_most`` is below 1.
    """
    if at_most < 1:
        raise ValueError(f"at_most is {at_most}; nothing would be left to measure. Take at least 1.")
    count = min(at_most, len(items))
    return [items[i * len(items) // count] for i in range(count)]
