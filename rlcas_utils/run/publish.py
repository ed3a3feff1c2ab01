"""Copies a finished run's records into the project; the reference run's figures and samples too."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections import Counter
from pathlib import Path

from rlcas_utils.config import profile_names, project_root
from rlcas_utils.records import read_record, sha256_file, write_atomic
from rlcas_utils.reference import PROFILE
from rlcas_utils.stages import FILTER, SAC, SFT, STAGES

CHATS_PER_CATEGORY = {"train": 25, "validation": 5}


class UnfitForReference(ValueError):
    """The run cannot be the project's reference; the text says why."""


def publish(run_dir: Path, root: Path) -> list[Path]:
    """Copy records to results/<profile>/; of the reference profile also figures and samples of hand-offs.

    Args:
        run_dir: A finished run, such as runs/cpu_long.
        root: The project's folder.

    Returns:
        The files written.

    Raises:
        UnfitForReference: A stage is missing, ran from uncommitted sources, or its files have changed since.
    """
    records = {stem: _record(run_dir, stem) for stem in STAGES}
    for record in records.values():
        for name, expected in record["figures"].items():
            _unchanged(run_dir / "figures" / f"{name}.png", expected)
    results, figures, samples = root / "results" / run_dir.name, root / "figures", root / "data" / "samples"
    pictures = [run_dir / "figures" / name for record in records.values() for name in record["figures"]]
    written = [_copy(run_dir / "records" / f"{stem}.json", results / f"{stem}.json") for stem in STAGES]
    if run_dir.name != PROFILE:
        return written  # figures and samples belong to one run, or their numbers would not fit together
    for picture in (path.with_suffix(ending) for path in pictures for ending in (".png", ".json")):
        written.append(_copy(picture, figures / picture.name))
    for rows in (run_dir / name for name in _episode_rows(records)):
        written.append(_copy(rows, samples / rows.name))
    written.append(_copy(run_dir / SAC / "expert.safetensors", samples / "sac_expert.safetensors"))
    base = records[SFT]["parameters"]["MODEL"]
    written += _sample_adapter(run_dir / SFT / "adapter", samples / "sft_adapter", base)
    chats = [run_dir / FILTER / f"{split}.jsonl" for split in CHATS_PER_CATEGORY]
    return written + [_sample_chats(path, samples) for path in chats]


def _episode_rows(records: dict[str, dict]) -> list[str]:
    outputs = [name for record in records.values() for name in record["outputs"] if name.endswith(".jsonl")]
    return [name for name in outputs if Path(name).name.startswith(("desk_", "telecom_"))]


def _sample_chats(path: Path, folder: Path) -> Path:
    """Write the first chats of each category, so that a sample is as balanced as its source."""
    seen: Counter[str] = Counter()
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        category = json.loads(line)["category"]
        seen[category] += 1
        if seen[category] <= CHATS_PER_CATEGORY[path.stem]:
            kept.append(line + "\n")
    return write_atomic(folder / f"sft_{path.name}", "".join(kept))


def _sample_adapter(source: Path, target: Path, base: str) -> list[Path]:
    """Write an adapter at half its size, with the base model's name and not the place it was loaded from."""
    from safetensors.torch import load_file, save_file

    config = json.loads((source / "adapter_config.json").read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = base
    target.mkdir(parents=True, exist_ok=True)
    weights = {name: value.half() for name, value in load_file(source / "adapter_model.safetensors").items()}
    save_file(weights, target / "adapter_model.safetensors", metadata={"format": "pt"})
    text = json.dumps(config, indent=2) + "\n"
    return [write_atomic(target / "adapter_config.json", text), target / "adapter_model.safetensors"]


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


def _copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(source, target))


def main(arguments: list[str] | None = None) -> int:
    """Copy the run of a profile into the project as its reference."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.run.publish", description=main.__doc__)
    parser.add_argument("profile", choices=[name for name in profile_names() if name != "smoke"])
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
