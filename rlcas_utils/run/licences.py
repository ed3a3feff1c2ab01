"""The licences of what is installed with the course, from the packages' own metadata: `make licences`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from importlib import metadata
from pathlib import Path

from rlcas_utils.config import project_root
from rlcas_utils.records import write_atomic

FILE = "LICENCES.md"
LOCKS = ("requirements.lock", "requirements-weights.txt")
LONGEST = 80  # some packages put a whole licence text where its name belongs
INTRODUCTION = """\
# Licences of what is installed with the course

Made by `make licences` from the metadata of the packages in requirements.lock and requirements-weights.txt; a
test compares it with them. The course itself is under Apache-2.0. On Linux, PyPI's torch brings NVIDIA's CUDA
libraries under NVIDIA's own licence besides, which the CPU wheels (`TORCH_INDEX`) do not. Models of the
Hugging Face hub and hosted models have terms of their own; the offline profiles use neither.
"""


def locked(root: Path) -> dict[str, str]:
    """Return the version of every locked package by name.

    Args:
        root: The project's folder.
    """
    lines = [line for name in LOCKS for line in (root / name).read_text(encoding="utf-8").splitlines()]
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def licence(name: str) -> str:
    """Return a package's licence: its SPDX expression, else its classifiers, else the text of its metadata.

    Args:
        name: Of an installed package.

    Raises:
        importlib.metadata.PackageNotFoundError: It is not installed.
    """
    facts = metadata.metadata(name)
    classifiers = [c for c in facts.get_all("Classifier") or () if c.startswith("License :: ")]
    named = [c.rsplit(" :: ", 1)[-1] for c in classifiers if c != "License :: OSI Approved"]
    stated = (facts.get("License") or "").strip().splitlines()
    found = facts.get("License-Expression") or " or ".join(named) or (stated[0] if stated else "not stated")
    return found[:LONGEST].replace("|", "/")


def render(root: Path) -> str:
    """Return the list as Markdown.

    Args:
        root: The project's folder.
    """
    rows = {name: (version, licence(name)) for name, version in locked(root).items()}
    counts = Counter(found for _, found in rows.values())
    summary = ", ".join(f"{number} {found}" for found, number in counts.most_common(5))
    lines = ["| package | version | licence |", "|---|---|---|"]
    lines += [
        f"| {name} | {version} | {found} |" for name, (version, found) in sorted(rows.items(), key=_by_name)
    ]
    return "\n".join([INTRODUCTION, f"{len(rows)} packages; most often: {summary}.", "", *lines, ""])


def _by_name(row: tuple[str, tuple[str, str]]) -> str:
    return row[0].lower()


def main(arguments: list[str] | None = None) -> int:
    """Write LICENCES.md, or with `--check` only say whether it is up to date."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.run.licences", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when it is out of date")
    options = parser.parse_args(arguments)
    path = project_root() / FILE
    try:
        text = render(project_root())
    except metadata.PackageNotFoundError as error:
        print(f"{error.name} is locked but not installed; run make env first.", file=sys.stderr)
        return 1
    if not options.check:
        write_atomic(path, text)
    elif not path.is_file() or path.read_text(encoding="utf-8") != text:
        print(f"{FILE} differs from the installed packages; run `make licences`.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
