"""Messages as vectors of a language model: the mean of a hidden layer over a message's tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


@torch.no_grad()
def mean_embeddings(
    model: Any, tokenizer: Any, texts: Sequence[str], batch_size: int = 16
) -> NDArray[np.float32]:
    """Average the middle hidden layer, which holds more of a text's meaning than the last one.

    Args:
        model: Causal language model of transformers.
        tokenizer: Its tokenizer, with a pad token.
        texts: Messages, N of them.
        batch_size: Messages at once.

    Returns:
        Shape (N, H), float32.
    """
    ids = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    found: dict[int, NDArray[np.float32]] = {}
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        length = max(len(ids[i]) for i in chosen)
        ids_BT = torch.full((len(chosen), length), tokenizer.pad_token_id, device=model.device)
        mask_BT = torch.zeros_like(ids_BT)
        for row, i in enumerate(chosen):
            ids_BT[row, : len(ids[i])] = torch.tensor(ids[i])
            mask_BT[row, : len(ids[i])] = 1
        layers = model(ids_BT, attention_mask=mask_BT, output_hidden_states=True).hidden_states
        hidden_BTH = layers[len(layers) // 2].float()
        mean_BH = (hidden_BTH * mask_BT.unsqueeze(-1)).sum(dim=1) / mask_BT.sum(dim=1, keepdim=True)
        found |= dict(zip(chosen, mean_BH.cpu().numpy(), strict=True))
    return np.array([found[i] for i in range(len(ids))])
