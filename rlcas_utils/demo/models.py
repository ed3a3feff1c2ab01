"""Language models as speakers: a chat goes in, one turn comes out, and Stop works within a token.

All visitors share the loaded models, so one lock lets one of them compute at a time. Nothing of a visitor
stays in a model: each turn reads the whole chat again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rlcas_utils.api_agents import ApiModel, ApiPlayer
from rlcas_utils.api_calls import ApiClient
from rlcas_utils.api_usage import Budget, Usage
from rlcas_utils.config import notebook_path
from rlcas_utils.demo.limits import Stopped
from rlcas_utils.demo.source import Source, telecom_model
from rlcas_utils.parameters import read_parameters
from rlcas_utils.stages import BENCHMARK, GRPO, SFT, TELECOM

Chat = Sequence[dict[str, str]]
Speaker = Callable[[Chat, threading.Event], tuple[str, bool]]
"""From a chat and the visitor's Stop to (the model's turn, whether the token limit cut it)."""

API_USD = 1.0  # what all visitors of one demo may spend on one hosted model
_COMPUTING = threading.Lock()


@dataclass
class _OneTurn:
    """A conversation that ends after the model's next turn."""

    messages: list[dict[str, str]]
    said: str = ""
    cut: bool = False

    def reply(self, text: str, *, truncated: bool = False) -> None:
        self.said, self.cut = text, truncated

    def abandon(self, reason: str) -> None:
        self.said, self.cut = "", True


def speak(model: Any, tokenizer: Any, chat: Chat, max_tokens: int, stop: threading.Event) -> tuple[str, bool]:
    """Let a local model say its next turn, greedily.

    Args:
        model: Causal language model, with or without adapter.
        tokenizer: Its tokenizer.
        chat: Everything said so far.
        max_tokens: A longer turn is cut.
        stop: Looked at before every token.

    Raises:
        Stopped: `stop` was set.
    """
    from rlcas_utils.rollouts import Sampling, run_episodes

    def check(*_: Any) -> None:
        if stop.is_set():
            raise Stopped

    turn = _OneTurn(list(chat))
    hook = model.register_forward_pre_hook(check)
    try:
        sampling = Sampling(max_turn_tokens=max_tokens, max_episode_tokens=max_tokens, temperature=0, seed=0)
        run_episodes(model, tokenizer, [turn], sampling)
    finally:
        hook.remove()
    return turn.said, turn.cut


@contextmanager
def _my_turn(stop: threading.Event) -> Iterator[None]:
    """Wait for the other visitors' turns, in pieces short enough for Stop."""
    while not _COMPUTING.acquire(timeout=0.2):
        if stop.is_set():
            raise Stopped
    try:
        yield
    finally:
        _COMPUTING.release()


class DeskModels:
    """The desk's language models of a run: one base, loaded when first asked, and its adapters."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._loaded: tuple[Any, Any] | None = None

    def adapters(self) -> dict[str, Any]:
        """Return the adapter folders of the run by agent."""
        folders = {"sft": self.source.path(SFT, "adapter"), "grpo": self.source.path(GRPO, "adapter")}
        return {agent: folder for agent, folder in folders.items() if folder}

    def speaker(self, agent: str) -> Speaker:
        """Return "base", "sft" or "grpo" as a speaker."""

        def turn(chat: Chat, stop: threading.Event) -> tuple[str, bool]:
            with _my_turn(stop):
                model, tokenizer = self._models()
                limit = self.source.parameters(SFT)["MAX_TURN_TOKENS"]
                if agent == "base":
                    with model.disable_adapter():
                        return speak(model, tokenizer, chat, limit, stop)
                model.set_adapter(agent)
                return speak(model, tokenizer, chat, limit, stop)

        return turn

    def _models(self) -> tuple[Any, Any]:
        if self._loaded is None:
            from peft import PeftModel

            from rlcas_utils import language

            chosen = self.source.parameters(SFT)
            base = language.load_model(
                chosen["MODEL"], quantize=chosen["QUANTIZE"], dtype=chosen["DTYPE"], for_training=False
            )
            (first, folder), *others = self.adapters().items()
            model = PeftModel.from_pretrained(base, str(folder), adapter_name=first).eval()
            for name, other in others:
                model.load_adapter(str(other), adapter_name=name)
            self._loaded = model, language.load_tokenizer(chosen["MODEL"])
        return self._loaded


class TelecomModel:
    """The telecom model of a run, loaded when first asked."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._loaded: tuple[Any, Any] | None = None

    def speaker(self) -> Speaker:
        """Return the trained model as a speaker."""

        def turn(chat: Chat, stop: threading.Event) -> tuple[str, bool]:
            with _my_turn(stop):
                model, tokenizer = self._models()
                limit = self.source.parameters(TELECOM)["MAX_TURN_TOKENS"]
                return speak(model, tokenizer, chat, limit, stop)

        return turn

    def _models(self) -> tuple[Any, Any]:
        if self._loaded is None:
            from rlcas_utils import language
            from rlcas_utils.telecom.small_model import load_small_tokenizer

            folder, chosen = telecom_model(self.source), self.source.parameters(TELECOM)
            if chosen["MODEL"] == "small":
                from transformers import AutoModelForCausalLM

                model = AutoModelForCausalLM.from_pretrained(folder).eval()
                self._loaded = model, load_small_tokenizer(str(folder))
            else:
                base = language.load_model(chosen["MODEL"], quantize=chosen["QUANTIZE"], for_training=False)
                model = language.load_adapter(base, folder, trainable=False)
                self._loaded = model, language.load_tokenizer(chosen["MODEL"])
        return self._loaded


def hosted_models() -> dict[str, ApiModel]:
    """Return the hosted models of notebook 07 by agent, with the values of its parameters cell."""
    chosen = {name: p.default for name, p in read_parameters(notebook_path(BENCHMARK)).items()}
    caps = chosen["API_MAX_TOKENS"], chosen["API_RETRY_MAX_TOKENS"]
    return {
        agent: ApiModel(agent, model, *caps, chosen["API_THINKING"], chosen["API_TEMPERATURE"])
        for agent, model in chosen["API_MODELS"].items()
        if agent != "own_server"
    }


def hosted_speaker(model: ApiModel) -> Speaker:
    """Return a hosted model as a speaker; all visitors together may spend `API_USD` on it."""
    player = ApiPlayer(model, ApiClient(model.model, Budget(API_USD)))

    def turn(chat: Chat, stop: threading.Event) -> tuple[str, bool]:
        reply = player.ask(chat, Usage())
        if stop.is_set():
            raise Stopped
        return reply.text or "(no reply)", reply.label == "api_truncated"

    return turn
