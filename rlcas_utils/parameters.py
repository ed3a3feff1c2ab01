"""The parameters cell of a notebook: read without running it, and every override checked before any compute.

Papermill only warns about a misspelt parameter and hands on the text "1e-5" where a float is meant. Here both
stop the run, because a run that silently used other values is worse than none.
"""

from __future__ import annotations

import ast
import difflib
import io
import json
import re
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcas_utils.config import ConfigError

SECRET_NAME = re.compile(r"(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)(_|$)", re.IGNORECASE)
SECRET_VALUE = re.compile(r"^(sk-|hf_|AIza|ghp_)[\w-]{8,}")
SCALARS = {"int": int, "float": (int, float), "str": str, "bool": bool}


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: `NAME: annotation = default  # meaning`."""

    name: str
    annotation: str
    default: Any
    meaning: str = ""

    def accepts(self, value: Any) -> bool:
        """Tell whether a value has the annotated type; an int passes for a float, a bool never for an int."""
        return _matches(value, ast.parse(self.annotation, mode="eval").body)


def read_notebook(path: Path) -> dict[str, Any]:
    """Read a notebook as plain JSON.

    Raises:
        ConfigError: The file is not a notebook.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content["cells"], list):
            raise TypeError("cells is not a list")
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{path.name} is not a readable notebook ({error}); restore it from git."
        ) from error
    return content


def notebook_text(notebook: Mapping[str, Any]) -> str:
    """Return a notebook as the text of its file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def cell_source(cell: Mapping[str, Any]) -> str:
    """Return the text of a cell, which files store as one string or as a list of lines."""
    return "".join(cell["source"])


def cell_tags(cell: Mapping[str, Any]) -> list[str]:
    """Return the tags of a cell."""
    return list(cell.get("metadata", {}).get("tags", []))


def read_parameters(path: Path) -> dict[str, Parameter]:
    """Read the cell tagged `parameters` by its syntax tree; nothing is executed.

    Args:
        path: A notebook.

    Returns:
        The parameters by name, in the order of the cell.

    Raises:
        ConfigError: Not exactly one such cell, or a line that is not an annotated literal.
    """
    cells = [c for c in read_notebook(path)["cells"] if "parameters" in cell_tags(c)]
    if len(cells) != 1:
        raise ConfigError(f"{path.name} has {len(cells)} cells tagged `parameters`, expected 1.")
    source = cell_source(cells[0])
    comments = _comments(source)
    found: dict[str, Parameter] = {}
    for node in ast.parse(source).body:
        parameter = _parameter(node, comments, path.name)
        if parameter.name in found:
            raise ConfigError(f"{path.name}: {parameter.name} is set twice in the parameters cell; keep one.")
        found[parameter.name] = parameter
    return found


def _comments(source: str) -> dict[int, str]:
    """Return comments by line number."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}


def _parameter(node: ast.stmt, comments: dict[int, str], notebook: str) -> Parameter:
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.value is None:
        raise ConfigError(f"{notebook}: parameters cell, `{ast.unparse(node)}`: write NAME: type = literal.")
    try:
        default = ast.literal_eval(node.value)
    except ValueError as error:
        raise ConfigError(
            f"{notebook}: parameters cell, {node.target.id} is computed; an override would not reach what "
            "depends on it. Write a literal here and derive other values in a later cell."
        ) from error
    lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    meaning = next((comments[line] for line in lines if line in comments), "")
    parameter = Parameter(node.target.id, ast.unparse(node.annotation), default, meaning)
    if not parameter.accepts(default):
        raise ConfigError(
            f"{notebook}: {parameter.name} = {default!r} is not of its type {parameter.annotation}."
        )
    return parameter


def _matches(value: Any, annotation: ast.expr) -> bool:
    match annotation:
        case ast.Constant(value=None):
            return value is None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _matches(value, left) or _matches(value, right)
        case ast.Name(id="bool"):
            return isinstance(value, bool)
        case ast.Name(id=name) if name in SCALARS:
            return isinstance(value, SCALARS[name]) and not isinstance(value, bool)
        case ast.Name(id="list" | "tuple"):
            return isinstance(value, list | tuple)
        case ast.Name(id="dict"):
            return isinstance(value, dict)
        case ast.Subscript(value=ast.Name(id="list" | "tuple"), slice=inner):
            inner = inner.elts[0] if isinstance(inner, ast.Tuple) else inner
            return isinstance(value, list | tuple) and all(_matches(item, inner) for item in value)
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, item])):
            return isinstance(value, dict) and all(
                _matches(k, key) and _matches(v, item) for k, v in value.items()
            )
    raise ConfigError(
        f"type {ast.unparse(annotation)} is not one a parameters cell may use; "
        "use int, float, str, bool, list[...], dict[str, ...] or `| None`."
    )


def parse_text(text: str, parameter: Parameter) -> Any:
    """Turn the VALUE of `--set KEY=VALUE` into a Python value, guided by the parameter's type.

    `1e-5` becomes a float, `true` and `True` a bool, and a str parameter keeps the text as it was typed.
    """
    if parameter.annotation == "str":
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def validate_overrides(
    stem: str, parameters: Mapping[str, Parameter], overrides: Mapping[str, Any]
) -> list[str]:
    """Check names and types of overrides.

    Args:
        stem: Notebook stem, for the messages.
        parameters: What the notebook has, from `read_parameters`.
        overrides: What a profile or a command line wants to set.

    Returns:
        One sentence for each fault; an empty list when all is well. Values that look secret are not repeated.
    """
    errors = []
    for name, value in overrides.items():
        if is_secret(name, value):
            errors.append(
                f"{stem}.{name} looks like a secret; parameters are stored in plain text in notebooks and "
                "records. Set it as an environment variable instead."
            )
        elif name not in parameters:
            errors.append(f"{stem} has no parameter {name}.{_suggestion(name, parameters)}")
        elif not parameters[name].accepts(value):
            errors.append(_type_error(stem, parameters[name], value))
    return errors


def is_secret(name: str, value: Any = None) -> bool:
    """Tell whether a parameter looks like a key, token or password by its name or by its value."""
    return bool(SECRET_NAME.search(str(name)) or (isinstance(value, str) and SECRET_VALUE.match(value)))


def _suggestion(name: str, parameters: Mapping[str, Parameter]) -> str:
    close = difflib.get_close_matches(str(name).upper(), parameters, n=1)
    return f" Did you mean {close[0]}?" if close else f" It has {', '.join(parameters)}."


def _type_error(stem: str, parameter: Parameter, value: Any) -> str:
    text = f"{stem}.{parameter.name} is {value!r} ({type(value).__name__}), expected {parameter.annotation}."
    if isinstance(value, str) and "float" in parameter.annotation:
        try:
            number = repr(float(value))
            dotted = number if "." in number else number.replace("e", ".0e")
            return f"{text} YAML reads {value} as text; write {dotted} with a dot and no quotes."
        except ValueError:
            return text
    return text
