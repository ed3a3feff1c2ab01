"""Evenly spaced choices, worked out by hand."""

import pytest

from rlcas_utils.spacing import evenly


@pytest.mark.parametrize(
    ("length", "at_most", "expected"),
    [
        (10, 4, [0, 2, 5, 7]),
        (8, 4, [0, 2, 4, 6]),
        (7, 3, [0, 2, 4]),
        (3, 5, [0, 1, 2]),
        (5, 1, [0]),
        (0, 2, []),
    ],
)
def test_choices_are_evenly_spaced(length, at_most, expected):
    assert evenly(range(length), at_most) == expected


def test_taking_nothing_is_refused():
    with pytest.raises(ValueError, match="at_most is 0"):
        evenly([1, 2], 0)
