"""The sizes of the two large models, written down so that memory can be planned without a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# The fields of each model's config.json on the Hugging Face hub that fix its tensors.
CONFIGS: dict[str, dict[str, Any]] = {
    # https://huggingface.co/Qwen/Qwen2.5-3B-Instruct/blob/main/config.json (3.09 B parameters)
    "Qwen/Qwen2.5-3B-Instruct": {
        "model_type": "qwen2",
        "hidden_size": 2048,
        "intermediate_size": 11008,
        "num_hidden_layers": 36,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "vocab_size": 151936,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
    },
    # https://huggingface.co/Qwen/Qwen3-4B-Instruct-2507/blob/main/config.json (4.02 B parameters)
    "Qwen/Qwen3-4B-Instruct-2507": {
        "model_type": "qwen3",
        "hidden_size": 2560,
        "intermediate_size": 9728,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": True,
    },
}


@dataclass(frozen=True)
class Sizes:
    """What decides the memory of a Qwen2 or Qwen3 model.

    Attributes:
        hidden: Width of the residual stream.
        inner: Width inside the MLP.
        layers: Transformer layers.
        queries: Width of all query heads together.
        keys: Width of all key heads together; the values have the same.
        heads: Query heads.
        vocabulary: Rows of the embedding, which is the head as well where they are tied.
        tied: Embedding and head are one matrix.
        head_norms: Queries and keys pass a norm of their own (Qwen3).
    """

    hidden: int
    inner: int
    layers: int
    queries: int
    keys: int
    heads: int
    vocabulary: int
    tied: bool
    head_norms: bool

    @property
    def linear_shapes(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of the seven linear layers of one transformer layer."""
        attention = ((self.hidden, self.queries), (self.hidden, self.keys), (self.hidden, self.keys))
        mlp = ((self.hidden, self.inner), (self.hidden, self.inner), (self.inner, self.hidden))
        return (*attention, (self.queries, self.hidden), *mlp)

    @property
    def num_linear(self) -> int:
        """Weights of all linear layers: what NF4 quantises."""
        return self.layers * sum(inputs * outputs for inputs, outputs in self.linear_shapes)

    @property
    def num_embedding(self) -> int:
        """Weights of embedding and head, which stay in 16 bits."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)

    def num_adapter(self, rank: int) -> int:
        """Weights of LoRA factors beside every linear layer."""
        return self.layers * rank * sum(inputs + outputs for inputs, outputs in self.linear_shapes)


def sizes(config: dict[str, Any]) -> Sizes:
    """Return what decides the memory of a model.

    Args:
        config: Fields of a config.json, as in `CONFIGS`.
    """
    heads, hidden = config["num_attention_heads"], config["hidden_size"]
    head_size = config.get("head_dim") or hidden // heads
    return Sizes(
        hidden=hidden,
        inner=config["intermediate_size"],
        layers=config["num_hidden_layers"],
        queries=heads * head_size,
        keys=config["num_key_value_heads"] * head_size,
        heads=heads,
        vocabulary=config["vocab_size"],
        tied=config["tie_word_embeddings"],
        head_norms=config["model_type"] == "qwen3",
    )
