"""A language model at the desk: plays tickets through the rollout engine, returns the rows of every agent."""

from collections.abc import Callable, Sequence
from typing import Any

from rlcas_utils.rollouts import Sampling, run_episodes


def evaluate_on_desk(
    model: Any,
    tokenizer: Any,
    tickets: Sequence[Any],
    name: str,
    sampling: Sampling,
    progress: Callable[[int, int], None] | None = None,
) -> list[dict[str, Any]]:
    """Play every ticket once.

    Args:
        model: Causal language model, with or without adapter.
        tokenizer: Its tokenizer.
        tickets: From ``desk.load_tickets``.
        name: Agent name for the rows, such as ``"sft"``.
        sampling: Temperature 0 for the benchmark.
        progress: Called with (episodes finished, episodes in all).

    Returns:
        One row per ticket, as ``desk.evaluate`` returns them.
    """
    from rlcas_utils.desk.conversation import DeskConversation

    conversations = [DeskConversation(ticket) for ticket in tickets]
    run_episodes(model, tokenizer, conversations, sampling, progress)
    return [conversation.row(name, seed=sampling.seed or 0) for conversation in conversations]


def every_fifth(report: Callable[[str], None] = print) -> Callable[[int, int], None]:
    """Make a progress function that reports every fifth of the episodes.

    Args:
        report: Takes one line.

    Returns:
        For ``evaluate_on_desk``.
    """

    def tell(done: int, total: int) -> None:
        if done % max(1, total // 5) == 0:
            report(f"{done}/{total} episodes")

    return tell


def failures_by_reason(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Count unusable turns by reason, the most frequent first."""
    counts: dict[str, int] = {}
    for row in rows:
        for reason, count in row["failure_reasons"].items():
            counts[reason] = counts.get(reason, 0) + count
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
