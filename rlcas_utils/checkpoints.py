"""Checkpoints of a trainer: the newest that reads to its end; damaged ones are said and taken away."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

STATE = "trainer_state.json"  # the trainer writes it last


def last_checkpoint(folder: Path) -> str | None:
    """Return the newest whole checkpoint of a trainer's folder, or None.

    A kill while a checkpoint is written, or a damaged disk, leaves one that cannot be read. It is deleted, so
    that nothing of it mixes with what is written there next, and the one before is taken.

    Args:
        folder: The trainer's `output_dir`.
    """
    found = [path for path in Path(folder).glob("checkpoint-*") if path.name.rsplit("-", 1)[1].isdecimal()]
    for path in sorted(found, key=lambda path: int(path.name.rsplit("-", 1)[1]), reverse=True):
        fault = checkpoint_fault(path)
        if not fault:
            return str(path)
        shutil.rmtree(path)
        print(f"NOTE: {path.name} {fault}, so it is deleted; training goes on from the one before, if any.")
    return None


def checkpoint_fault(path: Path) -> str:
    """Return why a checkpoint cannot be continued from; empty when it can.

    Args:
        path: Folder of one checkpoint.
    """
    try:
        json.loads((path / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "was not written to its end"
    except ValueError:
        return f"has a damaged {STATE}"
    for file in sorted(path.rglob("*")):
        if file.suffix == ".safetensors" and not whole_safetensors(file):
            return f"has a damaged {file.name}"
        if file.suffix in (".pt", ".pth", ".bin") and not zipfile.is_zipfile(file):
            return f"has a damaged {file.name}"
    return ""


def whole_safetensors(path: Path) -> bool:
    """Tell whether a safetensors file is as long as its header says; tensors are not read.

    Args:
        path: The file.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= size - 8:
            return False
        try:
            header = json.loads(file.read(length))
        except ValueError:
            return False
    ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    return size == 8 + length + max(ends, default=0)
