"""Executed notebooks: cleaned of secrets, paths and widgets, checked cell by cell, turned into HTML."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcas_utils.config import ConfigError, project_root
from rlcas_utils.parameters import cell_source, is_secret, read_notebook
from rlcas_utils.records import write_atomic

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
MOST_LINES, MOST_CHARACTERS = 2_000, 1_000_000  # of one output of a cell
# The folders of this machine above installed packages or above the course, as library warnings print them.
FOLDERS = re.compile(r"(?<![\w:/.~-])/(?:[^\s\"'<>\\]+/)?(?=(?:site-packages|rlcas_utils)/)")
PICTURE = re.compile(r"(?P<text>!\[[^\]]*\])\((?:\.\./)+figures/(?P<name>[\w.-]+\.png)\)")
SHORTEST_SECRET = 8  # shorter values could be common words


def redact(text: str) -> str:
    """Replace the values of secret-like environment variables, such as an API key that an error quotes."""
    for name, value in os.environ.items():
        if is_secret(name) and len(value) >= SHORTEST_SECRET:
            text = text.replace(value, f"<{name}>")
    return text


def redact_file(path: Path) -> None:
    """Redact a text file in place."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if redact(text) != text:
        write_atomic(path, redact(text))


def clean(path: Path, source_name: str) -> None:
    """Rewrite an executed notebook without secrets, folders of this machine, widget data and endless output.

    Args:
        path: The executed notebook; nothing happens when it is not there or not complete JSON.
        source_name: The notebook's path in the project, put in place of papermill's absolute ones.
    """
    try:
        notebook = read_notebook(path)
    except (FileNotFoundError, ConfigError):
        return
    # Saved widget data without a `state` key makes viewers refuse the whole file.
    notebook["metadata"].pop("widgets", None)
    notebook["metadata"].pop("papermill", None)
    notebook["metadata"]["source"] = source_name
    for output in (output for cell in notebook["cells"] for output in cell.get("outputs", [])):
        output.get("data", {}).pop(WIDGET_VIEW, None)
        _shorten(output)
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    write_atomic(path, redact(FOLDERS.sub("", text)))


def _shorten(output: dict[str, Any]) -> None:
    """Cut the middle out of printed text that no reader could scroll through, and leave out huge displays."""
    lines = "".join(output.get("text", "")).splitlines(keepends=True)
    text = _middle_cut("".join(_middle_cut(lines, MOST_LINES, "lines")), MOST_CHARACTERS, "characters")
    if lines:
        output["text"] = "".join(text)
    for kind, content in output.get("data", {}).items():
        if len(json.dumps(content)) > MOST_CHARACTERS:
            output["data"][kind] = f"[{kind} of {len(json.dumps(content)):,} characters left out]"


def _middle_cut(items: Sequence[str], most: int, unit: str) -> Sequence[str]:
    if len(items) <= most:
        return items
    left_out = f"\n[{len(items) - most:,} {unit} left out here; write long output to a file]\n"
    return [*items[: most // 2], left_out, *items[-(most // 2) :]]


def unexecuted_cells(path: Path) -> list[int]:
    """Return the numbers, from 1, of code cells with code that never ran.

    A notebook that left early (`sys.exit(0)`, a failed shell command) looks like a success otherwise.

    Raises:
        ConfigError: The file is damaged.
        FileNotFoundError: It is not there.
    """
    cells = read_notebook(path)["cells"]
    return [
        number
        for number, cell in enumerate(cells, start=1)
        if cell["cell_type"] == "code" and cell_source(cell).strip() and cell.get("execution_count") is None
    ]


def write_html(path: Path, target: Path) -> None:
    """Write an executed notebook as one HTML file with its pictures inside.

    Args:
        path: The executed notebook, in `<run folder>/notebooks/`.
        target: The HTML file.
    """
    import nbformat
    from nbconvert import HTMLExporter

    notebook = nbformat.read(path, as_version=4)
    # nbconvert embeds no picture from outside the notebook's folder.
    folders = (path.parents[1] / "figures", project_root() / "figures")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = PICTURE.sub(lambda match: _embedded(match, folders), cell.source)
    exporter = HTMLExporter(template_name="lab", embed_images=True, require_js_url="")
    body, _ = exporter.from_notebook_node(notebook, {"metadata": {"name": path.stem}})
    write_atomic(target, body)


def _embedded(match: re.Match[str], folders: Sequence[Path]) -> str:
    """Return a picture of Markdown with its bytes in place of its address; the run's own goes first."""
    found = next((file for folder in folders if (file := folder / match["name"]).is_file()), None)
    if found is None:
        return match[0]
    return f"{match['text']}(data:image/png;base64,{base64.b64encode(found.read_bytes()).decode()})"
