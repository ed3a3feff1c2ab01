"""What hosted models use: calls, tokens, seconds and money, with unknown prices counted as unknown."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rlcas_utils.records import write_json


class ApiError(RuntimeError):
    """A hosted model that cannot be asked: the fault of key, provider or network, never of an agent.

    The text holds no key.
    """


class SpendCapReached(ApiError):
    """The money set aside for a run is spent."""


@dataclass
class Usage:
    """What an episode or a run used.

    Attributes:
        calls: requests that were answered.
        retries: second tries with a larger token cap, or after an empty reply; their calls are in `calls`.
        prompt_tokens: tokens read.
        completion_tokens: tokens written, thinking included.
        cost_usd: sum over the calls that have a price.
        unpriced_calls: calls without a known price.
        latency_s: seconds between request and reply.
        labels: how turns ended, second try included; see `api_replies.read_reply`.
        outages: rate limits and failures of the provider that were waited out, by kind.
        waited_s: seconds spent waiting for the provider to recover.
        models: model names as the provider answered them, by number of calls.
    """

    calls: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    latency_s: float = 0.0
    labels: Counter[str] = field(default_factory=Counter)
    outages: Counter[str] = field(default_factory=Counter)
    waited_s: float = 0.0
    models: Counter[str] = field(default_factory=Counter)

    def add(self, other: Usage) -> None:
        """Add another usage to this one."""
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + getattr(other, entry.name))

    def block(self) -> dict[str, Any]:
        """Return the usage as a JSON object; `from_block` reads it back."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {
            name: dict(sorted(value.items()))
            if isinstance(value, Counter)
            else round(value, 3)
            if name.endswith("_s")
            else value
            for name, value in values.items()
        }

    @classmethod
    def from_block(cls, block: Mapping[str, Any]) -> Usage:
        """Return the usage in a row's block; what else the block holds is left aside."""
        names = [entry.name for entry in fields(cls) if entry.name in block]
        return cls(**{n: Counter(block[n]) if isinstance(block[n], Mapping) else block[n] for n in names})

    def cost_text(self) -> str:
        """Return the cost in words; unknown prices are shown as unknown, never as zero."""
        unpriced = f"{self.unpriced_calls} call{'s' * (self.unpriced_calls != 1)} unpriced"
        if self.calls and self.unpriced_calls == self.calls:
            return f"cost unknown ({unpriced})"
        return f"${self.cost_usd:.4f}" + (f" plus {unpriced}" if self.unpriced_calls else "")

    def text(self) -> str:
        """Return cost, seconds, tokens, endings and outages in one line."""
        names = ", ".join(f"{label} {count}" for label, count in sorted(self.labels.items()))
        line = f"{self.cost_text()}, {self.calls} calls{f' ({names})' if names else ''}, "
        line += f"{self.latency_s:.0f} s, {self.prompt_tokens:,} tokens in, {self.completion_tokens:,} out"
        if self.outages:
            line += f", {sum(self.outages.values())} outages ({self.waited_s:.0f} s of waiting)"
        return line


def total_usage(rows: Iterable[Mapping[str, Any]], *blocks: str) -> Usage:
    """Return the sum over the usage blocks of rows.

    Args:
        rows: episode rows or journal entries; those without a block count nothing.
        blocks: names of the blocks; "api" if none is named.
    """
    total = Usage()
    for row in rows:
        for name in blocks or ("api",):
            total.add(Usage.from_block(row.get(name) or {}))
    return total


class Budget:
    """A spend cap that threads share.

    Calls under way when it is reached still finish, so it can be passed by one call per thread. Only priced
    calls can be held against it.

    Attributes:
        max_usd: the cap in US dollars.
        usage: everything used so far.
    """

    def __init__(self, max_usd: float, path: Path | None = None) -> None:
        """Set the cap.

        Args:
            max_usd: in US dollars.
            path: where the usage is kept after every call, so that a killed run forgets no money; what an
                earlier run left there counts.
        """
        self.max_usd, self.path = max_usd, path
        kept = path is not None and path.is_file()
        self.usage = Usage.from_block(json.loads(path.read_text(encoding="utf-8"))) if kept else Usage()
        self._lock = threading.Lock()

    def add(self, usage: Usage) -> None:
        """Count what was used."""
        with self._lock:
            self.usage.add(usage)
            if self.path is not None:
                write_json(self.path, self.usage.block())

    def require(self) -> None:
        """Stop before a call that the cap forbids.

        Raises:
            SpendCapReached: the priced calls so far cost the cap or more.
        """
        if self.usage.cost_usd >= self.max_usd:
            raise SpendCapReached(
                f"spent {self.usage.cost_text()}, the spend cap is ${self.max_usd:g}, so no further call is "
                "made. What is finished is kept; raise the cap and run again to go on."
            )
