"""The pages of the book beside the notebooks: landing page, course map, results, scales."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from rlcas_utils import readme_blocks
from rlcas_utils.course_map import map_name
from rlcas_utils.parameters import cell_source, read_notebook
from rlcas_utils.readme import replace_block, repository_url
from rlcas_utils.reference import other_runs
from rlcas_utils.run import report_sections
from rlcas_utils.run.report_source import Source
from rlcas_utils.stages import STAGES

OWN_PAGES = {
    "Results": "results.md",
    "Scales": "scales.md",
}  # sections of README.md that are pages of the book
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
STEP = re.compile(r"(Step )?\d+\b")
INTERVAL = re.compile(r"\[(-?[\d.]+), (-?[\d.]+)\]")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def landing_pages(root: Path, source: Source) -> dict[str, str]:
    """Return README.md as pages by file name, its generated blocks filled from the run that the book shows.

    Args:
        root: The project's folder.
        source: The run.
    """
    text = (root / "README.md").read_text(encoding="utf-8")
    for name, content in _blocks(root, source).items():
        text = replace_block(text, name, content)
    text = text.replace("<!-- end:headline -->", f"\n{_about(source)}")
    text = re.sub(r"^<!-- .*? -->\n", "", text, flags=re.MULTILINE)
    parts = _sections(_unbroken(text))
    pages = {"index.md": parts.pop("")}
    for title, body in parts.items():
        if title in OWN_PAGES:
            pages[OWN_PAGES[title]] = f"# {title}\n{_raised(body)}"
        else:
            pages["index.md"] += f"## {title}\n{body}"
    return pages


def _blocks(root: Path, source: Source) -> dict[str, str]:
    records, url = source.records, repository_url(root)
    headline = readme_blocks.headline(records).replace(
        "In the reference run on a CPU, the", "In this run, the"
    )
    filled = {
        "headline": headline,
        "picture": readme_blocks.picture(records),
        "notebooks": readme_blocks.notebooks(root, records, url, other_runs(root)),
        "desk": readme_blocks.desk(records),
        "telecom": readme_blocks.telecom(records),
        "run": readme_blocks.run(records).replace("Reference run:", "The run of this book:"),
    }
    return {n: c.replace(readme_blocks.NO_RUN, "This run holds no such result.") for n, c in filled.items()}


def _sections(text: str) -> dict[str, str]:
    """Return the text before the first heading of level 2 under an empty name, then each section's body."""
    _, *rest = pieces = HEADING.split(text)
    return {"": pieces[0]} | dict(zip(rest[::2], rest[1::2], strict=True))


def _unbroken(text: str) -> str:
    """Return a text whose intervals stay on one line in narrow columns."""
    return INTERVAL.sub("[\\1,\N{NO-BREAK SPACE}\\2]", text)


def _raised(body: str) -> str:
    """Return a section's body with its headings one level higher; comments in commands are none."""
    code = FENCED.findall(body)
    prose = FENCED.split(body)
    raised = [re.sub(r"^#(#+ )", r"\1", piece, flags=re.MULTILINE) for piece in prose]
    return raised[0] + "".join(a + b for a, b in zip(code, raised[1:], strict=True))


def _about(source: Source) -> str:
    said = readme_blocks.run(source.records).replace("Reference run: ", "")
    note = (
        ":::{note}\nThis book shows the notebooks as one run left them, with their outputs: "
        f"{said} It needs no network. [Course map](map.md) · [Results](results.md)\n:::\n\n"
    )
    warnings = "".join(f":::{{warning}}\n{said}\n:::\n\n" for said in report_sections.warnings(source))
    return f"{note}{warnings}"


def course_map(root: Path, headings: Mapping[str, list[str]], source: Source) -> str:
    """Return the page of the course map: what each notebook takes over and hands on, and its steps as links.

    Args:
        root: The project's folder.
        headings: Title and sections of each notebook, by its stem.
        source: The run, for the headline numbers.
    """
    numbers = readme_blocks.headlines(source.records)
    start = map_name(next(iter(headings)))
    alt = json.loads((root / "figures" / f"{start}.json").read_text(encoding="utf-8"))["alt"]
    parts = [
        f"# Course map\n\n![{alt}](figures/{start}.png)\n",
        "Seven notebooks, each runnable alone; together they hand on the files named here.\n",
    ]
    for stem, files in STAGES.items():
        title, *sections = headings[stem]
        result = f": {numbers[stem]}." if numbers[stem] else "."
        steps = [name for name in sections if STEP.match(name)] or sections
        parts.append(
            f"## {title}\n\n[Open the notebook](notebooks/{stem}.ipynb){result}\n\n"
            f"- **Takes over:** {_file_names(files.reads) or 'nothing from earlier notebooks'}\n"
            f"- **Hands on:** {_file_names(name.removeprefix(f'{stem}/') for name in files.writes)}"
        )
        parts += [f"- [{step}](notebooks/{stem}.ipynb#{slug(step)})" for step in steps]
        parts.append("")
    return "\n".join(parts)


def headings(path: Path) -> list[str]:
    """Return a notebook's title and its headings of level 2."""
    prose = [cell_source(c) for c in read_notebook(path)["cells"] if c["cell_type"] == "markdown"]
    text = FENCED.sub("", "\n\n".join(prose))
    return re.findall(r"^# (.+)$", text, re.MULTILINE)[:1] + HEADING.findall(text)


def _file_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def slug(heading: str) -> str:
    """Return the anchor that MyST and GitHub give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def more_results(source: Source) -> str:
    """Return what the results page holds below README.md's tables: more tables, figures, episodes, numbers.

    Args:
        source: The run; its `pages` lead to the notebooks of the book.
    """
    parts = []
    if source.tables:
        parts.append(
            "## All tables of notebook 07\n\n" + "\n\n".join(_unbroken(t.strip()) for t in source.tables)
        )
    figures = [f"![{p.alt}](figures/run/{p.name}.png)\n\n*{p.caption}*" for p in _pictures(source)]
    parts.append("## Figures of this run\n\n" + "\n\n".join(figures))
    if source.episodes:
        parts.append(f"## Episodes\n\n{_raw(report_sections.episodes(source))}")
    parts.append(f"## Every number, by notebook\n\n{_raw(report_sections.stages(source))}")
    return "\n\n".join(parts) + "\n"


def _pictures(source: Source) -> list:
    return [picture for pictures in source.pictures.values() for picture in pictures]


def _raw(html: str) -> str:
    return f"```{{raw}} html\n{html}\n```\n"
