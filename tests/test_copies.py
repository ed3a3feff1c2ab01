"""Students' and teachers' copies: solutions gone, or filled in and executed."""

import json

import pytest
from nbformat import v4
from toy_course import add_notebook, environment, make_project, stand_in_for_torch

from rlcas_utils.config import ConfigError, project_root
from rlcas_utils.parameters import cell_source, read_notebook
from rlcas_utils.run import copies

STUB = '''\
def double(x):
    """Return twice x."""
    raise NotImplementedError("replace this line")


double = checked(double)'''
SOLUTION = """\
<details><summary>Solution</summary>

```python
def double(x):
    return 2 * x
```

Because twice is x and x; see [the glossary](../docs/glossary.md).
</details>"""
CHECKER = """\
def checked(attempt):
    try:
        print(attempt(1))
    except NotImplementedError:
        print("double: not attempted yet")
    return attempt"""


def toy(solution=SOLUTION, stub=STUB):
    """Return a notebook with one exercise as a parsed file."""
    notebook = v4.new_notebook(
        cells=[
            v4.new_markdown_cell("# 01 Toy\n\n![map](../figures/map.png) [next](02_next.ipynb)"),
            v4.new_code_cell(CHECKER),
            v4.new_code_cell(stub, metadata={"tags": ["exercise:double"]}),
            v4.new_markdown_cell(solution, metadata={"tags": ["solution:double"]}),
        ]
    )
    return json.loads(json.dumps(notebook))


def test_a_students_copy_has_stub_and_hints_but_no_solution():
    cells = [cell_source(cell) for cell in copies.student(toy())["cells"]]
    assert len(cells) == 3
    assert cells[2] == STUB
    assert "2 * x" not in "".join(cells)


def test_links_out_of_the_folder_fit_the_copys_place():
    first = cell_source(copies.student(toy())["cells"][0])
    assert "](../../figures/map.png)" in first
    assert "](02_next.ipynb)" in first


def test_a_teachers_copy_has_the_solution_in_the_stubs_place_and_keeps_the_check():
    stub = cell_source(copies.teacher(toy())["cells"][2])
    assert stub == "def double(x):\n    return 2 * x\n\n\ndouble = checked(double)"


@pytest.mark.parametrize(
    ("notebook", "reason"),
    [
        (toy(solution="<details>no code</details>"), "exercise double has no solution cell with code"),
        (toy(solution=SOLUTION.replace("def double", "def twice")), "must both define double"),
    ],
)
def test_a_stub_that_cannot_be_filled_is_refused(notebook, reason):
    with pytest.raises(ConfigError, match=reason):
        copies.teacher(notebook)


def test_the_copy_of_a_real_notebook_is_the_notebook_without_its_solutions(tmp_path):
    (path,) = copies.make_student("06", tmp_path)
    copy, original = read_notebook(path), read_notebook(project_root() / "notebooks" / path.name)
    left_out = len(original["cells"]) - len(copy["cells"])
    tags = [tag for cell in original["cells"] for tag in cell["metadata"].get("tags", [])]
    assert left_out == sum(tag.startswith("solution:") for tag in tags) >= 1
    code = [cell["source"] for cell in copy["cells"] if cell["cell_type"] == "code"]
    assert code == [cell["source"] for cell in original["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A toy course of one notebook with one exercise, and a command that makes copies of it."""
    import subprocess
    import sys

    project = make_project(tmp_path_factory.mktemp("course"))
    stand_in_for_torch(project)
    path = add_notebook(project, "01_first", CHECKER, STUB, "stage.finish()")
    notebook = read_notebook(path)
    notebook["cells"][5]["metadata"]["tags"] = ["exercise:double"]
    solution = v4.new_markdown_cell(SOLUTION, metadata={"tags": ["solution:double"]})
    notebook["cells"].insert(6, json.loads(json.dumps(solution)))
    path.write_text(json.dumps(notebook), encoding="utf-8")

    def make(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "rlcas_utils.run.copies", *arguments],
            cwd=project,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return project, make


def test_a_teachers_copy_is_executed_with_the_solution(course):
    project, make = course
    done = make("teacher")
    assert done.returncode == 0, done.stdout + done.stderr
    copy = read_notebook(project / "build" / "teacher" / "01_first.ipynb")
    (cell,) = [c for c in copy["cells"] if "exercise:double" in c["metadata"].get("tags", [])]
    assert "".join(cell["outputs"][0]["text"]) == "2\n"
    again = make("teacher")
    assert again.returncode == 0
    assert "running" not in again.stdout


def test_a_solution_that_solves_nothing_stops_the_teachers_copy(course):
    project, make = course
    path = project / "notebooks" / "01_first.ipynb"
    whole = path.read_text(encoding="utf-8")
    path.write_text(whole.replace("    return 2 * x", "    raise NotImplementedError"), encoding="utf-8")
    done = make("teacher")
    path.write_text(whole, encoding="utf-8")
    assert done.returncode == 1
    assert "exercise double counted as not attempted although its solution was filled in" in done.stderr
