"""Hosted models at the desk, through LiteLLM: the GPT-4o-mini and Gemini-2.5-flash rows of the benchmark.

A hosted model can fail in ways that are no wrong answer: its thinking uses up the token cap before the first
visible word, or a filter blocks the reply. Those endings get labels of their own; a truncated reply gets one
second try with a larger cap. Keys come from the environment, and provider errors are cleaned of them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rlcas_utils.api_usage import Usage, total_usage
from rlcas_utils.parameters import is_secret

API_KEYS = {"gpt_4o_mini": "OPENAI_API_KEY", "gemini_2_5_flash": "GEMINI_API_KEY"}
TRUNCATED = {"length", "max_tokens"}
BLOCKED = {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"}
KEY_SHAPE = re.compile(r"\b(?:sk-|AIza|hf_|ghp_)[\w-]{6,}")
HIDDEN = "[key hidden]"


class ApiError(RuntimeError):
    """A provider refused or could not be reached; the text holds no key."""


class Conversation(Protocol):
    """The part of a desk conversation that is needed here."""

    messages: list[dict]

    def reply(self, text: str, *, truncated: bool = False) -> str | None:
        """Take the model's turn and return the next user text, or None at the end."""


@dataclass(frozen=True)
class ApiModel:
    """Which hosted model plays, and with which limits.

    Attributes:
        agent: name in tables, such as "gpt_4o_mini".
        model: LiteLLM's exact model name.
        max_tokens: cap on generated tokens, thinking included.
        retry_max_tokens: cap of the one second try after a truncated reply.
        thinking: LiteLLM's `reasoning_effort`; empty for the provider's default.
        temperature: of sampling.
    """

    agent: str
    model: str
    max_tokens: int
    retry_max_tokens: int
    thinking: str = ""
    temperature: float = 0.0

    def __post_init__(self) -> None:
        """Refuse a second try that could not do better than the first."""
        if self.retry_max_tokens <= self.max_tokens:
            raise ValueError(
                f"retry_max_tokens = {self.retry_max_tokens} is not above max_tokens = {self.max_tokens}; a "
                "reply cut at the first cap would be cut again. Set a larger one."
            )


def missing_key(agent: str, environment: Mapping[str, str] | None = None) -> str:
    """Return "needs OPENAI_API_KEY" or the like when an agent's key is not set, else an empty text."""
    name = API_KEYS[agent]
    found = (os.environ if environment is None else environment).get(name, "").strip()
    return "" if found else f"needs {name}"


def redact(text: str) -> str:
    """Return the text without any key that the environment holds or that looks like one."""
    for name, value in os.environ.items():
        if is_secret(name) and len(value) >= 6:
            text = text.replace(value, HIDDEN)
    return KEY_SHAPE.sub(HIDDEN, text)


def read_answer(response: Any) -> tuple[str, str]:
    """Return the text of a reply and what kind of ending it had.

    Args:
        response: LiteLLM's reply.

    Returns:
        The text, empty where there is none, and "answered", "api_truncated" (with or without a fragment),
        "api_blocked" or "api_empty".
    """
    if not getattr(response, "choices", None):
        return "", "api_empty"
    choice = response.choices[0]
    text = getattr(choice.message, "content", None) or ""
    reason = str(getattr(choice, "finish_reason", "") or "").lower()
    if reason in TRUNCATED:
        return text, "api_truncated"
    if reason in BLOCKED:
        return text, "api_blocked"
    return text, "answered" if text.strip() else "api_empty"


def price(response: Any) -> float | None:
    """Return LiteLLM's price of a reply in USD, or None where it has no price for the model."""
    import litellm

    try:
        cost = litellm.completion_cost(completion_response=response)
    except Exception:  # LiteLLM raises bare Exception for models outside its price list
        return None
    return float(cost) if cost else None


def completion() -> Callable[..., Any]:
    """Return LiteLLM's completion function, set up so that importing it needs no network."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    return litellm.completion


class ApiPlayer:
    """Plays desk conversations with one hosted model."""

    def __init__(
        self,
        model: ApiModel,
        complete: Callable[..., Any],
        price: Callable[[Any], float | None] = price,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Keep the model, the completion function, the price function and the clock."""
        self.model, self.complete, self.price, self.clock = model, complete, price, clock

    def play(self, conversation: Conversation) -> dict[str, Any]:
        """Play one conversation to its end.

        Returns:
            The `api` block of the episode's row: settings, tokens, cost, latency and counts of endings.

        Raises:
            ApiError: if the provider fails.
        """
        usage, messages = Usage(), [dict(message) for message in conversation.messages]
        while True:
            text, label = self._ask(messages, usage)
            user = conversation.reply(text, truncated=label == "api_truncated")
            if user is None:
                return self._block(usage)
            messages += [
                {"role": "assistant", "content": text or "(no reply)"},
                {"role": "user", "content": user},
            ]

    def _ask(self, messages: list[dict], usage: Usage) -> tuple[str, str]:
        text, label = self._call(messages, self.model.max_tokens, usage)
        if label == "api_truncated":
            usage.retries += 1
            text, label = self._call(messages, self.model.retry_max_tokens, usage)
        usage.labels[label] += 1
        return text, label

    def _call(self, messages: list[dict], max_tokens: int, usage: Usage) -> tuple[str, str]:
        options = {"reasoning_effort": self.model.thinking} if self.model.thinking else {}
        options |= {"temperature": self.model.temperature, "max_tokens": max_tokens, "num_retries": 2}
        started = self.clock()
        try:
            response = self.complete(model=self.model.model, messages=messages, **options)
        except Exception as error:
            # `from None`: the original error may carry the request headers, key included.
            seen = redact(f"{type(error).__name__}: {error}")[:300]
            raise ApiError(f"{self.model.model}: {seen} Check the key, the network and the quota.") from None
        usage.latency_s += self.clock() - started
        usage.calls += 1
        tokens = getattr(response, "usage", None)
        usage.prompt_tokens += getattr(tokens, "prompt_tokens", 0) or 0
        usage.completion_tokens += getattr(tokens, "completion_tokens", 0) or 0
        cost = self.price(response)
        usage.unpriced_calls += cost is None
        usage.cost_usd += cost or 0.0
        return read_answer(response)

    def _block(self, usage: Usage) -> dict[str, Any]:
        settings = {
            "model": self.model.model,
            "max_tokens": self.model.max_tokens,
            "retry_max_tokens": self.model.retry_max_tokens,
            "thinking": self.model.thinking or "provider default",
        }
        return settings | vars(usage) | {"labels": dict(usage.labels), "latency_s": round(usage.latency_s, 3)}


def play_all(
    tickets: Iterable[Any],
    play_ticket: Callable[[Any], dict[str, Any]],
    max_usd: float,
    report: Callable[[str], None] = print,
) -> list[dict[str, Any]]:
    """Play tickets until done, until the spend cap, or until the provider fails; finished rows are kept.

    Args:
        tickets: what to play.
        play_ticket: plays one ticket and returns its row with the `api` block.
        max_usd: spend cap in USD over priced calls; the run stops before the next ticket.
        report: takes one sentence when the run stops early.
    """
    rows: list[dict[str, Any]] = []
    for ticket in tickets:
        if total_usage(rows).cost_usd >= max_usd:
            report(
                f"Stopped at the spend cap of ${max_usd}: {len(rows)} episodes are kept. Raise API_MAX_USD."
            )
            break
        try:
            rows.append(play_ticket(ticket))
        except ApiError as error:
            report(f"Stopped, {len(rows)} episodes are kept: {error}")
            break
    return rows
