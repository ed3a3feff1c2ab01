import numpy as np
import pytest
import torch

from rlcas_utils.exercises import WrongAnswer, check


def soft_value(pi, q):
    return sum(p * v for p, v in zip(pi, q, strict=True))


def mean_value(pi, q):
    return soft_value(pi, q) / len(pi)


INPUTS = [([1.0], [3.0]), ([0.5, 0.5], [1.0, 2.0])]
MISTAKES = {"you took the mean over actions; the probabilities are the weights already.": mean_value}


def checked(attempt):
    return check(attempt, reference=soft_value, inputs=INPUTS, mistakes=MISTAKES)


def stub(pi, q):
    raise NotImplementedError


@pytest.mark.parametrize("empty", [stub, lambda pi, q: None, lambda pi, q: ...])
def test_not_attempted_goes_on_with_the_reference(empty, capsys):
    assert checked(empty) is soft_value
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
        (lambda pi, q: 17.0, "none of the ways foreseen"),
    ],
)
def test_unforeseen_mistakes_are_described(attempt, reason):
    with pytest.raises(WrongAnswer, match=reason):
        checked(attempt)


def test_arguments_are_copies_and_tensors_compare():
    def double(x_B):
        return x_B * 2

    def in_place(x_B):
        x_B *= 2
        return x_B

    inputs = [(torch.ones(2),)]
    assert check(in_place, reference=double, inputs=inputs, mistakes={}) is in_place
    assert inputs[0][0].tolist() == [1.0, 1.0]
