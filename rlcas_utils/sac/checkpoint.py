"""Everything a run needs to continue, in one safetensors file: no pickles, replaced atomically."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from rlcas_utils.sac.buffer import ReplayBuffer
from rlcas_utils.sac.learner import SacLearner

FORMAT = "rlcas-sac-checkpoint/1"
HEADER = "header"


def write_safetensors(path: Path, tensors: dict[str, Tensor], header: dict[str, str]) -> None:
    """Write tensors and text to one file that is either complete or absent.

    Args:
        path: File to create or replace.
        tensors: Tensors by name.
        header: Text by name, readable without loading the tensors.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")  # two processes never share one
    # One entry, because several would be written in random order, and equal runs should make equal files.
    metadata = {HEADER: json.dumps(header, sort_keys=True)}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, partial, metadata=metadata)
    os.replace(partial, path)


def read_safetensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read back what `write_safetensors` wrote.

    Args:
        path: The file.

    Returns:
        Tensors and header.

    Raises:
        ValueError: If the file is not a complete safetensors file.
    """
    try:
        with safe_open(path, framework="pt") as handle:
            header = json.loads((handle.metadata() or {}).get(HEADER, "{}"))
            return {name: handle.get_tensor(name) for name in handle.keys()}, header  # noqa: SIM118
    except Exception as error:
        raise ValueError(
            f"{path.name} is not a readable safetensors file ({error}); nothing was loaded from it. "
            "Delete it and run the cell that makes it again."
        ) from error


def save_checkpoint(
    path: Path, learner: SacLearner, buffer: ReplayBuffer, rng: np.random.Generator, progress: dict[str, Any]
) -> None:
    """Write the state of a run at an episode boundary.

    Args:
        path: Checkpoint file.
        learner: Networks, optimisers and temperature.
        buffer: Replay buffer; only its filled part is written.
        rng: Generator whose state is kept.
        progress: JSON-able counters and curves.
    """
    tensors = dict(_learner_tensors(learner))
    filled = len(buffer)
    tensors |= {f"buffer.{name}": torch.from_numpy(array[:filled]) for name, array in buffer.arrays.items()}
    state = {"num_added": buffer.num_added, "rng": rng.bit_generator.state, "progress": progress}
    header = {"format": FORMAT, "config": json.dumps(learner.config.to_json()), "state": json.dumps(state)}
    write_safetensors(path, tensors, header)


def load_checkpoint(
    path: Path, learner: SacLearner, buffer: ReplayBuffer, rng: np.random.Generator
) -> dict[str, Any]:
    """Put a saved state back, in place.

    Args:
        path: Checkpoint file.
        learner: Freshly built learner of the same configuration.
        buffer: Empty buffer of the same capacity.
        rng: Generator to set.

    Returns:
        The counters and curves given to `save_checkpoint`.

    Raises:
        ValueError: If the file is damaged, of another format, or made with other settings.
    """
    tensors, header = read_safetensors(path)
    if header.get("format") != FORMAT or json.loads(header["config"]) != learner.config.to_json():
        raise ValueError(
            f"{path.name} was written by another format or with other settings; continuing would mix two "
            "runs. Delete it, or restore the settings it was made with."
        )
    state = json.loads(header["state"])
    with torch.no_grad():
        _restore_learner(learner, tensors)
    for name, array in buffer.arrays.items():
        rows = tensors[f"buffer.{name}"].numpy()
        array[: len(rows)] = rows
    buffer.num_added = state["num_added"]
    rng.bit_generator.state = state["rng"]
    return state["progress"]


def _learner_tensors(learner: SacLearner):
    for part in ("actor", "critic", "target_critic"):
        for name, tensor in getattr(learner, part).state_dict().items():
            yield f"{part}.{name}", tensor
    yield "log_alpha", learner.log_alpha.detach()
    for part, optimiser in learner.optimisers.items():
        for index, moments in optimiser.state_dict()["state"].items():
            for name, tensor in moments.items():
                yield f"optimiser.{part}.{index}.{name}", tensor


def _restore_learner(learner: SacLearner, tensors: dict[str, Tensor]) -> None:
    for part in ("actor", "critic", "target_critic"):
        prefix = f"{part}."
        weights = {
            key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)
        }
        getattr(learner, part).load_state_dict(weights)
    learner.log_alpha.copy_(tensors["log_alpha"])
    for part, optimiser in learner.optimisers.items():
        moments: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith(f"optimiser.{part}."):
                _, _, index, name = key.split(".")
                moments.setdefault(int(index), {})[name] = value
        optimiser.load_state_dict({"state": moments, "param_groups": optimiser.state_dict()["param_groups"]})
