"""The exercises of notebook 01: every named mistake is recognised, the reference passes."""

import re
from types import SimpleNamespace

import pytest

from rlcas_utils import exercises
from rlcas_utils.config import project_root
from rlcas_utils.desk.rewards import VALUES
from rlcas_utils.parameters import cell_source, read_notebook

CELLS = read_notebook(project_root() / "notebooks" / "01_environment_design.ipynb")["cells"]


def checks():
    """Run the exercise cells with a recorder in place of the checker."""
    recorded = []

    def record(attempt, **options):
        recorded.append(options)
        return options["reference"]

    for cell in CELLS:
        source = cell_source(cell)
        if cell["cell_type"] == "code" and "exercises.check(" in source:
            exec(source, {"exercises": SimpleNamespace(check=record), "VALUES": VALUES, "re": re})
    return recorded


def test_there_are_two_exercises():
    assert len(checks()) == 2


@pytest.mark.parametrize("number", [0, 1])
def test_every_mistake_is_named_and_the_reference_passes(number):
    options = checks()[number]
    assert exercises.check(options["reference"], **options) is options["reference"]
    for reason, mistake in options["mistakes"].items():
        with pytest.raises(exercises.WrongAnswer, match=re.escape(reason)):
            exercises.check(mistake, **options)
