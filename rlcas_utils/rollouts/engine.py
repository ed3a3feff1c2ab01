"""The batched engine: reads what is new in each episode, draws a token, asks the environment at turn ends."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import torch

from rlcas_utils.rollouts.chat import common_prefix, render_prompt, stop_token_ids, turn_end_id, turn_suffix
from rlcas_utils.rollouts.episode import Conversation, Ending, Episode, Rollout
from rlcas_utils.rollouts.expanded import expanded_weights
from rlcas_utils.rollouts.sampling import Sampling, draw_tokens, random_streams
from rlcas_utils.rollouts.slots import SlotCache

READ_TOKENS = 4096  # padded tokens in one reading pass; bounds the memory of activations
MIN_SHARED = 16  # tokens; a shorter common start is not worth keeping apart


def run_episodes(
    model: Any,
    tokenizer: Any,
    conversations: Sequence[Conversation],
    sampling: Sampling,
    progress: Callable[[int, int], None] | None = None,
) -> list[Rollout]:
    """Plays every conversation to its end.

    Args:
        model: Causal language model, plain or with a PEFT adapter. Dropout is off while it plays.
        tokenizer: Its ChatML tokenizer.
        conversations: One per episode, each used once.
        sampling: Temperature, limits, batch size and seed.
        progress: Called with (episodes finished, episodes in all) whenever one finishes.

    Returns:
        One rollout per conversation, in their order.

    Raises:
        ValueError: A prompt and the episode budget do not fit the model's positions.
    """
    if not conversations:
        return []
    with _playing(model), ThreadPoolExecutor(max(1, sampling.reply_threads)) as threads:
        engine = _Engine(model, tokenizer, conversations, sampling, threads)
        return engine.run(progress or (lambda done, total: None))


@contextmanager
def _playing(model: Any) -> Iterator[None]:
    """Switches dropout and gradients off, and the model back to its mode afterwards."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), expanded_weights(model):
            yield
    finally:
        model.train(was_training)


