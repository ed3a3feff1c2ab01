"""The checker behind every exercise: not attempted, right, or wrong with a named reason.

A stub that nobody filled in never stops the notebook, so batch runs pass. A wrong answer stops it at once, on
the first input that shows the fault; inputs stand in order, the smallest first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


class WrongAnswer(AssertionError):
    """An exercise whose answer differs from the reference; the text names the likely mistake."""


class Exercise:
    """A function for the learner to write: the right one, inputs to compare on, and the mistakes foreseen.

    Attributes:
        name: Name of the learner's function; the reference's without a leading underscore.
        reference: The right function, with the learner's parameters.
        inputs: Argument tuples, the smallest and easiest to work by hand first.
        mistakes: Sentences that name a mistake, each with the function that makes it.
        tolerance: Largest absolute or relative difference that counts as equal.
    """

    def __init__(
        self,
        reference: Callable[..., Any],
        inputs: Sequence[tuple[Any, ...]],
        mistakes: Mapping[str, Callable[..., Any]],
        tolerance: float = 1e-5,
    ) -> None:
        """Keep the parts, once it is sure that they can tell right from wrong.

        Raises:
            ValueError: Fewer than two mistakes, or one that gives the reference's answer on every input.
        """
        self.name = reference.__name__.lstrip("_")
        self.reference, self.inputs, self.mistakes = reference, list(inputs), dict(mistakes)
        self.tolerance = tolerance
        self._expected = [_call(reference, arguments) for arguments in self.inputs]
        if len(self.mistakes) < 2:
            raise ValueError(
                f"exercise {self.name} names {len(self.mistakes)} mistake; a learner who is stuck "
                "needs more. Name at least 2."
            )
        for sentence, mistake in self.mistakes.items():
            if self._agreements(mistake) == len(self.inputs):
                raise ValueError(
                    f"exercise {self.name}: the mistake {sentence!r} gives the right answer on all "
                    f"{len(self.inputs)} inputs, so nobody would be told. Add an input on which it differs."
                )

    def check(self, attempt: Callable[..., Any]) -> Callable[..., Any]:
        """Compare a learner's function with the reference and say which one the notebook goes on with.

        Args:
            attempt: The learner's function; not attempted while it raises NotImplementedError.

        Returns:
            The attempt when it is right, the reference when there is no attempt yet.

        Raises:
            WrongAnswer: The text has the likely mistake, what was seen and what expected.
        """
        for arguments, expected in zip(self.inputs, self._expected, strict=True):
            try:
                seen = _call(attempt, arguments)
            except NotImplementedError:
                print(f"{self.name}: not attempted yet. The reference solution is used from here on.")
                return self.reference
            if not same(seen, expected, self.tolerance):
                raise WrongAnswer(
                    f"{self.name}: {self._reason(seen, expected, arguments, attempt)}\n"
                    f"  input     {', '.join(_show(argument) for argument in arguments)}\n"
                    f"  yours     {_show(seen)}\n"
                    f"  expected  {_show(expected)}"
                )
        print(f"{self.name}: right on {len(self.inputs)} inputs. Your function is used from here on.")
        return attempt

    def _agreements(self, function: Callable[..., Any], other: Callable[..., Any] | None = None) -> int:
        """Count the inputs on which a function answers as another one, the reference unless told."""
        answers = self._expected if other is None else [_answer(other, a) for a in self.inputs]
        own = [_answer(function, arguments) for arguments in self.inputs]
        return sum(same(x, y, self.tolerance) for x, y in zip(own, answers, strict=True))

    def _reason(
        self, seen: Any, expected: Any, arguments: tuple[Any, ...], attempt: Callable[..., Any]
    ) -> str:
        """Name the mistake that explains this answer; of several, the one that fits most inputs."""
        fitting = [
            sentence
            for sentence, mistake in self.mistakes.items()
            if same(seen, _answer(mistake, arguments), self.tolerance)
        ]
        if fitting:
            return max(fitting, key=lambda sentence: self._agreements(self.mistakes[sentence], attempt))
        return _difference(seen, expected, self.tolerance)


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


def _call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    # Copies, because an attempt that changes its arguments in place must not spoil the comparison.
    return function(*copy.deepcopy(arguments))


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return a function's answer, or the error it stops with: neither equals anything else then."""
    try:
        return _call(function, arguments)
    except Exception as error:
        return error


def _difference(seen: Any, expected: Any, tolerance: float) -> str:
    """Describe a wrong answer that no foreseen mistake explains."""
    if seen is None and expected is not None:
        return "the answer is None; is the return missing?"
    seen_array, expected_array = _array(seen), _array(expected)
    if seen_array is not None and expected_array is not None:
        if seen_array.shape != expected_array.shape:
            return f"the shape is {seen_array.shape}, expected {expected_array.shape}."
        if same(-seen_array, expected_array, tolerance):
            return "the sign is flipped."
    elif type(seen) is not type(expected):
        return f"the answer is a {type(seen).__name__}, expected a {type(expected).__name__}."
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
