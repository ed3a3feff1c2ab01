"""Every course notebook has the form that a reader, a runner and git rely on."""

import ast
import importlib
import inspect
import re
import statistics
import textwrap

import pytest

from rlcas_utils.config import project_root
from rlcas_utils.parameters import cell_source, cell_tags, is_secret, read_notebook, read_parameters
from rlcas_utils.stages import STAGES

NOTEBOOKS = sorted((project_root() / "notebooks").glob("*.ipynb"))
# A home, root, temporary or drive folder; "/" inside fractions, URLs and relative paths is none of them.
ABSOLUTE_PATH = re.compile(r"(?<![\w./:~])(/(home|root|Users|tmp|mnt|work|content|var|opt)/|[A-Z]:\\\\)")
MAGIC = re.compile(r"^\s*[!%]", re.MULTILINE)
PLACE = re.compile(
    r"\b(sections?|equations?|algorithms?|tables?|figures?|appendix|appendices|theorem) [A-Z]?\d*\.?\w",
    re.IGNORECASE,
)

pytestmark = pytest.mark.skipif(not NOTEBOOKS, reason="no notebooks yet")
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def cells(path, kind):
    return [cell for cell in read_notebook(path)["cells"] if cell["cell_type"] == kind]


def plain_code(path):
    return [cell for cell in cells(path, "code") if "colab" not in cell_tags(cell)]


def prose(path):
    return "\n\n".join(cell_source(cell) for cell in cells(path, "markdown"))


def read_aloud(markdown):
    """Return the sentences of a markdown cell: no folded text, fenced code, tables, headings or pictures."""
    text = re.sub(r"<details>.*?</details>|```.*?```", "", markdown, flags=re.DOTALL)
    return re.sub(r"^(\||#|!\[).*$", "", text, flags=re.MULTILINE)


