"""On a CPU, unpacks 4-bit weights once per rollout or training instead of once per call.

A 4-bit layer expands its weights at every call, and once more on the way back. For a decoding step of a few
tokens that is most of the work, for a training pass over one episode a good part of it. The numbers are the
same, gradients included, because the weights are frozen. The price is memory, 2 or 4 bytes per weight, which
is given back at the end. On a GPU nothing changes: there the memory is what 4 bits were chosen for.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def expanded_weights(model: Any) -> Iterator[None]:
    """Lets the 4-bit layers of a CPU model multiply with expanded weights while the context is open.

    Args:
        model: Any model; without 4-bit layers, or on another device, nothing happens. Layers that are
            expanded already, as in a rollout during training, stay so afterwards.
    """
    layers = [
        layer
        for layer in _four_bit_layers(model)
        if layer.weight.device.type == "cpu" and "forward" not in vars(layer)
    ]
    for layer in layers:
        layer.forward = _dense_forward(layer)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _four_bit_layers(model: Any) -> list[Any]:
    """Finds them without importing bitsandbytes (seconds): a model that has such layers has imported it."""
    library = sys.modules.get("bitsandbytes")
    return [m for m in model.modules() if isinstance(m, library.nn.Linear4bit)] if library else []


def _dense_forward(layer: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    from bitsandbytes.functional import dequantize_4bit

    dtype = layer.compute_dtype or layer.weight.quant_state.dtype
    weight = dequantize_4bit(layer.weight.data, layer.weight.quant_state).to(dtype)
    bias = None if layer.bias is None else layer.bias.to(dtype)

    def forward(inputs: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(inputs.to(dtype), weight, bias).to(inputs.dtype)

    return forward
