"""The checker behind every exercise: not attempted, right, or wrong with a named reason.

A stub that nobody filled in never stops the notebook, so batch runs pass. A wrong answer stops it at once, on
the smallest input that shows the fault.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


class WrongAnswer(AssertionError):
    """An exercise whose answer differs from the reference; the text names the likely mistake."""


def check(
    attempt: Callable[..., Any],
    *,
    reference: Callable[..., Any],
    inputs: Sequence[tuple[Any, ...]],
    mistakes: Mapping[str, Callable[..., Any]],
    tolerance: float = 1e-5,
) -> Callable[..., Any]:
    """Compare a learner's function with the reference and say which one the notebook goes on with.

    Args:
        attempt: The learner's function. It counts as not attempted while it raises NotImplementedError or
            returns None or `...` on the first input.
        reference: The right function.
        inputs: Argument tuples, the smallest and easiest to work by hand first.
        mistakes: Sentences that name a mistake, each with the function that makes it.
        tolerance: Largest absolute or relative difference that counts as equal.

    Returns:
        The attempt when it is right, the reference when there is no attempt yet.

    Raises:
        WrongAnswer: The attempt is wrong; the text has the likely mistake, what was seen and what expected.
    """
    name = reference.__name__
    if not _is_attempted(attempt, inputs[0]):
        print(f"{name}: not attempted yet. The reference solution is used from here on.")
        return reference
    for arguments in inputs:
        expected = _call(reference, arguments)
        seen = _call(attempt, arguments)
        if not same(seen, expected, tolerance):
            reason = _likely_mistake(seen, expected, arguments, mistakes, tolerance)
            raise WrongAnswer(
                f"{name}: {reason}\n"
                f"  input     {', '.join(_show(argument) for argument in arguments)}\n"
                f"  yours     {_show(seen)}\n"
                f"  expected  {_show(expected)}"
            )
    print(f"{name}: right on {len(inputs)} inputs. Your function is used from here on.")
    return attempt


def same(left: Any, right: Any, tolerance: float) -> bool:
    """Tell whether two answers are equal: numbers and arrays within a tolerance, the rest exactly."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[k], right[k], tolerance) for k in right)
    if isinstance(left, str) or isinstance(right, str):
        return bool(left == right)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(
            same(x, y, tolerance) for x, y in zip(left, right, strict=True)
        )
    left_array, right_array = _array(left), _array(right)
    if left_array is None or right_array is None:
        return type(left) is type(right) and bool(left == right)
    if left_array.shape != right_array.shape:
        return False
    return bool(np.allclose(left_array, right_array, rtol=tolerance, atol=tolerance, equal_nan=True))


def _is_attempted(attempt: Callable[..., Any], arguments: tuple[Any, ...]) -> bool:
    try:
        answer = _call(attempt, arguments)
    except NotImplementedError:
        return False
    return answer is not None and answer is not Ellipsis


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    # Copies, because an attempt that changes its arguments in place must not spoil the comparison.
    return function(*copy.deepcopy(arguments))


def _likely_mistake(
    seen: Any,
    expected: Any,
    arguments: tuple[Any, ...],
    mistakes: Mapping[str, Callable[..., Any]],
    tolerance: float,
) -> str:
    for sentence, function in mistakes.items():
        if same(seen, _call(function, arguments), tolerance):
            return sentence
    seen_array, expected_array = _array(seen), _array(expected)
    if seen_array is None or expected_array is None:
        return f"the answer is a {type(seen).__name__}, expected a {type(expected).__name__}."
    if seen_array.shape != expected_array.shape:
        return f"the shape is {seen_array.shape}, expected {expected_array.shape}."
    if same(-seen_array, expected_array, tolerance):
        return "the sign is flipped."
    return "the value differs, in none of the ways foreseen; work the input below by hand."


def _array(value: Any) -> np.ndarray | None:
    """Return a number, list, array or tensor as floats; None for anything else."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None


def _show(value: Any) -> str:
    array = None if isinstance(value, str | Mapping | list | tuple | bool | int) else _array(value)
    if array is None:
        return repr(value)
    return np.array2string(array, precision=5, separator=", ", threshold=40)
