"""Every exercise on its page: header, stub, hints, folded solution; every mistake it names is diagnosed."""

import ast
import builtins
import importlib
import inspect
import re
import textwrap

import pytest

from rlcas_utils.config import project_root
from rlcas_utils.exercises import Exercise, WrongAnswer
from rlcas_utils.parameters import cell_source, cell_tags, read_notebook

NOTEBOOKS = sorted((project_root() / "notebooks").glob("[0-9]*.ipynb"))
HEADER = re.compile(
    r"\*\*Exercise (\d)\*\* · difficulty [1-5] of 5 · importance [1-5] of 5 · [1-9]\d? minutes\. \S"
)
IMPORT = re.compile(r"^from rlcas_utils\.exercises import (\w+) as exercises$", re.MULTILINE)
SOLUTION = re.compile(r"<details>.*?```python\n(.*?)```.*?</details>", re.DOTALL)


def sources(path, kind):
    return [cell_source(cell) for cell in read_notebook(path)["cells"] if cell["cell_type"] == kind]


def exercises_of(path):
    """Return the exercises in the module that a notebook imports, by name."""
    modules = IMPORT.findall("\n".join(sources(path, "code")))
    assert len(modules) == 1, f"{path.stem} imports the exercise modules {modules}, expected one"
    module = importlib.import_module(f"rlcas_utils.exercises.{modules[0]}")
    return {name: value for name, value in vars(module).items() if isinstance(value, Exercise)}


def tagged(path, kind):
    """Return positions of cells tagged `exercise:NAME` or `solution:NAME`, by name."""
    return {
        tag.removeprefix(f"{kind}:"): position
        for position, cell in enumerate(read_notebook(path)["cells"])
        for tag in cell_tags(cell)
        if tag.startswith(f"{kind}:")
    }


def every_exercise():
    return [
        pytest.param(path, name, id=f"{path.stem[:2]}-{name}")
        for path in NOTEBOOKS
        for name in tagged(path, "exercise")
    ]


def function_in(source, name):
    """Return the function of a text, without docstring, annotations and a leading underscore."""
    for node in ast.parse(textwrap.dedent(source)).body:
        if isinstance(node, ast.FunctionDef) and node.name.lstrip("_") == name:
            node.name, node.returns = name, None
            for argument in (*node.args.args, *node.args.kwonlyargs):
                argument.annotation = None
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
            return node
    raise AssertionError(f"no function {name} in:\n{source}")


each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
each = pytest.mark.parametrize(("path", "name"), every_exercise())


@each_notebook
def test_a_notebook_has_two_to_four_exercises_and_uses_all_of_its_module(path):
    assert 2 <= len(tagged(path, "exercise")) <= 4
    assert tagged(path, "exercise").keys() == tagged(path, "solution").keys() == exercises_of(path).keys()


def test_the_course_has_twenty_exercises():
    assert len(every_exercise()) >= 20


@each_notebook
def test_headers_stand_before_the_stubs_and_count_from_one(path):
    cells = read_notebook(path)["cells"]
    headers = [HEADER.search(cell_source(cells[at - 1])) for at in tagged(path, "exercise").values()]
    assert all(headers), "each stub follows a markdown cell: **Exercise 1** · difficulty 2 of 5 · ..."
    numbers = [int(header[1]) for header in headers]
    assert numbers == list(range(1, len(numbers) + 1))


@each
def test_the_stub_is_empty_has_the_references_parameters_and_is_checked_at_once(path, name):
    source = cell_source(read_notebook(path)["cells"][tagged(path, "exercise")[name]])
    stub, check = ast.parse(source).body[-2:]
    assert ast.unparse(check) == f"{name} = exercises.{name}.check({name})"
    assert stub.name == name
    assert ast.get_docstring(stub)
    assert ast.unparse(stub.body[1]) == "raise NotImplementedError('replace this line')"
    assert len(stub.body) == 2
    expected = list(inspect.signature(exercises_of(path)[name].reference).parameters)
    assert [argument.arg for argument in (*stub.args.args, *stub.args.kwonlyargs)] == expected


@each
def test_hints_and_the_solution_are_folded_after_the_stub(path, name):
    cells = read_notebook(path)["cells"]
    at = tagged(path, "exercise")[name]
    hints, solution = cell_source(cells[at + 1]), cell_source(cells[at + 2])
    assert re.search(r"<details><summary>Hint 1.*<details><summary>Hint 2", hints, re.DOTALL)
    assert hints.count("<details>") == hints.count("</details>") == 2
    assert tagged(path, "solution")[name] == at + 2
    page = function_in(SOLUTION.search(solution)[1], name)
    packaged = function_in(inspect.getsource(exercises_of(path)[name].reference), name)
    assert ast.dump(page) == ast.dump(packaged)
    why = re.sub(r"```.*?```|<summary>.*?</summary>|</?details>", "", solution, flags=re.DOTALL)
    assert len(why.split()) >= 8, "the solution says why"


@each
def test_the_next_cell_of_code_uses_the_function_that_came_back(path, name):
    cells = read_notebook(path)["cells"][tagged(path, "exercise")[name] + 1 :]
    following = next(cell for cell in cells if cell["cell_type"] == "code")
    assert name in {
        node.id for node in ast.walk(ast.parse(cell_source(following))) if isinstance(node, ast.Name)
    }


@each
def test_every_mistake_is_diagnosed_and_the_reference_passes(path, name):
    exercise = exercises_of(path)[name]
    assert exercise.name == name
    assert exercise.check(exercise.reference) is exercise.reference
    for sentence, mistake in exercise.mistakes.items():
        with pytest.raises(WrongAnswer, match=re.escape(f"{name}: {sentence}\n")):
            exercise.check(mistake)


def names_bound(source):
    """Return the names that a cell makes known to later cells."""
    tree = ast.parse(source)
    bound = {
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    bound |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return bound | {(a.asname or a.name).split(".")[0] for node in imports for a in node.names}


@each
def test_the_solution_needs_no_name_that_the_page_has_not_made_known(path, name):
    """A learner who unfolds it and a teacher's copy run the solution with what stands above the stub."""
    cells = read_notebook(path)["cells"]
    at = tagged(path, "exercise")[name]
    known = set(vars(builtins)) | {name}
    for cell in cells[: at + 1]:
        if cell["cell_type"] == "code":
            known |= names_bound(cell_source(cell))
    solution = SOLUTION.search(cell_source(cells[at + 2]))[1]
    function = ast.parse(solution)
    own = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)} | names_bound(solution)
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    assert used - own <= known
