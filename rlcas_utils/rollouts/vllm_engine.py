"""Episodes sampled by vLLM behind the interface of `run_episodes`, with the sampler's log-probabilities.

The base model stays as vLLM loaded it, and the trained adapter is handed over as an adapter, anew for each
call. Merging it into a 4-bit base instead would round it away (see `language.merge`). The prompt that all
episodes share is read once: prefix caching is on.

vLLM computes with other kernels than the trainer, so its log-probabilities differ a little. The trainer
corrects that: with this engine it weighs each token by trainer over sampler probability.
"""

from __future__ import annotations

import importlib.util
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from rlcas_utils.config import ConfigError
from rlcas_utils.rollouts.chat import render_prompt, stop_token_ids, turn_end_id, turn_suffix
from rlcas_utils.rollouts.episode import Conversation, Episode, Rollout
from rlcas_utils.rollouts.sampling import Sampling, random_streams

KINDS = ("vllm", "vllm-server")
Turn = tuple[list[int], list[float]]


class Backend(Protocol):
    """Where vLLM runs: in this process, or as a server."""

    def load(self, adapter: Path, name: str, number: int) -> None:
        """Take over an adapter; `number` counts from 1 and never repeats."""
        ...

    def sample(
        self, prompts: list[list[int]], seeds: list[int], stops: list[int], sampling: Sampling
    ) -> list[Turn]:
        """Draw one turn per prompt: its token ids, the stop token included, and their log-probabilities."""
        ...


def make_engine(kind: str, url: str = "http://localhost:8000") -> VLLMEngine:
    """Make an engine for `grpo.make_grpo_trainer(engine=...)`.

    Args:
        kind: "vllm" for vLLM in this process, "vllm-server" for a running `vllm serve`.
        url: Address of the server.

    Raises:
        ConfigError: An unknown kind, or vLLM is not installed.
    """
    from rlcas_utils.rollouts.vllm_backends import InProcess, Server

    if kind not in KINDS:
        raise ConfigError(f"engine {kind!r} is unknown; choose one of transformers, {', '.join(KINDS)}.")
    if kind == "vllm-server":
        server = Server(url)
        return VLLMEngine(lambda model, length: server)
    if importlib.util.find_spec("vllm") is None:
        raise ConfigError(
            "vLLM is not installed here; it needs Linux with a CUDA GPU. Run pip install vllm in an "
            "environment of its own, use --engine vllm-server with a server elsewhere, or leave "
            "--engine transformers."
        )
    return VLLMEngine(InProcess)


class VLLMEngine:
    """Plays conversations in rounds: every running episode gets a turn, then the environments answer."""

    def __init__(self, open_backend: Callable[[Any, int], Backend]) -> None:
        """Take what opens vLLM for a model and a length in tokens; that happens at the first call."""
        self._open = open_backend
        self._backend: Backend | None = None
        self._loads = 0

    def __call__(
        self, model: Any, tokenizer: Any, conversations: Sequence[Conversation], sampling: Sampling
    ) -> list[Rollout]:
        """Plays every conversation to its end.

        Args:
            model: PEFT model; its adapter as it is now is what plays.
            tokenizer: Its ChatML tokenizer.
            conversations: One per episode, each used once.
            sampling: Temperature, limits, batch size and seed.

        Returns:
            One rollout per conversation, in their order.

        Raises:
            ConfigError: There is no adapter to hand over, or `top_p` cuts probabilities.
        """
        if not conversations:
            return []
        _check(model, sampling)
        streams = random_streams(sampling.seed, len(conversations))
        waiting = deque(
            Episode(index, conversation, render_prompt(tokenizer, conversation.messages), stream)
            for index, (conversation, stream) in enumerate(zip(conversations, streams, strict=True))
        )
        longest = max(len(episode.prompt_ids) for episode in waiting)
        if self._backend is None:
            self._backend = self._open(model, longest + sampling.max_episode_tokens)
        self._hand_over(model)
        stops = stop_token_ids(model, tokenizer)
        finished: dict[int, Rollout] = {}
        running: list[Episode] = []
        with ThreadPoolExecutor(max(1, sampling.reply_threads)) as threads:
            while waiting or running:
                while waiting and len(running) < sampling.max_batch:
                    running.append(waiting.popleft())
                self._draw(running, sorted(stops), sampling)
                answers = threads.map(lambda episode: _answer(episode, tokenizer, stops), running)
                ends = [
                    _hear(episode, answer, tokenizer, sampling)
                    for episode, answer in zip(running, answers, strict=True)
                ]
                for episode, end in zip(running, ends, strict=True):
                    if end:
                        finished[episode.index] = episode.rollout(end)
                running = [episode for episode, end in zip(running, ends, strict=True) if not end]
        return [finished[index] for index in range(len(conversations))]

    def _hand_over(self, model: Any) -> None:
        """Save the adapter and let vLLM load it under a new number; the old files go."""
        self._loads += 1
        folder = Path(tempfile.mkdtemp(prefix="policy-"))
        try:
            model.save_pretrained(str(folder), selected_adapters=["default"])
            self._backend.load(folder, folder.name, self._loads)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _draw(self, episodes: list[Episode], stops: list[int], sampling: Sampling) -> None:
        prompts = [episode.prompt_ids + episode.completion_ids for episode in episodes]
        seeds = [episode.stream.getrandbits(31) for episode in episodes]
        turns = self._backend.sample(prompts, seeds, stops, sampling)
        for episode, (ids, logprobs) in zip(episodes, turns, strict=True):
            episode.turn_start = len(episode.completion_ids)
            episode.completion_ids += ids
            episode.logprobs += logprobs
            episode.env_mask += [1] * len(ids)


def _check(model: Any, sampling: Sampling) -> None:
    if not hasattr(model, "peft_config"):
        raise ConfigError(
            "this model has no adapter, and vLLM takes over nothing else while training. Train an adapter, "
            "or use the transformers engine."
        )
    if sampling.top_p < 1:
        raise ConfigError(
            f"top_p is {sampling.top_p}; vLLM would report the probabilities after its cut, which the "
            "trainer does not compute. Use top_p 1.0."
        )


def _answer(episode: Episode, tokenizer: Any, stops: frozenset[int]) -> str | None:
    """Ask the environment about the turn that was just drawn."""
    ids = episode.completion_ids[episode.turn_start :]
    stopped = ids[-1] in stops
    episode.num_turns += 1
    spoken = ids[:-1] if stopped else ids
    text = tokenizer.decode(spoken, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return episode.conversation.reply(text, truncated=not stopped)


def _hear(episode: Episode, text: str | None, tokenizer: Any, sampling: Sampling) -> Any:
    """Append the environment's turn, masked; return how the episode ended, or an empty text."""
    if text is None:
        return "done"
    end_id = turn_end_id(tokenizer)
    heard = ([] if episode.completion_ids[-1] == end_id else [end_id]) + turn_suffix(tokenizer, text)
    if len(episode.completion_ids) + len(heard) + sampling.max_turn_tokens > sampling.max_episode_tokens:
        episode.conversation.abandon("token_budget")
        return "token_budget"
    episode.completion_ids += heard
    episode.logprobs += [0.0] * len(heard)
    episode.env_mask += [0] * len(heard)
    return ""
