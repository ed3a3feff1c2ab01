"""Makes a finished run the project's reference: its records, figures and episode rows."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from rlcas_utils.config import project_root
from rlcas_utils.records import read_record, sha256_file
from rlcas_utils.stages import STAGES


class UnfitForReference(ValueError):
    """The run cannot be the project's reference; the text says why."""


def publish(run_dir: Path, root: Path) -> list[Path]:
    """Copy records to results/<profile>/, figures to figures/, episode rows to data/samples/.

    Args:
        run_dir: A finished run, such as runs/cpu.
        root: The project's folder.

    Returns:
        The files written.

    Raises:
        UnfitForReference: A stage is missing, ran from uncommitted sources, or its files have changed since.
    """
    records = {stem: _record(run_dir, stem) for stem in STAGES}
    copies = [(run_dir / "records" / f"{stem}.json", root / "results" / run_dir.name) for stem in STAGES]
    for record in records.values():
        for name, expected in record["figures"].items():
            picture = run_dir / "figures" / f"{name}.png"
            _unchanged(picture, expected)
            copies += [(picture, root / "figures"), (picture.with_suffix(".json"), root / "figures")]
        for name, expected in record["outputs"].items():
            if name.endswith(".jsonl") and Path(name).name.startswith(("desk_", "telecom_")):
                _unchanged(run_dir / name, expected)
                copies.append((run_dir / name, root / "data" / "samples"))
    return [_copy(source, folder) for source, folder in copies]


def _record(run_dir: Path, stem: str) -> dict:
    path = run_dir / "records" / f"{stem}.json"
    if not path.is_file():
        raise UnfitForReference(f"{stem} has no record in {run_dir.name}; run the course to its end first.")
    record = read_record(path)
    if record["git"]["dirty"]:
        raise UnfitForReference(
            f"{stem} ran from uncommitted sources, so nobody could run it again. Commit, then run it again."
        )
    return record


def _unchanged(path: Path, expected: str) -> None:
    if not path.is_file() or sha256_file(path) != expected:
        raise UnfitForReference(
            f"{path.name} is not the file that its record describes. Run its notebook again."
        )


def _copy(source: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy2(source, folder / source.name))


def main(arguments: list[str] | None = None) -> int:
    """Copy the run of a profile into the project as its reference."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.run.publish", description=main.__doc__)
    parser.add_argument("profile", choices=["cpu", "a10g", "multi_gpu"])
    parser.add_argument("--runs-dir", type=Path, default=project_root() / "runs")
    options = parser.parse_args(arguments)
    try:
        written = publish(options.runs_dir / options.profile, project_root())
    except UnfitForReference as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(written)} files written. Next: make readme, look at the figures, commit.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
