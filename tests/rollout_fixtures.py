"""A tiny ChatML model with random weights, and scripted conversations, for the rollout and GRPO tests."""

import json

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SYSTEM = "You run a small desk. Answer with one JSON object, then wait for the next line of the customer."
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def make_tokenizer() -> PreTrainedTokenizerFast:
    """ByteLevel BPE of about 300 entries with the three ChatML marks."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator([SYSTEM, json.dumps({"reasoning": "a", "action_id": 3})] * 3, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token="<|endoftext|>",
    )
    tokenizer.chat_template = CHATML
    return tokenizer


FAMILIES = {
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "llama": (LlamaConfig, LlamaForCausalLM),
}


def make_model(
    tokenizer: PreTrainedTokenizerFast, family: str = "qwen2", seed: int = 0, stop_scale: float = 1.5
) -> torch.nn.Module:
    """Random weights, two layers, width 32. `stop_scale` makes the turn end likely now and then."""
    config_class, model_class = FAMILIES[family]
    extra = {"head_dim": 8} if family == "qwen3" else {}
    config = config_class(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        **extra,
    )
    torch.manual_seed(seed)
    model = model_class(config).eval()
    with torch.no_grad():
        model.lm_head.weight[tokenizer.eos_token_id] *= stop_scale
    return model


class Scripted:
    """Says prepared lines, whatever it hears, and remembers what it heard."""

    def __init__(self, opening: str, lines: list[str]) -> None:
        self.messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": opening}]
        self.lines = lines
        self.heard: list[str] = []
        self.cut: list[bool] = []
        self.abandoned = ""

    def reply(self, text: str, *, truncated: bool = False) -> str | None:
        self.heard.append(text)
        self.cut.append(truncated)
        said = len(self.heard)
        return self.lines[said - 1] if said <= len(self.lines) else None

    def abandon(self, reason: str) -> None:
        self.abandoned = reason


def ragged_conversations(count: int) -> list[Scripted]:
    """Conversations of 1 to 5 turns with lines of very different length."""
    return [
        Scripted(
            f"case {i}: " + "my order is late " * (i % 4),
            [f"line {i}.{t} " * (1 + (i * t) % 5) for t in range(i % 5)],
        )
        for i in range(count)
    ]
