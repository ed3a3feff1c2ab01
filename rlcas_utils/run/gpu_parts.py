"""What the GPU check is made of: a line of its table, models with random weights, episodes that never end."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, TrainerCallback

from rlcas_utils import language
from rlcas_utils.architectures import CONFIGS
from rlcas_utils.language.sources import resolve_source

SMALL = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 4096,
}


@dataclass(frozen=True)
class Phase:
    """One line of the table.

    Attributes:
        name: What was done.
        moment: The moment of the memory plan that it belongs to, or an empty text.
        steps: Optimizer steps.
        peak_gib: Most memory of the GPU in it; without CUDA, of the process so far.
        tokens_per_s: Tokens trained on, or sampled; 0 where none were.
        seconds: Its length.
    """

    name: str
    moment: str
    steps: int
    peak_gib: float
    tokens_per_s: float
    seconds: float


class Endless:
    """A conversation that never ends by itself, so that episodes reach their full length.

    Attributes:
        messages: The opening, as long as the stage's prompt.
        heard: Distinct characters said so far, which is the reward.
    """

    def __init__(self, opening: str, reply: str) -> None:
        """Take the opening and what is answered to every turn."""
        self.messages = [{"role": "user", "content": opening}]
        self._reply = reply
        self.heard: set[str] = set()

    def reply(self, text: str, *, truncated: bool = False) -> str:
        """Note what was said and go on."""
        self.heard |= set(text)
        return self._reply

    def abandon(self, reason: str) -> None:
        """Told that the budget is used up."""


class StopAt(TrainerCallback):
    """Ends a training after the step in which the time is up."""

    def __init__(self, deadline: float) -> None:
        """Take the moment, in `time.monotonic` seconds."""
        self._deadline = deadline

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Look at the clock."""
        control.should_training_stop |= time.monotonic() > self._deadline


def filler(tokenizer: Any, tokens: int) -> str:
    """Return text of about as many tokens."""
    sentence = "Please look at order 1234, which is late, and tell me what happened to it. "
    length = len(tokenizer.encode(sentence, add_special_tokens=False))
    return sentence * max(1, tokens // length)


def build_model(name: str, folder: Path, on_gpu: bool) -> Path:
    """Write a model of a known architecture with random weights and a small vocabulary's tokenizer.

    Args:
        name: Key of `CONFIGS`.
        folder: Where to.
        on_gpu: Real sizes, drawn on the GPU; else the scaled-down ones.
    """
    config = AutoConfig.for_model(**(CONFIGS[name] | ({} if on_gpu else SMALL)))
    torch.manual_seed(0)
    with torch.device("cuda" if on_gpu else "cpu"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if on_gpu else torch.float32)
    model.save_pretrained(folder)
    tokenizer = language.load_tokenizer(resolve_source("tiny"))
    tokenizer.save_pretrained(folder)
    del model
    free_memory()
    return folder


def free_memory() -> None:
    """Give back what nobody holds any more, so that the next peak is its own."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