def sections(path):
    """Return the text below each second-level heading, by heading."""
    parts = re.split(r"^## (.+)$", prose(path), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def section(path, beginning):
    found = [text for heading, text in sections(path).items() if heading.startswith(beginning)]
    assert len(found) == 1, (
        f"{len(found)} headings begin with {beginning!r}, expected one: {list(sections(path))}"
    )
    return found[0]


def code_lines(cell):
    return [line for line in cell_source(cell).splitlines() if line.strip()]


@each
def test_the_name_is_one_of_the_course(path):
    assert path.stem in STAGES


@each
def test_it_is_stripped_and_names_the_kernel_python3(path):
    notebook = read_notebook(path)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert "widgets" not in notebook["metadata"]
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(ids) == len(set(ids))
    for cell in cells(path, "code"):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@each
def test_the_second_code_cell_is_the_parameters_cell(path):
    code = cells(path, "code")
    tagged = [number for number, cell in enumerate(code) if "parameters" in cell_tags(cell)]
    assert tagged == [1]


@each
def test_parameters_are_annotated_literals_with_a_meaning_and_no_secret(path):
    parameters = read_parameters(path)
    assert {"PROFILE", "SEED", "RUN_DIR"} <= set(parameters)
    assert parameters["RUN_DIR"].default == ""
    assert parameters["SEED"].default == 0
    for name, parameter in parameters.items():
        assert parameter.meaning, f"{name} has no comment that says what it means"
        assert not is_secret(name), name


@each
def test_the_stage_is_opened_and_finished(path):
    code = "\n".join(cell_source(cell) for cell in plain_code(path))
    assert f'open_stage("{path.stem}", globals())' in code
    assert "stage.finish()" in code


@each
def test_shell_commands_stand_only_in_the_colab_cell(path):
    for cell in plain_code(path):
        assert not MAGIC.search(cell_source(cell)), cell_source(cell)
        ast.parse(cell_source(cell))
    assert sum("colab" in cell_tags(cell) for cell in cells(path, "code")) <= 1


@each
def test_nothing_that_a_headless_run_or_another_machine_cannot_do(path):
    text = "\n".join(cell_source(cell) for cell in plain_code(path))
    for forbidden in ("sys.path", "input(", "notebook_login", "raises-exception"):
        assert not re.search(rf"(?<![\w.]){re.escape(forbidden)}", text), forbidden
    for cell in read_notebook(path)["cells"]:
        if "colab" not in cell_tags(cell):
            assert not ABSOLUTE_PATH.search(cell_source(cell)), cell_source(cell)


@each
def test_size_stays_readable(path):
    sizes = sorted(len(code_lines(cell)) for cell in plain_code(path) if code_lines(cell))
    assert len(read_notebook(path)["cells"]) <= 70
    assert sum(sizes) <= 350
    assert statistics.median(sizes) <= 8
    assert sum(size <= 20 for size in sizes) >= 0.9 * len(sizes)
    assert max(sizes) <= 40


@each
def test_there_are_five_to_nine_words_of_prose_for_a_line_of_code(path):
    words = sum(len(read_aloud(cell_source(cell)).split()) for cell in cells(path, "markdown"))
    lines = sum(len(code_lines(cell)) for cell in plain_code(path))
    assert 5.0 <= words / lines <= 9.0, f"{words} words, {lines} lines of code: {words / lines:.2f} a line"


@each
def test_the_page_opens_with_title_card_and_navigation(path):
    opening = "\n".join(cell_source(cell) for cell in cells(path, "markdown")[:4])
    assert re.search(r"^# ", opening, flags=re.MULTILINE)
    for word in ("You build", "You need", "Reads", "Writes"):
        assert word.lower() in opening.lower(), f"the first cells do not have {word!r}"


@each
def test_where_we_are_has_the_course_map_and_the_notation(path):
    text = section(path, "Where we are")
    assert f"](../figures/map_{path.stem[:2]}.png)" in text
    rows = re.findall(
        r"^\| *symbol *\| *variable *\| *shape *\|.*\n\|[-|: ]+\|\n((?:\|.*\n?)+)", text, re.MULTILINE
    )
    assert rows, "no table | symbol | variable | shape | ..."
    assert len(rows[0].splitlines()) >= 3


@each
def test_three_to_six_steps_each_ask_a_question_and_a_prediction(path):
    steps = {heading: text for heading, text in sections(path).items() if heading.startswith("Step ")}
    assert [heading.split(":")[0] for heading in steps] == [f"Step {n + 1}" for n in range(len(steps))]
    assert 3 <= len(steps) <= 6
    for heading, text in steps.items():
        assert "**Question.**" in text, heading
        assert "**Predict.**" in text, heading


@each
def test_departures_are_numbered_and_one_thing_is_broken_on_purpose(path):
    assert re.search(r"^1\. .+", section(path, "Departures"), re.MULTILINE)
    assert section(path, "Break it").strip()


@each
def test_the_result_says_what_it_does_not_show(path):
    assert "**What this does not show.**" in prose(path)


@each
def test_the_recap_asks_five_questions_with_folded_answers(path):
    folded = re.findall(
        r"<details><summary>(\d)\. .*?\?.*?</summary>\s*\S.*?</details>", section(path, "Recap"), re.DOTALL
    )
    assert [int(number) for number in folded] == list(range(1, len(folded) + 1))
    assert len(folded) >= 5


@each
def test_references_name_the_place_in_the_paper(path):
    papers = [
        r
        for r in re.split(r"^(?:-|\d+\.) ", section(path, "References"), flags=re.MULTILINE)[1:]
        if "arXiv" in r
    ]
    for paper in papers:
        assert PLACE.search(paper), f"no section, equation, algorithm, table or appendix: {paper}"


@each
def test_text_has_no_emoji(path):
    assert not re.search("[\U0001f300-\U0001faff\u2600-\u27bf]", prose(path))


def lessons():
    for path in NOTEBOOKS:
        for cell in cells(path, "code"):
            for tag in cell_tags(cell):
                if tag.startswith("lesson:"):
                    yield pytest.param(path, cell, tag.removeprefix("lesson:"), id=f"{path.stem}-{tag}")


def tree_without_docstring(source, name):
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
            return ast.dump(node)
    raise AssertionError(f"the lesson cell defines no {name}")


@pytest.mark.parametrize(("path", "cell", "target"), list(lessons()))
def test_a_lesson_on_the_page_equals_the_function_in_the_package(path, cell, target):
    module, _, name = target.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    packaged = textwrap.dedent(inspect.getsource(function))
    assert tree_without_docstring(cell_source(cell), name) == tree_without_docstring(packaged, name)
    assert len(code_lines(cell)) <= 25
