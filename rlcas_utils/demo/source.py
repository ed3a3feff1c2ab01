"""What the demo shows: the newest run, or the committed samples where there is none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rlcas_utils.benchmark import read_rows
from rlcas_utils.config import project_root
from rlcas_utils.records import RecordError, read_record
from rlcas_utils.reference import PROFILE
from rlcas_utils.stages import GRPO, SAC, SFT, STAGES, TELECOM

ROWS = {"sac": SAC, "base": SFT, "sft": SFT, "grpo": GRPO}


@dataclass(frozen=True)
class Source:
    """Where trained agents come from.

    Attributes:
        run_dir: A run folder, or None for the committed samples.
    """

    run_dir: Path | None

    @property
    def profile(self) -> str:
        """Profile of the run; for the samples that of the reference run, which makes their models."""
        return self.run_dir.name if self.run_dir else PROFILE

    @cached_property
    def records(self) -> dict[str, dict[str, Any]]:
        """Records of the stages that have finished, by notebook stem."""
        found = {}
        for stem in STAGES if self.run_dir else ():
            try:
                found[stem] = read_record(self.run_dir / "records" / f"{stem}.json")
            except RecordError:
                continue
        return found

    def headline(self) -> str:
        """Say in one sentence what is shown."""
        if self.run_dir is None:
            return (
                "There is no run yet, so this shows the committed samples of the reference run: recorded "
                "actions where a model is missing. `make course` trains the models."
            )
        finished = max(record["finished"] for record in self.records.values())[:16].replace("T", " ")
        done = f"{len(self.records)} of {len(STAGES)} notebooks"
        return f"Run {self.profile}: {done}, last finished {finished} UTC."

    def command(self, stem: str) -> str:
        """Return the command that makes what a stage makes."""
        return f"make course PROFILE={self.profile} ONLY={stem}"

    def path(self, stem: str, name: str, sample: str = "") -> Path | None:
        """Return a file or folder of a finished stage, or its committed sample where there is no run."""
        if self.run_dir is None:
            path = project_root() / "data" / "samples" / sample
            return path if sample and path.exists() else None
        path = self.run_dir / stem / name
        return path if stem in self.records and path.exists() else None

    def parameters(self, stem: str) -> dict[str, Any]:
        """Return the values that a finished stage ran with."""
        return self.records[stem]["parameters"]

    def recorded(self, agent: str) -> dict[str, list[int | None]]:
        """Return the recorded actions of a trained agent on the benchmark, by ticket."""
        name = f"desk_{agent}.jsonl"
        path = self.path(ROWS[agent], name, sample=name) if agent in ROWS else None
        return {row["ticket_id"]: row["actions"] for row in read_rows(path, "desk")} if path else {}


def newest_run(runs_dir: Path) -> Source:
    """Return the run whose last record is the newest, or the samples.

    Args:
        runs_dir: Where run folders lie.
    """
    dated = [
        (max(path.stat().st_mtime for path in records), records[0].parent.parent)
        for folder in sorted(runs_dir.glob("*/records"))
        if (records := [p for p in folder.glob("*.json") if p.stem in STAGES])
    ]
    runs = [Source(folder) for _, folder in sorted(dated, reverse=True)]
    return next((run for run in runs if run.records), Source(None))


def telecom_model(source: Source) -> Path | None:
    """Return the folder of the telecom model that a run trained."""
    return source.path(TELECOM, "model")
