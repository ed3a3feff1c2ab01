"""Weights that are split over processes (FSDP), kept whole while each process plays its own episodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.distributed.fsdp import FSDPModule


@contextmanager
def whole_weights(model: torch.nn.Module) -> Iterator[None]:
    """Keep all shards of a model gathered, so that a forward pass waits for no other process.

    A split layer gathers its weights at each forward pass, with all processes taking part. Episodes differ in
    their number of turns, so the pass that one process makes once more would wait for the others for ever.
    Every process must enter and leave together. Without FSDP nothing happens.

    Args:
        model: The policy; FSDP2 marks its split parts as `FSDPModule`.
    """
    parts = [module for module in model.modules() if isinstance(module, FSDPModule)]
    for part in parts:
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()
    try:
        yield
    finally:
        for part in parts:
            part.reshard()
            part.set_reshard_after_forward(True, recurse=False)
