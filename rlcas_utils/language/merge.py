"""Put an adapter into the weights of its base model, and prove that the result still answers the same.

An adapter was trained beside NF4 weights, so it corrects exactly their rounding too. The way that keeps
what was trained: read the NF4 weights back into float32, add the adapter there, cast once at the end.
Adding it to the original 16-bit weights gives a different model; adding it to the 4-bit weights rounds it
away.
"""

import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rlcas_utils.language.errors import LanguageModelError
from rlcas_utils.language.loader import load_model
from rlcas_utils.language.lora import load_adapter

MIN_AGREEMENT = 19 / 20


class MergeRefusedError(LanguageModelError):
    """The merged model does not answer like the adapter that was trained and measured."""


def merge_adapter(
    source: str | Path, adapter: str | Path, *, quantize: bool, dtype: str, device: str = "auto"
) -> Any:
    """Dequantise the base, add the adapter in float32, and return a plain model.

    Args:
        source: Base model, as in training.
        adapter: Folder of the adapter.
        quantize: Whether the adapter was trained on NF4 weights.
        dtype: Number format that the base was loaded in for training: NF4 rounds differently from another
            one.
        device: As for ``load_model``.

    Returns:
        A float32 model without any trace of PEFT or bitsandbytes.
    """
    base = load_model(source, quantize=quantize, dtype=dtype, device=device)
    if quantize:
        base = base.dequantize()
    return load_adapter(base.float(), adapter, trainable=False).merge_and_unload().eval()


def save_merged(model: Any, tokenizer: Any, target: Path) -> Path:
    """Write a merged model in float16 with its tokenizer, complete or not at all.

    Args:
        model: From ``merge_adapter``.
        tokenizer: Its tokenizer.
        target: Folder; an older one is replaced.
    """
    unfinished = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        model.to(torch.float16).save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(unfinished, target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return target


@dataclass(frozen=True)
class Agreement:
    """How close a model is to the adapter on its 4-bit base.

    Attributes:
        equal_actions: Share of decision points with the same greedy action.
        max_logit_difference: Over all tokens of the reference answers.
        kl: Mean Kullback-Leibler divergence from the adapter, nats per token.
        equal_tokens: Share of tokens with the same most probable next token.
    """

    equal_actions: float
    max_logit_difference: float
    kl: float
    equal_tokens: float


def compare(
    reference_actions: Sequence[int | str],
    reference_TV: torch.Tensor,
    actions: Sequence[int | str],
    logits_TV: torch.Tensor,
) -> Agreement:
    """Compare a model's greedy actions and logits with those of the adapter on its 4-bit base.

    Args:
        reference_actions: Of the adapter, from ``greedy_actions``.
        reference_TV: Of the adapter, from ``answer_logits``.
        actions: Of the other model, at the same points.
        logits_TV: Of the other model, at the same points.
    """
    same = [a == b for a, b in zip(reference_actions, actions, strict=True)]
    p_TV, q_TV = reference_TV.log_softmax(-1), logits_TV.log_softmax(-1)
    return Agreement(
        equal_actions=sum(same) / len(same),
        max_logit_difference=float((reference_TV - logits_TV).abs().max()),
        kl=float((p_TV.exp() * (p_TV - q_TV)).sum(-1).mean()),
        equal_tokens=float((p_TV.argmax(-1) == q_TV.argmax(-1)).float().mean()),
    )


def require_agreement(agreement: Agreement, minimum: float = MIN_AGREEMENT) -> None:
    """Stop an export whose actions differ from what was trained and measured.

    Raises:
        MergeRefusedError: Fewer than ``minimum`` of the actions are equal.
    """
    if agreement.equal_actions < minimum:
        raise MergeRefusedError(
            f"the merged model takes the adapter's action at {agreement.equal_actions:.0%} of the points, "
            f"needed {minimum:.0%}; its results would not be the ones reported. Merge with merge_adapter "
            "and the dtype of training, or ship the adapter unmerged."
        )
