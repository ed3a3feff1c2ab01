"""Turns chat messages into token ids: the opening prompt once, then one suffix per environment turn."""

from typing import Any

TURN_END = "<|im_end|>"


def turn_end_id(tokenizer: Any) -> int:
    """Returns the id of `<|im_end|>`, the token that closes every ChatML turn.

    Raises:
        ValueError: The tokenizer does not hold `<|im_end|>` as one token.
    """
    ids = tokenizer.encode(TURN_END, add_special_tokens=False)
    if len(ids) != 1:
        raise ValueError(
            f"{TURN_END} is {len(ids)} tokens in this tokenizer; turns could not be closed and the loss mask "
            "would be wrong. Use a ChatML tokenizer (Qwen, SmolLM2) or add the token."
        )
    return ids[0]


def stop_token_ids(model: Any, tokenizer: Any) -> frozenset[int]:
    """Collects every id that ends a turn: from the tokenizer, the model and its generation settings.

    Qwen models list two ids; a run that knows only one of them never stops on the other.

    Args:
        model: Causal language model, possibly wrapped by PEFT.
        tokenizer: Its tokenizer.
    """
    sources = (model.config, getattr(model, "generation_config", None))
    declared = [tokenizer.eos_token_id, *(getattr(source, "eos_token_id", None) for source in sources)]
    ids = {turn_end_id(tokenizer)}
    for value in declared:
        ids.update(value if isinstance(value, (list, tuple)) else [value])
    return frozenset(int(value) for value in ids if value is not None)


def render_prompt(tokenizer: Any, messages: list[dict[str, str]]) -> list[int]:
    """Renders the opening messages with the chat template, ready for the first assistant turn."""
    ids = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    return list(ids)


def turn_suffix(tokenizer: Any, text: str) -> list[int]:
    """Returns the ids between an assistant turn's `<|im_end|>` and the first token of the next such turn.

    Control marks that a customer might type are taken apart, so that text cannot open a turn of its own.

    Args:
        tokenizer: ChatML tokenizer.
        text: What the environment or the customer says.
    """
    safe = text.replace("<|im_start|>", "<im_start>").replace(TURN_END, "<im_end>")
    rendered = f"\n<|im_start|>user\n{safe}{TURN_END}\n<|im_start|>assistant\n"
    return tokenizer.encode(rendered, add_special_tokens=False)


def common_prefix(sequences: list[list[int]]) -> list[int]:
    """Returns the longest start that all sequences share, short of the last token of the shortest one.

    Example:
        >>> common_prefix([[1, 2, 3, 4], [1, 2, 9]])
        [1, 2]
    """
    first, last = min(sequences), max(sequences)
    limit = min(len(sequence) for sequence in sequences) - 1
    length = 0
    while length < limit and first[length] == last[length]:
        length += 1
    return first[:length]
