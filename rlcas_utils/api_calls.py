"""One call to a hosted model through LiteLLM: waited out, counted, capped, and cleaned of keys.

A provider can fail in ways that say nothing about the model: a rate limit, an outage, a timeout. Those are
waited out with exponential back-off, by all threads together, and counted. A reply can also be unusable
without being wrong: thinking used up the token cap, or a filter blocked it. Those endings have labels.

LiteLLM's and the provider library's own retries are off: they would repeat calls that nobody counts.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlcas_utils.api_replies import (
    Reply,
    is_blocked,
    is_transient,
    price,
    read_reply,
    redact,
    retry_after_s,
)
from rlcas_utils.api_usage import ApiError, Budget, Usage
from rlcas_utils.parameters import is_secret

SERVER_KEY = "OWN_SERVER_API_KEY"  # environment variable with the key of a server given by its address
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
ABSENT_AFTER_S = 60.0  # patience with a server that has never answered
DOWN_AFTER = 3  # failed calls in a row, each waited for, after which a provider counts as gone


def completion() -> Callable[..., Any]:
    """Return LiteLLM's completion function, set up so that importing it needs no network."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Pydantic's note to the authors of provider libraries; a reader can do nothing about it.
    warnings.filterwarnings("ignore", message="Items? .* on TypedDict class", category=UserWarning)
    import litellm

    litellm.suppress_debug_info = True
    logging.getLogger("LiteLLM").addFilter(_without_keys)
    return litellm.completion


def _without_keys(record: logging.LogRecord) -> bool:
    """Clean a log record: at debug level LiteLLM writes down what a provider's error quotes."""
    record.msg, record.args = redact(record.getMessage()), ()
    return True


def missing_key(model: str, base_url: str = "") -> str:
    """Return "needs OPENAI_API_KEY" or the like when a model's key is not in the environment, else "".

    Args:
        model: LiteLLM's model name.
        base_url: address of an own server, which needs no key.
    """
    if base_url:
        return ""
    completion()
    import litellm

    # LiteLLM takes a blank key for a key.
    blank = {name: value for name, value in os.environ.items() if is_secret(name) and not value.strip()}
    for name in blank:
        del os.environ[name]
    missing = litellm.validate_environment(model)["missing_keys"]
    os.environ.update(blank)
    return f"needs {' or '.join(missing)}" if missing else ""


def server_of(model: str, base_url: str = "") -> str:
    """Return the address that answers instead of the provider's own, or an empty text.

    LiteLLM follows OPENAI_BASE_URL and OPENAI_API_BASE by itself; a row must say so.
    """
    openai = "/" not in model or model.startswith("openai/")
    variables = ("OPENAI_BASE_URL", "OPENAI_API_BASE") if openai else ()
    return base_url or next((os.environ[name] for name in variables if os.environ.get(name)), "")


