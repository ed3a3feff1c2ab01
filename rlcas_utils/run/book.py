"""The course as a site: what Sphinx reads, gathered from a run, README.md and docs/: `make book`.

No notebook is executed, and Sphinx lives in an environment of its own: this module only writes sources.
A notebook without an executed copy is shown as it is in the project, with a warning.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlcas_utils import readme_blocks
from rlcas_utils.config import ConfigError, notebook_path, profile_names, project_root
from rlcas_utils.parameters import cell_source, cell_tags, read_notebook
from rlcas_utils.readme import repository_url
from rlcas_utils.readme_figure import draw_pipeline
from rlcas_utils.records import write_atomic, write_json
from rlcas_utils.run import book_pages
from rlcas_utils.run.book_links import Shelf, anchors, relink
from rlcas_utils.run.executed import clean, unexecuted_cells
from rlcas_utils.run.plan import portable
from rlcas_utils.run.report_source import NoRun, Source, read_run
from rlcas_utils.stages import STAGES
from rlcas_utils.viewer.episodes import write_episodes

MADE_PAGES = ("map.md", "results.md", "scales.md")
SETTINGS = {
    "book_conf.py": "conf.py",
    "book.css": "_static/book.css",
    "book_search.js": "_static/book_search.js",
}
FOLDED = {"colab": "The cell for Colab", "injected-parameters": "The values that this run set"}
NO_ALT = "A plot drawn by the code above; it has no description."


@dataclass
class Book:
    """Sources that were written.

    Attributes:
        folder: Where they lie.
        executed: Stems of the notebooks that show a run's outputs.
        gaps: One sentence for everything that is missing.
    """

    folder: Path
    executed: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)


def gather(run_dir: Path, folder: Path) -> Book:
    """Write the sources of the book, in place of those of an earlier call.

    Args:
        run_dir: The run to show, such as `runs/cpu`.
        folder: Where to.

    Raises:
        NoRun: The run has no record, or no executed notebook.
    """
    root, source = project_root(), read_run(run_dir)
    executed = [stem for stem in source.records if _is_executed(run_dir, stem)]
    if not executed:
        raise NoRun(
            f"{portable(run_dir)}/notebooks holds no executed notebook, so there is nothing to show; run "
            f"`make course PROFILE={run_dir.name}` first."
        )
    shutil.rmtree(folder, ignore_errors=True)
    docs = sorted(path.relative_to(root).as_posix() for path in (root / "docs").glob("*.md"))
    notebooks = [f"notebooks/{stem}.ipynb" for stem in STAGES]
    pages = {"README.md": "index.md"} | {name: name for name in (*notebooks, *MADE_PAGES, *docs)}
    texts = {name: (root / name).read_text(encoding="utf-8") for name in docs}
    shelf = Shelf(root, pages, repository_url(root), {n: anchors(text) for n, text in texts.items()})
    source.pages = {stem: f"notebooks/{stem}.html" for stem in STAGES}
    source.episodes = [f"episodes/{path.name}" for path in _episodes(run_dir, folder)]
    for stem in STAGES:
        _write_notebook(run_dir, stem, stem in executed, folder, shelf)
    for name, text in _pages(source, texts, folder, shelf).items():
        write_atomic(folder / name, text)
    _write_pictures(root, source, folder, shelf)
    _write_settings(root, folder)
    return Book(folder, executed, [*shelf.gaps, *source.gaps])


def _is_executed(run_dir: Path, stem: str) -> bool:
    try:
        return not unexecuted_cells(run_dir / "notebooks" / f"{stem}.ipynb")
    except (FileNotFoundError, ConfigError):
        return False


def _episodes(run_dir: Path, folder: Path) -> list[Path]:
    pages = write_episodes(run_dir)
    (folder / "extra").mkdir(parents=True)
    return [write_atomic(folder / "extra" / "episodes" / p.name, p.read_bytes()) for p in pages]


def _pages(source: Source, docs: dict[str, str], folder: Path, shelf: Shelf) -> dict[str, str]:
    """Return the pages that are Markdown; links hold, and the first ends with the list of all pages."""
    written = book_pages.landing_pages(shelf.root, source) | docs
    headings = {stem: book_pages.headings(folder / "notebooks" / f"{stem}.ipynb") for stem in STAGES}
    written["map.md"] = book_pages.course_map(shelf.root, headings, source)
    texts = {n: relink(t, "README.md" if n == "index.md" else n, shelf) for n, t in written.items()}
    texts["index.md"] += _contents({stem: title for stem, (title, *_) in headings.items()}, list(docs))
    texts["results.md"] += book_pages.more_results(source)
    return texts


def _contents(titles: dict[str, str], docs: list[str]) -> str:
    """Return the hidden lists of pages that become the sidebar."""
    notebooks = [f"{title.split(':')[0]} <notebooks/{stem}>" for stem, title in titles.items()]
    reference = [name.removesuffix(".md") for name in (*MADE_PAGES, *docs)]
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"
        for caption, names in (("The course", notebooks), ("To look up", reference))
    )


def _write_notebook(run_dir: Path, stem: str, executed: bool, folder: Path, shelf: Shelf) -> None:
    name = f"notebooks/{stem}.ipynb"
    notebook = read_notebook(run_dir / name if executed else notebook_path(stem))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = relink(cell_source(cell), name, shelf)
        else:
            shelf.gaps += [f"{name}: {gap}" for gap in prepare_code(cell)]
    if not executed:
        said = "This run holds no executed copy of this notebook, so it is shown without outputs."
        notebook["cells"][0]["source"] = (
            f"{cell_source(notebook['cells'][0])}\n\n:::{{warning}}\n{said}\n:::\n"
        )
        shelf.gaps.append(f"{name} is shown without outputs: the run holds no executed copy of it.")
    write_json(folder / name, notebook)
    clean(folder / name, name)


def prepare_code(cell: dict[str, Any]) -> list[str]:
    """Write text and width of a cell's pictures where MyST-NB reads them, and fold cells that are no lesson.

    Args:
        cell: A code cell of an executed notebook; changed in place.

    Returns:
        One sentence for every picture without a description.
    """
    gaps, settings = [], {}
    for tag, prompt in FOLDED.items():
        if tag in cell_tags(cell):
            cell["metadata"]["tags"] = [*cell_tags(cell), "hide-input"]
            settings["code_prompt_show"] = settings["code_prompt_hide"] = prompt
    pictures = [o for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    for output in pictures:
        facts = output.get("metadata", {}).get("image/png", {})
        settings["image"] = {"alt": facts.get("alt", NO_ALT)}
        if "width" in facts:
            settings["image"]["width"] = f"{facts['width']}px"
        if "alt" not in facts:
            gaps.append(f"a picture of cell {cell.get('id', '?')} has no description; show it with alt text.")
    if len(pictures) > 1:
        gaps.append(
            f"cell {cell.get('id', '?')} shows {len(pictures)} pictures; all get the last one's text."
        )
    if settings:
        cell["metadata"]["mystnb"] = settings
    return gaps


def _write_pictures(root: Path, source: Source, folder: Path, shelf: Shelf) -> None:
    for name in shelf.pictures:
        write_atomic(folder / name, (root / name).read_bytes())
    for picture in (picture for pictures in source.pictures.values() for picture in pictures):
        write_atomic(folder / "figures" / "run" / f"{picture.name}.png", picture.png)
    draw_pipeline(readme_blocks.headlines(source.records), folder / "figures" / "pipeline")


def _write_settings(root: Path, folder: Path) -> None:
    title = (root / "README.md").read_text(encoding="utf-8").partition("\n")[0].lstrip("# ").split(":")[0]
    write_json(folder / "book.json", {"title": title, "url": repository_url(root)})
    for name, target in SETTINGS.items():
        write_atomic(folder / target, Path(__file__).with_name(name).read_bytes())


def main(arguments: list[str] | None = None) -> int:
    """Write the sources of the course as a site; `make book` builds them."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.run.book", description=main.__doc__)
    parser.add_argument("profile", nargs="?", default="cpu", choices=profile_names())
    parser.add_argument("--runs-dir", type=Path, default=project_root() / "runs")
    parser.add_argument("--sources", type=Path, default=project_root() / "build" / "book-source")
    options = parser.parse_args(arguments)
    try:
        book = gather(options.runs_dir.resolve() / options.profile, options.sources.resolve())
    except NoRun as error:
        print(error, file=sys.stderr)
        return 1
    for gap in book.gaps:
        print(f"note: {gap}")
    print(f"{portable(book.folder)}: {len(book.executed)} of {len(STAGES)} notebooks with the run's outputs.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
