"""Supervised fine-tuning: whole chats become token rows in which only the assistant's turns carry a label.

The rows are put together exactly as rollouts put a conversation together: the opening is rendered once
with the chat template, then come the assistant's tokens, its ``<|im_end|>``, and the next user turn. So
the model is trained on the contexts that it will meet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rlcas_utils.checkpoints import last_checkpoint
from rlcas_utils.language.errors import LanguageModelError
from rlcas_utils.rollouts import render_prompt, turn_suffix
from rlcas_utils.rollouts.expanded import expanded_weights

IGNORED = -100  # label of tokens that the loss skips, as in PyTorch's cross entropy
TURN_END = "<|im_end|>"


class MaskError(LanguageModelError):
    """A row whose supervised tokens are not exactly the assistant's turns; the run must not start."""


def token_row(tokenizer: Any, messages: Sequence[dict[str, str]]) -> dict[str, list[int]]:
    """Turn one chat into token ids and labels.

    Args:
        tokenizer: ChatML tokenizer.
        messages: System (optional), then user and assistant in turn, ending with the assistant.

    Returns:
        ``input_ids`` and ``labels`` of equal length T; a label is the token itself on assistant turns, their
        ``<|im_end|>`` included, and -100 elsewhere.
    """
    first = next(i for i, message in enumerate(messages) if message["role"] == "assistant")
    input_ids = render_prompt(tokenizer, list(messages[:first]))
    labels = [IGNORED] * len(input_ids)
    for message in messages[first:]:
        if message["role"] == "assistant":
            turn = tokenizer.encode(message["content"] + TURN_END, add_special_tokens=False)
            labels += turn
        else:
            turn = turn_suffix(tokenizer, message["content"])
            labels += [IGNORED] * len(turn)
        input_ids += turn
    return {"input_ids": input_ids, "labels": labels}


def check_row(tokenizer: Any, messages: Sequence[dict[str, str]], row: dict[str, list[int]]) -> None:
    """Decode the supervised tokens of a row and compare them with the assistant's turns.

    Args:
        tokenizer: The one that made the row.
        messages: The chat.
        row: From ``token_row`` or any other way of masking.

    Raises:
        MaskError: Nothing is supervised, everything is, or something else than the assistant's turns.
    """
    supervised = [
        token for token, label in zip(row["input_ids"], row["labels"], strict=True) if label != IGNORED
    ]
    if not supervised:
        raise MaskError("no token of a sample is supervised; the run would learn nothing. Mask by turns.")
    if len(supervised) == len(row["input_ids"]):
        raise MaskError(
            "all tokens of a sample are supervised; the model would learn to write the customer's turns. "
            "Set labels to -100 outside the assistant's turns."
        )
    seen = tokenizer.decode(supervised, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    expected = "".join(m["content"] + TURN_END for m in messages if m["role"] == "assistant")
    if seen != expected:
        raise MaskError(
            f"supervised text is {seen[:200]!r}, expected {expected[:200]!r}; the loss would teach something "
            "else than the answers. Build rows with token_row."
        )


@dataclass(frozen=True)
class TokenRows:
    """Chats ready for training.

    Attributes:
        rows: ``input_ids`` and ``labels`` per chat.
        num_too_long: Chats left out because they exceed the token limit.
        num_tokens: Tokens in all rows.
        num_supervised: Those that carry a label.
    """

    rows: list[dict[str, list[int]]]
    num_too_long: int
    num_tokens: int
    num_supervised: int


def build_rows(tokenizer: Any, chats: Sequence[Sequence[dict[str, str]]], max_tokens: int) -> TokenRows:
    """Turn chats into checked rows; a chat that would be cut is left out and counted.

    Args:
        tokenizer: ChatML tokenizer.
        chats: One list of messages per episode.
        max_tokens: Longest row.

    Raises:
        MaskError: A row's labels are wrong, or no chat fits.
    """
    rows = []
    for messages in chats:
        row = token_row(tokenizer, messages)
        check_row(tokenizer, messages, row)
        if len(row["input_ids"]) <= max_tokens:
            rows.append(row)
    if not rows:
        raise MaskError(f"none of {len(chats)} chats fits {max_tokens} tokens; raise MAX_TOKENS.")
    supervised = sum(label != IGNORED for row in rows for label in row["labels"])
    return TokenRows(rows, len(chats) - len(rows), sum(len(row["input_ids"]) for row in rows), supervised)


def make_sft_trainer(
    model: Any,
    tokenizer: Any,
    config: Any,
    train: TokenRows,
    validation: TokenRows,
    progress: Callable[[str], None] = print,
    play: Callable[[], Sequence[float]] | None = None,
) -> Any:
    """Make a TRL ``SFTTrainer`` for ready-made rows.

    Args:
        model: PEFT model from ``attach_lora``.
        tokenizer: Its tokenizer.
        config: ``trl.SFTConfig``; preparation of the data set is switched off in it, because the rows are
            ready.
        train: Rows to learn from.
        validation: Rows to measure the loss on.
        progress: Takes one line per logging step.
        play: Plays episodes with the model as it is and returns what they earned; called whenever the loss
            on held-out chats is measured.

    Returns:
        The trainer. Each of its log rows also holds ``elapsed_s``, the seconds since the row before, so
        that the training time survives a resumed run.

    Raises:
        ValueError: The optimizer needs a GPU, and there is none.
    """
    from datasets import Dataset

    from rlcas_utils.language.cpu import refuse_gpu_optimizer
    from rlcas_utils.language.lora import train_in_float32
    from rlcas_utils.language.sft_trainer import ReportingSFTTrainer

    refuse_gpu_optimizer(config.optim)
    config.dataset_kwargs = {**(config.dataset_kwargs or {}), "skip_prepare_dataset": True}
    trainer = ReportingSFTTrainer(
        model=model,
        args=config,
        train_dataset=Dataset.from_list(train.rows),
        eval_dataset=Dataset.from_list(validation.rows),
        processing_class=tokenizer,
        progress=progress,
        play=play,
    )
    train_in_float32(trainer.model)  # the trainer has just cast the adapter of a 4-bit model to bfloat16
    return trainer


def train_or_resume(trainer: Any) -> list[dict[str, float]]:
    """Train, from the newest whole checkpoint in the output folder if a run before was killed.

    Returns:
        The log rows of the whole run, those before the kill included.
    """
    from rlcas_utils.language.cpu import compact_lm_head, explicit_attention

    with compact_lm_head(), explicit_attention(trainer.model), expanded_weights(trainer.model):
        trainer.train(resume_from_checkpoint=last_checkpoint(trainer.args.output_dir))
    return trainer.state.log_history
