"""What a report is made of: records, figures and tables of a run folder or of the committed reference run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlcas_utils import readme_blocks
from rlcas_utils.config import project_root
from rlcas_utils.figures import DPI
from rlcas_utils.records import RecordError, read_record, sha256_file
from rlcas_utils.stages import BENCHMARK, STAGES


class NoRun(FileNotFoundError):
    """There is nothing to report on; the text says how to make it."""


@dataclass(frozen=True)
class Picture:
    """One figure: the PNG's bytes, and its caption and alternative text."""

    name: str
    png: bytes
    caption: str
    alt: str

    @property
    def width_px(self) -> int:
        """Width on the page, 100 pixels an inch as in the notebooks; bytes 16 to 20 of a PNG are its own."""
        return int.from_bytes(self.png[16:20], "big") * 100 // DPI


@dataclass
class Source:
    """A run to report on.

    Attributes:
        records: Run records by notebook stem.
        pictures: Figures by notebook stem.
        tables: Result tables as Markdown.
        pages: Executed notebooks as HTML by stem, relative to the report; empty for committed results.
        episodes: Pages of the episode viewer, relative to the report.
        gaps: One sentence for everything that is not there or was left out.
    """

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    pictures: dict[str, list[Picture]] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    pages: dict[str, str] = field(default_factory=dict)
    episodes: list[str] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)


def read_run(run_dir: Path) -> Source:
    """Read a run folder.

    Args:
        run_dir: Such as `runs/cpu`; it may be unfinished.

    Raises:
        NoRun: No stage has finished there.
    """
    source = _read(run_dir / "records", run_dir / "figures")
    source.tables = [p.read_text(encoding="utf-8") for p in sorted((run_dir / BENCHMARK).glob("*_table.md"))]
    if BENCHMARK not in source.records:
        source.tables = []  # of an earlier run, or half of this one
    names = {stem: f"html/{stem}.html" for stem in source.records}
    source.pages = {stem: name for stem, name in names.items() if (run_dir / name).is_file()}
    source.episodes = [f"episodes/{path.name}" for path in sorted((run_dir / "episodes").glob("*.html"))]
    return source


def read_reference(profile: str) -> Source:
    """Read the committed reference run of a profile.

    Raises:
        NoRun: There is none.
    """
    source = _read(project_root() / "results" / profile, project_root() / "figures")
    desk, telecom = readme_blocks.desk(source.records), readme_blocks.telecom(source.records)
    source.tables = [f"### Desk\n\n{desk}", f"### Telecom\n\n{telecom}"]
    return source


def _read(records: Path, figures: Path) -> Source:
    source = Source()
    for stem in STAGES:
        try:
            source.records[stem] = read_record(records / f"{stem}.json")
        except RecordError as error:
            source.gaps.append(f"{stem} is not in this report: {error}")
    if not source.records:
        raise NoRun(f"{records.parent.name}/{records.name} holds no run record; run `make course` first.")
    for stem, record in source.records.items():
        for name, expected in record["figures"].items():
            picture = _picture(figures, name, expected)
            if picture:
                source.pictures.setdefault(stem, []).append(picture)
            else:
                source.gaps.append(f"Figure {name} is left out: it is missing or not what its record says.")
    return source


def _picture(folder: Path, name: str, expected: str) -> Picture | None:
    png, sidecar = folder / f"{name}.png", folder / f"{name}.json"
    if not png.is_file() or not sidecar.is_file() or sha256_file(png) != expected:
        return None
    words = json.loads(sidecar.read_text(encoding="utf-8"))
    return Picture(name, png.read_bytes(), words["caption"], words["alt"])
