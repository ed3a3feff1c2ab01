"""Fills the generated blocks of README.md from the committed run records: `make readme`.

A block stands between `<!-- begin:name -->` and `<!-- end:name -->`. Nothing in it is typed by hand: a test
compares README.md with what this module writes.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlcas_utils import readme_blocks, readme_gpu
from rlcas_utils.config import project_root
from rlcas_utils.readme_figure import draw_pipeline
from rlcas_utils.records import write_atomic
from rlcas_utils.reference import other_runs, reference_records

Records = Mapping[str, Mapping[str, Any]]


class ReadmeError(ValueError):
    """README.md lacks a marker of a generated block."""


def repository_url(root: Path) -> str:
    """Return the address in pyproject.toml's `[project.urls] Repository`, or an empty text."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "").rstrip("/")


def replace_block(text: str, name: str, content: str) -> str:
    """Return the text with the content of one generated block replaced.

    Raises:
        ReadmeError: if the markers are not there exactly once.
    """
    begin, end = f"<!-- begin:{name} -->", f"<!-- end:{name} -->"
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ReadmeError(
            f"README.md needs the lines {begin} and {end} once; the block has no place without them."
        )
    return pattern.sub(lambda _: f"{begin}\n{content.strip()}\n{end}", text)


def blocks(root: Path) -> dict[str, str]:
    """Return the content of every generated block, made from records, notebooks and pyproject.toml."""
    records, url = reference_records(root), repository_url(root)
    return {
        "headline": readme_blocks.headline(records),
        "picture": readme_blocks.picture(records),
        "notebooks": readme_blocks.notebooks(root, records, url, other_runs(root)),
        "desk": readme_blocks.desk(records),
        "telecom": readme_blocks.telecom(records),
        "run": readme_blocks.run(records),
        "gpu": readme_gpu.block(root, records),
    }


def render(root: Path) -> str:
    """Return README.md with all generated blocks filled."""
    text = (root / "README.md").read_text(encoding="utf-8")
    for name, content in blocks(root).items():
        text = replace_block(text, name, content)
    return text


def main(arguments: list[str] | None = None) -> int:
    """Write README.md and the pipeline figure, or with `--check` only say whether they are up to date."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.readme", description=main.__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when README.md is out of date"
    )
    options = parser.parse_args(arguments)
    root = project_root()
    text, path = render(root), root / "README.md"
    if options.check:
        if text == path.read_text(encoding="utf-8"):
            return 0
        print("README.md differs from the records in results/; run `make readme`.", file=sys.stderr)
        return 1
    write_atomic(path, text)
    draw_pipeline(readme_blocks.headlines(reference_records(root)), root / "figures" / "pipeline")
    print("README.md and figures/pipeline.png are written.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
