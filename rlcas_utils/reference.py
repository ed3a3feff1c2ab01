"""The committed reference run: its profile, and its records by notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlcas_utils.records import read_record
from rlcas_utils.stages import STAGES

PROFILE = "cpu_long"
"""Profile whose run fills README.md, the pipeline picture, the samples and the figures."""
TIMED = ("cpu", "a10g")
"""Profiles whose times stand beside the reference run's, where they have been run."""


def reference_records(root: Path, profile: str = PROFILE) -> dict[str, dict[str, Any]]:
    """Return the committed records of a profile's run, by notebook stem; only those that are there.

    Args:
        root: The project's folder.
        profile: Folder below `results/`.

    Raises:
        rlcas_utils.records.RecordError: if a record is damaged.
    """
    paths = {stem: root / "results" / profile / f"{stem}.json" for stem in STAGES}
    return {stem: read_record(path) for stem, path in paths.items() if path.is_file()}


def other_runs(root: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the records of the other timed profiles, by profile; empty where there was no run.

    Args:
        root: The project's folder.
    """
    return {name: reference_records(root, name) for name in TIMED}