class _Engine:
    """Keeps running episode i in cache slot i."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        conversations: Sequence[Conversation],
        sampling: Sampling,
        threads: ThreadPoolExecutor,
    ) -> None:
        self.model, self.tokenizer, self.sampling, self.threads = model, tokenizer, sampling, threads
        self.device = next(model.parameters()).device
        self.stops, self.turn_end = stop_token_ids(model, tokenizer), turn_end_id(tokenizer)
        streams = random_streams(sampling.seed, len(conversations))
        self.waiting = deque(
            Episode(index, conversation, render_prompt(tokenizer, conversation.messages), stream)
            for index, (conversation, stream) in enumerate(zip(conversations, streams, strict=True))
        )
        _check_room(model, self.waiting, sampling)
        self.running: list[Episode] = []
        self.finished: dict[int, Rollout] = {}
        self.cache = SlotCache(min(sampling.max_batch, len(conversations)))
        self.shared = self._read_shared_start()

    def run(self, progress: Callable[[int, int], None]) -> list[Rollout]:
        total = len(self.waiting)
        while self.waiting or self.running:
            before = len(self.finished)
            self._admit()
            self._collect_replies()
            ready = [episode for episode in self.running if episode.reply is None]
            for group in _reading_groups(ready):
                self._advance(group)
            self._advance([e for e in self.running if e.reply is None and len(e.pending) == 1])
            if len(self.finished) > before:
                progress(len(self.finished), total)
        return [self.finished[index] for index in range(total)]

    def _read_shared_start(self) -> int:
        """Reads the start that all prompts share (the system prompt) once instead of once per episode."""
        shared = common_prefix([episode.prompt_ids for episode in self.waiting])
        if len(self.waiting) == 1 or len(shared) < MIN_SHARED:
            return 0
        self._forward([0], [shared])
        self.cache.save_prefix(0)
        return len(shared)

    def _admit(self) -> None:
        while self.waiting and len(self.running) < len(self.cache.lengths):
            episode = self.waiting.popleft()
            episode.slot = len(self.running)
            self.cache.load_prefix(episode.slot)
            episode.pending = episode.prompt_ids[self.shared :]
            self.running.append(episode)

    def _advance(self, episodes: list[Episode]) -> None:
        """Reads the pending tokens of these episodes and draws the next token of each."""
        if not episodes:
            return
        slots = [episode.slot for episode in episodes]
        logits_BV = self._forward(slots, [episode.pending for episode in episodes])
        uniforms = [episode.stream.random() for episode in episodes]
        tokens, logprobs = draw_tokens(logits_BV, uniforms, self.sampling)
        for episode, token, logprob in zip(episodes, tokens, logprobs, strict=True):
            episode.completion_ids.append(token)
            episode.logprobs.append(logprob)
            episode.env_mask.append(1)
            episode.pending = [token]
        for episode in episodes:
            self._end_turn_if_over(episode)

    def _forward(self, slots: list[int], pending: list[list[int]]) -> torch.Tensor:
        """Runs the model over new tokens only; returns the logits after the last one, (rows, vocabulary)."""
        counts = [len(ids) for ids in pending]
        width = max(counts)
        ids_BT = torch.tensor([[0] * (width - len(ids)) + ids for ids in pending], device=self.device)
        mask = self.cache.prepare(slots, counts, self.device)
        if self.model.config._attn_implementation == "eager":
            mask = torch.zeros(mask.shape, device=self.device).masked_fill(~mask, float("-inf"))
        output = self.model(
            input_ids=ids_BT,
            attention_mask=mask,
            position_ids=self.cache.position_ids,
            cache=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self.cache.commit(slots, counts)
        return output.logits[:, -1]

    def _end_turn_if_over(self, episode: Episode) -> None:
        ids = episode.completion_ids[episode.turn_start :]
        stopped = ids[-1] in self.stops
        if not stopped and len(ids) < self.sampling.max_turn_tokens:
            return
        episode.num_turns += 1
        spoken = ids[:-1] if stopped else ids
        text = self.tokenizer.decode(spoken, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        if self.sampling.reply_threads:
            episode.reply = self.threads.submit(episode.conversation.reply, text, truncated=not stopped)
        else:
            self._hear(episode, episode.conversation.reply(text, truncated=not stopped))

    def _collect_replies(self) -> None:
        """Takes in the customers' answers; waits only when every running episode waits for one."""
        asked = [episode for episode in self.running if episode.reply is not None]
        if not asked:
            return
        if len(asked) == len(self.running):
            wait([episode.reply for episode in asked], return_when=FIRST_COMPLETED)
        for episode in asked:
            if episode.reply.done():
                answer, episode.reply = episode.reply.result(), None
                self._hear(episode, answer)

    def _hear(self, episode: Episode, text: str | None) -> None:
        """Appends the environment's turn, masked, or ends the episode on the model's last token."""
        if text is None:
            self._finish(episode, "done")
            return
        closing = [] if episode.completion_ids[-1] == self.turn_end else [self.turn_end]
        heard = closing + turn_suffix(self.tokenizer, text)
        needed = len(episode.completion_ids) + len(heard) + self.sampling.max_turn_tokens
        if needed > self.sampling.max_episode_tokens:
            episode.conversation.abandon("token_budget")
            self._finish(episode, "token_budget")
            return
        episode.pending += heard
        episode.completion_ids += heard
        episode.logprobs += [0.0] * len(heard)
        episode.env_mask += [0] * len(heard)
        episode.turn_start = len(episode.completion_ids)

    def _finish(self, episode: Episode, end: Ending) -> None:
        """Records the episode and lets the last running one take its slot."""
        self.finished[episode.index] = episode.rollout(end)
        last = self.running.pop()
        self.cache.move(last.slot, episode.slot)
        if last is not episode:
            self.running[episode.slot] = last
            last.slot = episode.slot


def _check_room(model: Any, episodes: Sequence[Episode], sampling: Sampling) -> None:
    longest = max(len(episode.prompt_ids) for episode in episodes)
    limit = getattr(model.config, "max_position_embeddings", None)
    if limit is not None and longest + sampling.max_episode_tokens > limit:
        raise ValueError(
            f"A prompt of {longest} tokens and max_episode_tokens {sampling.max_episode_tokens} pass the "
            f"model's {limit} positions; it would answer noise beyond them. Lower max_episode_tokens or "
            "shorten the prompt."
        )


def _reading_groups(episodes: list[Episode]) -> Iterator[list[Episode]]:
    """Groups episodes with unread text by length, each group under READ_TOKENS padded tokens."""
    unread = sorted((e for e in episodes if len(e.pending) > 1), key=lambda e: len(e.pending))
    while unread:
        width, size = len(unread[-1].pending), 1
        while size < len(unread) and (size + 1) * width <= READ_TOKENS:
            size += 1
        yield unread[-size:]
        del unread[-size:]
