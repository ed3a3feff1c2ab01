"""Ask a model at single decision points: what it would answer, what it would do, how sure it is."""

from collections.abc import Sequence
from typing import Any

import torch

from rlcas_utils.parsing import Parsed, parse_action
from rlcas_utils.rollouts import Sampling, render_prompt, run_episodes

Messages = list[dict[str, str]]
DecisionPoint = tuple[Messages, str]
"""The messages before an assistant turn, and that turn's text in the chat it was taken from."""


def decision_points(chats: Sequence[Messages], count: int) -> list[DecisionPoint]:
    """Pick contexts with their reference answers, early and late turns in alternation.

    Args:
        chats: Whole chats.
        count: How many to pick, one per chat.

    Returns:
        Pairs of the messages before an assistant turn and that turn's text.
    """
    picked = []
    for index, messages in enumerate(chats[:count]):
        turns = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
        turn = turns[index % len(turns)]
        picked.append((list(messages[:turn]), messages[turn]["content"]))
    return picked


class _OneTurn:
    """A conversation that ends after one answer and keeps it."""

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.answer = ("", True)

    def reply(self, text: str, *, truncated: bool = False) -> None:
        self.answer = (text, truncated)

    def abandon(self, reason: str) -> None:
        """Cannot happen: there is no second turn to have no room for."""


def greedy_texts(
    model: Any, tokenizer: Any, contexts: Sequence[Messages], max_tokens: int
) -> list[tuple[str, bool]]:
    """Return a model's most probable answer in each context, and whether the token limit cut it.

    Args:
        model: Causal language model.
        tokenizer: Its tokenizer.
        contexts: Messages that end with the user's.
        max_tokens: Limit of an answer.
    """
    turns = [_OneTurn(messages) for messages in contexts]
    sampling = Sampling(temperature=0.0, max_turn_tokens=max_tokens, max_episode_tokens=max_tokens, seed=0)
    run_episodes(model, tokenizer, turns, sampling)
    return [turn.answer for turn in turns]


def greedy_actions(
    model: Any, tokenizer: Any, points: Sequence[DecisionPoint], num_actions: int, max_tokens: int
) -> list[int | str]:
    """Return the action that a model takes at each decision point, or the reason why it takes none."""
    answers = greedy_texts(model, tokenizer, [messages for messages, _ in points], max_tokens)
    parsed = [parse_action(text, num_actions, truncated=truncated) for text, truncated in answers]
    return [p.action_id if isinstance(p, Parsed) else p.reason for p in parsed]


@torch.no_grad()
def answer_logits(model: Any, tokenizer: Any, points: Sequence[DecisionPoint]) -> torch.Tensor:
    """Return the logits that predict every token of the reference answers.

    Returns:
        Tensor [tokens, vocabulary] in float32 on the CPU.
    """
    device = next(model.parameters()).device
    collected = []
    for messages, answer in points:
        prompt = render_prompt(tokenizer, messages)
        target = tokenizer.encode(answer + "<|im_end|>", add_special_tokens=False)
        ids_1T = torch.tensor([prompt + target], device=device)
        logits_TV = model(input_ids=ids_1T, logits_to_keep=len(target) + 1).logits[0, :-1]
        collected.append(logits_TV.float().cpu())
    return torch.cat(collected)
