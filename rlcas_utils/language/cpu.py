"""What keeps 4-bit training right and quick on a CPU. Nothing here touches a run on CUDA.

``disable_bnb_cpu_packing`` is about being right. On processors with AVX512-BF16, bitsandbytes repacks the
weights of every 4-bit layer during the first forward pass in evaluation mode, for a fused kernel that has
no gradient. ``train()`` does not undo it: later training steps show a normal loss, while the gradient
through the base model is gone (measured on SmolLM2-135M: cosine 0.10 with the true gradient). A single
``generate`` is enough.

``compact_lm_head`` is about speed. TRL scores only the positions that have a label on GPUs, and all positions
elsewhere. Prompt and padding have none, so the language-model head works for nothing on most tokens.

``explicit_attention`` is about speed too: PyTorch's fused attention for CPUs is slow backwards in bfloat16
(a quarter of a training step with SmolLM2-135M), and plain matrix products are not.

``uncast_adapter_inputs`` spares two copies per adapted layer: PEFT looks for CUDA's autocast only, so under
the CPU's it casts each adapter's input to float32, and autocast casts it straight back.

``refuse_gpu_optimizer`` stops a training on a CPU whose optimizer keeps its state on a GPU.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch


def disable_bnb_cpu_packing(model: torch.nn.Module) -> int:
    """Keep 4-bit layers on the path that has a gradient; call it before the first forward pass.

    Args:
        model: Any model; layers that are not 4-bit are left alone.

    Returns:
        Number of 4-bit layers.
    """
    import bitsandbytes

    layers = [module for module in model.modules() if isinstance(module, bitsandbytes.nn.Linear4bit)]
    for layer in layers:
        layer.support_avx512bf16_for_cpu = False
    return len(layers)


def refuse_gpu_optimizer(optim: Any) -> None:
    """Refuse the paged and 8-bit optimizers of bitsandbytes where there is no CUDA.

    On a GPU they are a choice of the trainers' configurations (``optim="paged_adamw_8bit"``).

    Args:
        optim: Value of ``TrainingArguments.optim``.

    Raises:
        ValueError: The optimizer needs CUDA, and there is none.
    """
    name = str(getattr(optim, "value", optim))
    if ("paged" in name or "8bit" in name) and not torch.cuda.is_available():
        raise ValueError(
            f"optim is {name}; bitsandbytes keeps its state on a CUDA GPU, and there is none here, so no "
            'step could be taken. Leave optim out, or set it to "adamw_torch".'
        )


@contextmanager
def compact_lm_head() -> Iterator[None]:
    """Let TRL score only labelled positions on a CPU too; the losses are the same numbers.

    The switch is a private name of the pinned TRL; a version without it stops here and not silently. With
    CUDA it does nothing, because there TRL does so itself.

    Raises:
        AttributeError: The installed TRL has no such switch.
    """
    if torch.cuda.is_available():
        yield
        return
    import trl.trainer.utils as trl_utils

    original = trl_utils._use_triton
    trl_utils._use_triton = _always
    try:
        yield
    finally:
        trl_utils._use_triton = original


@contextmanager
def explicit_attention(model: Any) -> Iterator[None]:
    """Compute attention by plain matrix products while a CPU trains; with CUDA nothing changes.

    Args:
        model: A transformers model or an adapted one; its own way of attending is put back afterwards.
    """
    if torch.cuda.is_available():
        yield
        return
    fused = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        yield
    finally:
        model.set_attn_implementation(fused)


def uncast_adapter_inputs(model: Any, autocast: bool = True) -> AbstractContextManager[None]:
    """Leave the inputs of adapters in their format while autocast is on; the gradients are equal bit by bit.

    With CUDA nothing changes.

    Args:
        model: A PEFT model, or any other, which is left alone.
        autocast: Whether it is on. Without it an adapter in float32 needs the cast, and nothing changes.
    """
    from peft.helpers import disable_input_dtype_casting

    return disable_input_dtype_casting(model, active=autocast and not torch.cuda.is_available())


def _always(device: Any) -> bool:
    return True
