"""Notebook 07's exercises: each foreseen mistake is named, and the solution on the page passes."""

import math
from math import comb
from types import SimpleNamespace

import numpy as np
import pytest

from rlcas_utils import exercises, statistics
from rlcas_utils.config import notebook_path
from rlcas_utils.parameters import cell_source, read_notebook

SOLVED_NK = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0]])
CELLS = [
    cell_source(cell)
    for cell in read_notebook(notebook_path("07_benchmark"))["cells"]
    if cell["cell_type"] == "code" and "exercises.check(" in cell_source(cell)
]
SOLUTIONS = {
    "pass_at_k": lambda n, c, k: 1 - comb(n - c, k) / comb(n, k),
    "task_error": lambda x: np.mean(x, axis=1).std(ddof=1) / len(x) ** 0.5,
}


def exercise(source):
    """Run an exercise cell with a checker that only keeps what it was given."""
    kept = {}

    def keep(attempt, **settings):
        kept.update(settings, attempt=attempt)
        return settings["reference"]

    names = {"np": np, "math": math, "comb": comb, "statistics": statistics, "solved_NK": SOLVED_NK}
    exec(source, names | {"exercises": SimpleNamespace(check=keep)})
    return kept


@pytest.mark.parametrize("source", CELLS)
def test_each_mistake_is_named_and_the_stub_goes_on(source, capsys):
    kept = exercise(source)
    attempt = kept.pop("attempt")
    assert exercises.check(attempt, **kept) is kept["reference"]
    assert "not attempted" in capsys.readouterr().out
    assert len(kept["mistakes"]) >= 3
    for sentence, wrong in kept["mistakes"].items():
        with pytest.raises(exercises.WrongAnswer) as error:
            exercises.check(wrong, **kept)
        assert sentence in str(error.value)


@pytest.mark.parametrize("source", CELLS)
def test_the_solution_on_the_page_passes(source):
    kept = exercise(source)
    kept.pop("attempt")
    solution = SOLUTIONS[kept["reference"].__name__]
    assert exercises.check(solution, **kept) is solution


def test_there_are_two_exercises():
    assert len(CELLS) == 2
