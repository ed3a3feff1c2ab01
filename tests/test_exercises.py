import numpy as np
import pytest
import torch

from rlcas_utils.exercises import Exercise, WrongAnswer


def soft_value(pi, q):
    return sum(p * v for p, v in zip(pi, q, strict=True))


def mean_value(pi, q):
    return soft_value(pi, q) / len(pi)


def sum_of_values(pi, q):
    return sum(q)


INPUTS = [([1.0], [3.0]), ([0.5, 0.5], [1.0, 2.0])]
MISTAKES = {
    "you took the mean over actions; the probabilities are the weights already.": mean_value,
    "you left the probabilities out.": sum_of_values,
}
EXERCISE = Exercise(reference=soft_value, inputs=INPUTS, mistakes=MISTAKES)
checked = EXERCISE.check


def stub(pi, q):
    raise NotImplementedError


def test_not_attempted_goes_on_with_the_reference(capsys):
    assert checked(stub) is soft_value
    assert "not attempted yet" in capsys.readouterr().out


def test_right_goes_on_with_the_learners_function(capsys):
    def attempt(pi, q):
        return float(np.dot(pi, q))

    assert checked(attempt) is attempt
    assert "right on 2 inputs" in capsys.readouterr().out


def test_wrong_names_the_mistake_on_the_smallest_failing_input():
    with pytest.raises(WrongAnswer) as caught:
        checked(mean_value)
    text = str(caught.value)
    assert "mean over actions" in text
    assert "[0.5, 0.5], [1.0, 2.0]" in text
    assert "yours     0.75" in text
    assert "expected  1.5" in text


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda pi, q: -soft_value(pi, q), "sign is flipped"),
        (lambda pi, q: np.zeros(2), r"shape is \(2,\), expected \(\)"),
        (lambda pi, q: "text", "is a str, expected a float"),
        (lambda pi, q: None, "is the return missing"),
        (lambda pi, q: 17.0, "none of the ways foreseen"),
    ],
)
def test_unforeseen_mistakes_are_described(attempt, reason):
    with pytest.raises(WrongAnswer, match=reason):
        checked(attempt)


def test_a_wrong_text_is_no_wrong_type():
    exercise = Exercise(str.upper, [("a",)], {"kept": str.lower, "empty": lambda text: ""})
    with pytest.raises(WrongAnswer, match="none of the ways foreseen"):
        exercise.check(lambda text: "B")


def test_of_two_mistakes_that_fit_the_one_that_fits_everywhere_is_named():
    """At one action the mean and the sum of two copies agree; the second input tells them apart."""
    mistakes = {
        "first": lambda x: 2.0 if x == 1 else 0.0,
        "second": lambda x: 2.0 * x,
    }
    exercise = Exercise(reference=lambda x: x, inputs=[(1,), (3,)], mistakes=mistakes)
    with pytest.raises(WrongAnswer, match="second"):
        exercise.check(lambda x: 2.0 * x)
    with pytest.raises(WrongAnswer, match="first"):
        exercise.check(mistakes["first"])


def test_an_error_in_the_learners_function_is_shown_as_it_is():
    def broken(pi, q):
        return pi["0"]

    with pytest.raises(TypeError, match="list indices"):
        checked(broken)


def test_a_mistake_that_stops_with_an_error_hides_no_other():
    mistakes = {"stops": lambda pi, q: pi["0"], "mean": mean_value}
    exercise = Exercise(reference=soft_value, inputs=INPUTS, mistakes=mistakes)
    with pytest.raises(WrongAnswer, match="mean"):
        exercise.check(mean_value)


def test_an_exercise_needs_two_mistakes_that_its_inputs_show():
    with pytest.raises(ValueError, match="exercise soft_value names 1 mistake"):
        Exercise(soft_value, INPUTS, {"mean": mean_value})
    with pytest.raises(ValueError, match="'mean' gives the right answer on all 1 inputs"):
        Exercise(soft_value, INPUTS[:1], {"zero": lambda pi, q: 0.0, "mean": mean_value})


def test_the_learners_function_is_named_like_the_reference_without_its_underscore():
    def _tenfold(x):
        return 10 * x

    assert Exercise(_tenfold, [(1,)], {"a": lambda x: x, "b": lambda x: 0}).name == "tenfold"


def test_arguments_are_copies_and_tensors_compare():
    def double(x_B):
        return x_B * 2

    def in_place(x_B):
        x_B *= 2
        return x_B

    inputs = [(torch.ones(2),)]
    exercise = Exercise(double, inputs, {"squared": lambda x_B: x_B**2, "half": lambda x_B: x_B / 2})
    assert exercise.check(in_place) is in_place
    assert inputs[0][0].tolist() == [1.0, 1.0]