class ApiClient:
    """Asks one hosted model, from any number of threads.

    Attributes:
        model: LiteLLM's model name.
        base_url: address of an OpenAI-compatible server; empty for the provider's own.
        budget: the spend cap, with everything used so far.
    """

    def __init__(
        self,
        model: str,
        budget: Budget,
        base_url: str = "",
        *,
        patience_s: float = 900.0,
        timeout_s: float = 120.0,
        complete: Callable[..., Any] | None = None,
        price: Callable[[Any], float | None] = price,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        report: Callable[[str], None] = print,
    ) -> None:
        """Set up a client.

        Args:
            model: LiteLLM's model name.
            budget: the spend cap; clients may share one.
            base_url: address of an OpenAI-compatible server. It gets the key in OWN_SERVER_API_KEY, never a
                provider's, and its calls have no known price.
            patience_s: how long one call waits for a provider to recover; a minute if it never answered.
            timeout_s: how long one request may take.
            complete: LiteLLM's `completion`, or something like it.
            price: USD of a reply, None if unknown.
            clock: seconds.
            sleep: waits seconds.
            report: takes one sentence when a wait begins.
        """
        self.model, self.budget, self.base_url = model, budget, base_url
        self.patience_s, self.timeout_s = patience_s, timeout_s
        self._complete, self._price = complete or completion(), price
        self._clock, self._sleep, self._report = clock, sleep, report
        self._lock = threading.Lock()
        self._open_at = clock()  # no thread sends before; one thread's rate limit holds all of them
        self._answered = False
        self._failures: list[str] = []  # since the last call that succeeded
        self._jitter = random.Random()  # timing only; the global generator belongs to the experiment

    def ask(self, messages: Sequence[Mapping[str, Any]], usage: Usage, **options: Any) -> Reply:
        """Ask once, waiting out rate limits and outages.

        Args:
            messages: the chat so far.
            usage: what is used is added here and to the budget.
            options: handed to LiteLLM, such as `max_tokens` or `tools`.

        Raises:
            SpendCapReached: the budget is used up; no call is made.
            ApiError: the provider refuses, or does not recover within `patience_s`.
        """
        request = {"model": self.model, "messages": list(messages), "timeout": self.timeout_s, **options}
        request |= {"num_retries": 0, "max_retries": 0}
        if self.base_url:
            name = self.model if self.model.startswith("openai/") else f"openai/{self.model}"
            key = os.environ.get(SERVER_KEY) or "none"
            request |= {"model": name, "api_base": self.base_url, "api_key": key}
        used = Usage()
        try:
            reply = self._patiently(request, used)
            self._failures = []
            return reply
        except ApiError as error:
            self._failures.append(str(error))
            raise
        finally:
            usage.add(used)
            self.budget.add(used)

    def require(self) -> None:
        """Stop a run that goes on although nobody answers any more.

        Raises:
            ApiError: The last calls, `DOWN_AFTER` or more in a row, all failed.
        """
        if len(self._failures) >= DOWN_AFTER:
            raise ApiError(self._failures[-1])

    def _patiently(self, request: dict[str, Any], used: Usage) -> Reply:
        begun, attempt = self._clock(), 0
        while True:
            self._wait_for_gate(used)
            self.budget.require()
            sent = self._clock()
            failure: Exception | None = None
            try:
                response = self._complete(**request)
            except Exception as error:
                failure = error
            if failure is None:
                return self._count(response, used, self._clock() - sent)
            if is_blocked(failure) or isinstance(failure, IndexError):
                # LiteLLM stumbles with an IndexError over a reply without choices.
                used.calls, used.unpriced_calls = used.calls + 1, used.unpriced_calls + 1
                return Reply("", "api_blocked" if is_blocked(failure) else "api_empty")
            seen = redact(f"{type(failure).__name__}: {failure}")[:300]
            pause = self._pause_after(failure, attempt)
            attempt += 1
            if pause is None:
                # Raised outside `except`: the original may carry the request headers, key included.
                raise ApiError(f"{self.model}: {seen} Check the key, the model's name and the quota.")
            used.outages[type(failure).__name__] += 1
            if self._clock() - begun + pause > self._patience_s(failure):
                raise ApiError(
                    f"{self.model}: {seen} Tried {attempt} times in {self._clock() - begun:.0f} s; the "
                    "provider is down or the rate limit too low. Run again later to go on from here."
                )
            self._close_gate(pause, type(failure).__name__)

    def _count(self, response: Any, used: Usage, seconds: float) -> Reply:
        self._answered = True
        used.latency_s += seconds
        used.calls += 1
        tokens = getattr(response, "usage", None)
        used.prompt_tokens += getattr(tokens, "prompt_tokens", 0) or 0
        used.completion_tokens += getattr(tokens, "completion_tokens", 0) or 0
        used.models[str(getattr(response, "model", None) or self.model)] += 1
        cost = None if server_of(self.model, self.base_url) else self._price(response)
        used.unpriced_calls += cost is None
        used.cost_usd += cost or 0.0
        return read_reply(response)

    def _patience_s(self, failure: Exception) -> float:
        """A server that never answered is more likely absent than down, unless it says that it is busy."""
        busy = getattr(failure, "status_code", None) == 429
        return self.patience_s if self._answered or busy else min(self.patience_s, ABSENT_AFTER_S)

    def _pause_after(self, failure: Exception, attempt: int) -> float | None:
        """Return the seconds to wait, or None for a failure that waiting does not mend."""
        if not is_transient(failure):
            return None
        backoff = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt) * self._jitter.uniform(0.75, 1.25)
        return max(backoff, retry_after_s(failure))

    def _close_gate(self, pause: float, kind: str) -> None:
        with self._lock:
            first = self._open_at <= self._clock()
            self._open_at = max(self._open_at, self._clock() + pause)
        if first and pause >= 10:
            self._report(f"{self.model}: {kind}, all calls pause for {pause:.0f} s.")

    def _wait_for_gate(self, used: Usage) -> None:
        while (left := self._open_at - self._clock()) > 0:
            self._sleep(left)
            used.waited_s += left
