"""LoRA adapters: small trainable matrices beside every linear layer of a frozen model."""

from pathlib import Path
from typing import Any

import torch

from rlcas_utils.language.errors import LanguageModelError


def attach_lora(model: Any, *, r: int, alpha: int, dropout: float = 0.0, seed: int = 0) -> Any:
    """Put a fresh adapter beside every linear layer except the head.

    The adapter is float32 whatever the base is: at learning rates around 1e-4 most updates are smaller
    than what bfloat16 can add to a weight.

    Args:
        model: Frozen base, NF4 or not.
        r: Rank of the two factors; the weight change of a layer is ``B @ A * alpha / r``.
        alpha: Scale.
        dropout: On the adapter's input. GRPO needs 0, or the policy that samples differs from the one
            trained.
        seed: Of the random factor ``A``; ``B`` starts at zero, so training starts from the base model.

    Returns:
        A PEFT model in training mode.

    Source: Hu et al. (2021), LoRA, section 4.1.
    """
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(
        r=r,
        lora_alpha=alpha,
        lora_dropout=dropout,
        bias="none",
        task_type="CAUSAL_LM",
        target_modules="all-linear",
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        adapted = get_peft_model(model, config)
    train_in_float32(adapted)
    return adapted.train()


def load_adapter(model: Any, folder: str | Path, *, trainable: bool) -> Any:
    """Put a saved adapter onto its base model.

    Args:
        model: The base, loaded as it was when the adapter was trained.
        folder: Where the adapter was saved.
        trainable: Train it further.

    Returns:
        A PEFT model, in training mode if trainable.

    Raises:
        LanguageModelError: The adapter was trained on a model of another shape.
    """
    from peft import PeftModel

    try:
        adapted = PeftModel.from_pretrained(model, str(folder), is_trainable=trainable)
    except RuntimeError as error:
        if "size mismatch" not in str(error):
            raise
        raise LanguageModelError(
            f"the adapter in {Path(folder).name} does not fit {model.config.name_or_path}: it was trained "
            "beside layers of other sizes, so nothing of it could be used. Set MODEL to the model it was "
            "trained on, or run notebook 04 with this MODEL first."
        ) from error
    if trainable:
        train_in_float32(adapted)
    return adapted.train(trainable)


def train_in_float32(model: torch.nn.Module) -> None:
    """Cast trainable parameters to float32, in place; trainers cast adapters of 4-bit models to bfloat16."""
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()


def count_parameters(model: torch.nn.Module) -> tuple[int, int]:
    """Return (trainable parameters, all parameters); a 4-bit weight counts as the numbers it stands for."""
    trainable = total = 0
    for parameter in model.parameters():
        state = getattr(parameter, "quant_state", None)
        size = state.shape.numel() if state is not None else parameter.numel()
        total += size
        trainable += size if parameter.requires_grad else 0
    return trainable, total
