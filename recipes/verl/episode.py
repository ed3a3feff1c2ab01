"""One telecom episode on any server that takes token ids and gives token ids back; needs no verl.

What was sampled is what is trained: nothing is tokenised twice, and the customer's tokens are masked. It is
the same conversation, prompt and score as in notebook 06.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from rlcas_utils.rollouts import Conversation, render_prompt, turn_suffix
from rlcas_utils.rollouts.chat import turn_end_id

Generate = Callable[[list[int], int], Awaitable[tuple[list[int], list[float]]]]


@dataclass
class Played:
    """A finished episode as token ids.

    Attributes:
        prompt_ids: The opening.
        response_ids: All that followed, the customer's turns included.
        mask: 1 on the model's tokens.
        logprobs: Of the sampler; 0 on the customer's tokens.
        num_turns: Turns of the model.
    """

    prompt_ids: list[int]
    response_ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    num_turns: int = 0

    def add(self, ids: list[int], logprobs: list[float] | None) -> None:
        """Append tokens; without log-probabilities they are the customer's."""
        self.response_ids += ids
        self.mask += [int(logprobs is not None)] * len(ids)
        self.logprobs += logprobs if logprobs is not None else [0.0] * len(ids)


async def play(
    generate: Generate, tokenizer: Any, conversation: Conversation, max_turn_tokens: int, max_tokens: int
) -> Played:
    """Play a conversation to its end.

    Args:
        generate: From (token ids so far, most new tokens) to the new ids and their log-probabilities.
        tokenizer: ChatML tokenizer of the model.
        conversation: The environment.
        max_turn_tokens: A turn is cut here.
        max_tokens: All tokens after the opening, the customer's included.
    """
    end_id = turn_end_id(tokenizer)
    played = Played(render_prompt(tokenizer, conversation.messages))
    while True:
        ids, logprobs = await generate(played.prompt_ids + played.response_ids, max_turn_tokens)
        played.add(ids, logprobs)
        played.num_turns += 1
        stopped = bool(ids) and ids[-1] in (end_id, tokenizer.eos_token_id)
        text = tokenizer.decode(ids[:-1] if stopped else ids, skip_special_tokens=False)
        # The customer may be a model behind a network: other episodes go on meanwhile.
        answer = await asyncio.to_thread(conversation.reply, text, truncated=not stopped)
        if answer is None:
            return played
        heard = ([] if ids and ids[-1] == end_id else [end_id]) + turn_suffix(tokenizer, answer)
        if len(played.response_ids) + len(heard) + max_turn_tokens > max_tokens:
            conversation.abandon("token_budget")
            return played
        played.add(heard, None)
