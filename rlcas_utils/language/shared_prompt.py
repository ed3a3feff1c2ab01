"""The opening that all chats of a batch share, read once instead of once per chat.

The desk's system prompt is half of a chat. Its keys and values are the same in every row, so one pass over it
serves the batch, and the gradients of all rows flow back into that pass: loss and gradient are those of whole
rows, up to rounding. The saving grows with the batch.
"""

from typing import Any

from torch import Tensor


def shared_length(input_ids_BT: Tensor, labels_BT: Tensor) -> int:
    """Count the tokens at the start that all rows share and none is scored on.

    Args:
        input_ids_BT: Token ids, padded at the right.
        labels_BT: Labels, -100 where nothing is scored.

    Returns:
        Such a number of tokens that at least one unscored token is left before the first label: the token
        that predicts the first label must be read with its row.
    """
    same_T = (input_ids_BT == input_ids_BT[:1]).all(dim=0)
    scored_T = (labels_BT != -100).any(dim=0)
    differs = int(same_T.int().cumprod(0).sum())
    first_label = int((~scored_T).int().cumprod(0).sum())
    return max(0, min(differs, first_label - 1))


def read_shared_prompt(model: Any, inputs: dict[str, Any]) -> dict[str, Any]:
    """Replace the shared start of a batch by its keys and values.

    Args:
        model: The causal language model in training; its gradients must be on.
        inputs: ``input_ids``, ``labels`` and ``attention_mask`` of shape (B, T).

    Returns:
        Inputs for the rest of the rows; unchanged if the rows share nothing. The mask still covers the
        whole rows.
    """
    ids_BT = inputs["input_ids"]
    length = shared_length(ids_BT, inputs["labels"])
    if length == 0:
        return inputs
    cache = model(input_ids=ids_BT[:1, :length], use_cache=True, logits_to_keep=1).past_key_values
    cache.batch_repeat_interleave(len(ids_BT))
    rest = {"input_ids": ids_BT[:, length:], "labels": inputs["labels"][:, length:]}
    return {**inputs, **rest, "cache": cache}
