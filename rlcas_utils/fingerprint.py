"""The fingerprint of a stage: one hash over everything that decides its result.

Notebook code, parameter values, the package modules it imports (directly or through others), its data files
and the files it reads from earlier stages. Comments, docstrings and layout do not count. Modules that only
write records, find paths or plan memory do not count either, so that a better error message there does not
throw away an hour of training.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlcas_utils.config import project_root
from rlcas_utils.parameters import cell_source, cell_tags, read_notebook
from rlcas_utils.records import sha256_tree
from rlcas_utils.stages import stage_files

PACKAGE = "rlcas_utils"
PLUMBING_NAMES = (
    *("config", "parameters", "records", "machine", "stages", "fingerprint"),
    *("stage", "stage_folder", "stage_text", "handoffs", "checkpoints"),
    *("architectures", "memory_plan", "memory_tables"),
)
PLUMBING = {PACKAGE, *(f"{PACKAGE}.{name}" for name in PLUMBING_NAMES)}
DOCUMENTED = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
NOT_COUNTED = {"PROFILE", "RUN_DIR", "REPORT_TO", "API_MAX_USD", "CUSTOMER_MAX_USD"}


def stage_fingerprint(notebook: Path, parameters: Mapping[str, Any], run_dir: Path) -> str:
    """Return the fingerprint of a stage as it would run now.

    Args:
        notebook: The source notebook; its stem is the stage.
        parameters: Values by name. PROFILE, RUN_DIR and REPORT_TO do not count: they name places.
            Nor do spend caps: raising one must not throw away what was paid for.
        run_dir: The run folder, in which the files of earlier stages lie.
    """
    files = stage_files(notebook.stem)
    root = project_root()
    parts = {
        "code": _code_trees(notebook),
        "parameters": {k: v for k, v in parameters.items() if k not in NOT_COUNTED},
        "modules": {name: _module_hash(path) for name, path in closure(notebook).items()},
        "data": {name: tree_hash(root / name) for name in files.data},
        "reads": {name: tree_hash(run_dir / name) for name in files.reads},
    }
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def tree_hash(path: Path) -> str:
    """Return the hash of a file or folder, or "absent"."""
    return sha256_tree(path) if path.exists() else "absent"


def closure(notebook: Path) -> dict[str, Path]:
    """Return the package modules that a notebook imports, directly or through others, with their files.

    Imports inside functions count: the syntax tree is read, nothing is executed.
    """
    found: dict[str, Path] = {}
    waiting = [name for source in _counted_cells(notebook) for name in imported_modules(source, "")]
    while waiting:
        name = waiting.pop()
        path = module_path(name)
        if path is None or name in found or name in PLUMBING:
            continue
        found[name] = path
        waiting += imported_modules(path.read_text(encoding="utf-8"), name)
    return dict(sorted(found.items()))


def module_path(name: str) -> Path | None:
    """Return the file of a package module, or None for anything else."""
    if name.split(".")[0] != PACKAGE:
        return None
    base = project_root().joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def imported_modules(source: str, importer: str) -> list[str]:
    """Return the package modules that a source text imports, parents included.

    Args:
        source: Python text.
        importer: Its dotted module name, to resolve relative imports; empty for a notebook cell.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, importer)
            names.add(base)
            names.update(f"{base}.{alias.name}" for alias in node.names)
    return [name for name in _with_parents(names) if module_path(name)]


def _absolute(node: ast.ImportFrom, importer: str) -> str:
    if not node.level:
        return node.module or ""
    path = module_path(importer)
    is_package = path is not None and path.name == "__init__.py"
    parts = importer.split(".")
    kept = parts[: len(parts) - node.level + (1 if is_package else 0)]
    return ".".join([*kept, node.module] if node.module else kept)


def _with_parents(names: Iterable[str]) -> list[str]:
    wanted = {".".join(name.split(".")[:i]) for name in names for i in range(1, name.count(".") + 2)}
    return sorted(wanted)


def _counted_cells(notebook: Path) -> list[str]:
    """Return the code that decides the result.

    Neither the parameters cell (its values count) nor Colab's, nor exercises: what a learner writes there
    passes the checker or stops the notebook, and must not throw away a training.
    """
    cells = [c for c in read_notebook(notebook)["cells"] if c["cell_type"] == "code"]
    return [cell_source(c) for c in cells if not any(_is_left_out(tag) for tag in cell_tags(c))]


def _is_left_out(tag: str) -> bool:
    return tag in ("parameters", "colab") or tag.startswith("exercise:")


def _code_trees(notebook: Path) -> list[str]:
    return [_tree(source) for source in _counted_cells(notebook)]


def _module_hash(path: Path) -> str:
    return hashlib.sha256(_tree(path.read_text(encoding="utf-8")).encode()).hexdigest()


def _tree(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)
