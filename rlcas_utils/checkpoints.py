"""Checkpoints of a trainer: the newest that reads to its end; damaged ones are said and taken away."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

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


def already_trained(trainer: Any, checkpoint: str | bool | None) -> bool:
    """Load a checkpoint of the last step and say so; training from it would take one step too many.

    The trainer looks whether it is done only after a step. A run that was killed between its last checkpoint
    and the end of its stage, or trained elsewhere, would end one step later than an unbroken one.

    Args:
        trainer: A trainer of transformers.
        checkpoint: Folder of the checkpoint to go on from, or nothing.

    Returns:
        True when nothing is left to train; weights and log are those of the checkpoint.
    """
    if not isinstance(checkpoint, str) or int(checkpoint.rsplit("-", 1)[-1]) < trainer.args.max_steps:
        return False
    if trainer.args.max_steps <= 0:
        return False
    trainer._load_from_checkpoint(checkpoint)
    trainer.state = type(trainer.state).load_from_json(str(Path(checkpoint) / STATE))
    return True


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
