"""Imports run one way, modules stay short, and CONTRIBUTING names each of them."""

import ast
import re
import subprocess
import sys

import pytest

from rlcas_utils.config import project_root
from rlcas_utils.fingerprint import imported_modules

ROOT = project_root()
LAYERS = (
    {"config", "parameters", "records", "machine", "stages", "fingerprint"}
    | {"stage", "stage_folder", "stage_text", "handoffs", "checkpoints"}
    | {"architectures", "memory_plan", "memory_tables"}
    | {"statistics", "figures", "parsing", "trackers", "spacing"}
    | {"api_usage", "api_replies", "api_calls", "api_journal"},
    {"desk", "telecom"},
    {"sac", "trajectories", "language", "rollouts", "grpo", "benchmark", "api_agents", "viewer"},
    {"run", "demo", "exercises", "openings", "course_map", "reference"}
    | {"readme", "readme_blocks", "readme_figure", "readme_gpu"},
)
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "rlcas_utils").rglob("*.py"))
}
IMPORTS = {
    name: set(imported_modules(path.read_text(encoding="utf-8"), name)) for name, path in MODULES.items()
}


def part(name):
    """Return the part of the package that a module belongs to, such as "desk"."""
    return name.split(".")[1] if "." in name else ""


def layer(name):
    return next((n for n, parts in enumerate(LAYERS) if part(name) in parts), None)


@pytest.mark.parametrize("name", [name for name in MODULES if name != "rlcas_utils"])
def test_a_module_has_a_layer_and_imports_only_downwards(name):
    assert layer(name) is not None, f"{name} belongs to no layer; add it to LAYERS and CONTRIBUTING.md"
    for imported in IMPORTS[name] - {"rlcas_utils"}:
        assert layer(imported) <= layer(name), f"{name} imports {imported}, which lies above it"


def test_the_two_desks_know_nothing_of_each_other():
    for name, imports in IMPORTS.items():
        if part(name) in ("desk", "telecom"):
            assert not {part(i) for i in imports} & ({"desk", "telecom"} - {part(name)}), name


def test_only_telecom_knows_the_benchmark_package():
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom) and part(name) != "telecom":
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                assert not any(n.split(".")[0] == "tau2" for n in names), name


def test_only_notebooks_the_runner_and_tests_know_the_exercises():
    for name, imports in IMPORTS.items():
        if part(name) not in ("exercises", "run"):
            assert "exercises" not in {part(i) for i in imports}, name


def test_there_is_no_import_cycle():
    """Parents are left out: that a submodule loads its package first is no cycle of the reader's making."""
    graph = {
        name: {i for i in imports if not name.startswith(f"{i}.") and i != name}
        for name, imports in IMPORTS.items()
    }
    done: set[str] = set()

    def visit(name, trail):
        assert name not in trail, " -> ".join([*trail[trail.index(name) :], name])
        if name not in done:
            for imported in sorted(graph[name]):
                visit(imported, [*trail, name])
            done.add(name)

    for name in graph:
        visit(name, [])


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_at_most_250_lines(name):
    assert len(MODULES[name].read_text(encoding="utf-8").splitlines()) <= 250


@pytest.mark.parametrize("name", MODULES)
def test_functions_are_at_most_60_lines(name):
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{name}.{node.name}"


def test_contributing_names_every_module_once():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w./]+\.py)` \| \S.*\|$", text, flags=re.MULTILINE)
    expected = [
        path.relative_to(ROOT / "rlcas_utils").as_posix()
        for path in MODULES.values()
        if path.name not in ("__init__.py", "__main__.py")
    ]
    assert sorted(listed) == sorted(expected)


def test_importing_the_package_stays_light():
    code = "import sys, rlcas_utils; print(sorted({'torch', 'numpy', 'tau2'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
