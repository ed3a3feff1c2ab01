"""What hosted models use: calls, tokens, seconds and money, with unknown prices counted as unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Usage:
    """What an episode used. `cost_usd` adds the priced calls only; the others are counted."""

    calls: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    latency_s: float = 0.0
    labels: Counter[str] = field(default_factory=Counter)

    def cost_text(self) -> str:
        """Return the cost in words; unknown prices are shown as unknown, never as zero."""
        if self.calls and self.unpriced_calls == self.calls:
            return f"cost unknown ({self.calls} calls unpriced)"
        unpriced = f" plus {self.unpriced_calls} unpriced calls" if self.unpriced_calls else ""
        return f"${self.cost_usd:.4f}{unpriced}"


def total_usage(rows: Iterable[Mapping[str, Any]]) -> Usage:
    """Return the sum over the `api` blocks of an agent's rows."""
    total = Usage()
    for row in rows:
        for name in vars(total):
            value = getattr(total, name) + (
                Counter(row["api"][name]) if name == "labels" else row["api"][name]
            )
            setattr(total, name, value)
    return total
