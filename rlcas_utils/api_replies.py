"""What comes back from a hosted model: a reply and its kind of ending, a price, or a failure and its kind."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlcas_utils.parameters import is_secret

TRANSIENT = {408, 409, 425, 429, 500, 502, 503, 504, 529}  # HTTP status codes worth waiting for
TRUNCATED = {"length", "max_tokens"}
BLOCKED = {"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"}
KEY_SHAPE = re.compile(r"\b(?:sk-|AIza|hf_|ghp_)[\w-]{6,}")
HIDDEN = "[key hidden]"


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        text: empty where there is none.
        label: "answered", "api_truncated" (with or without a fragment), "api_blocked", "api_refused" or
            "api_empty".
        tool_calls: LiteLLM's tool calls; a reply with one is "answered" even without text.
    """

    text: str
    label: str
    tool_calls: tuple[Any, ...] = ()


def redact(text: str) -> str:
    """Return the text without any key that the environment holds or that looks like one."""
    for name, value in os.environ.items():
        if is_secret(name) and len(value) >= 6:
            text = text.replace(value, HIDDEN)
    return KEY_SHAPE.sub(HIDDEN, text)


def read_reply(response: Any) -> Reply:
    """Return the text of a reply and what kind of ending it had.

    Args:
        response: LiteLLM's reply.
    """
    if not getattr(response, "choices", None):
        return Reply("", "api_empty")
    choice = response.choices[0]
    text = getattr(choice.message, "content", None) or ""
    reason = str(getattr(choice, "finish_reason", "") or "").lower()
    calls = tuple(getattr(choice.message, "tool_calls", None) or ())
    if reason in TRUNCATED:
        return Reply(text, "api_truncated", calls)
    if reason in BLOCKED:
        return Reply(text, "api_blocked")
    if getattr(choice.message, "refusal", None):
        return Reply(text, "api_refused")
    return Reply(text, "answered" if text.strip() or calls else "api_empty", calls)


def price(response: Any) -> float | None:
    """Return LiteLLM's price of a reply in USD, or None where it has no price for the model."""
    import litellm

    try:
        cost = litellm.completion_cost(completion_response=response)
    except Exception:  # LiteLLM raises bare Exception for models outside its price list
        return None
    return float(cost) if cost else None


def is_blocked(failure: Exception) -> bool:
    """Tell whether an error says that a filter stopped the request."""
    codes = {str(getattr(failure, "code", "")), str(getattr(failure, "type", ""))}
    named = type(failure).__name__ == "ContentPolicyViolationError"
    return named or bool(codes & {"content_policy_violation", "content_filter"})


def is_transient(failure: Exception) -> bool:
    """Tell whether waiting may help: a rate limit, an outage, a timeout."""
    body = getattr(failure, "body", None)
    # OpenAI answers an empty account like a rate limit, but waiting fills no account.
    empty_account = isinstance(body, Mapping) and body.get("code") == "insufficient_quota"
    return getattr(failure, "status_code", None) in TRANSIENT and not empty_account


def retry_after_s(failure: Exception) -> float:
    """Return the seconds that the provider asks to wait, 0 if it names none."""
    headers = getattr(failure, "litellm_response_headers", None) or {}
    try:
        return float(headers.get("retry-after", 0))
    except ValueError:  # a date; the back-off has to do
        return 0.0
