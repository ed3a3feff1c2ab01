"""The exercises of notebook 01: a bonus of the reward, discounted returns, and what a label is worth."""

from __future__ import annotations

from collections import Counter

from rlcas_utils.desk.rewards import VALUES
from rlcas_utils.exercises.checker import Exercise


def _efficiency_bonus(resolved: bool, shortest: int, steps: int) -> float:
    return VALUES["efficiency"] * shortest / steps if resolved else 0.0


def _returns_to_go(rewards: list[float], gamma: float) -> list[float]:
    returns, rest = [], 0.0
    for reward in reversed(rewards):
        rest = reward + gamma * rest
        returns.append(rest)
    return returns[::-1]


def _share_when_told(labels: list[str], endings: list[str]) -> float:
    counts = Counter(zip(labels, endings, strict=True))
    best = {label: max(n for (own, _), n in counts.items() if own == label) for label in labels}
    return sum(best.values()) / len(endings)


def _share_by_label(labels: list[str], endings: list[str]) -> float:
    """Average over labels where the share is over tickets."""
    sizes, counts = Counter(labels), Counter(zip(labels, endings, strict=True))
    best = [max(n for (own, _), n in counts.items() if own == label) / sizes[label] for label in sizes]
    return sum(best) / len(best)


efficiency_bonus = Exercise(
    reference=_efficiency_bonus,
    inputs=[(True, 3, 3), (True, 3, 6), (False, 2, 2)],
    mistakes={
        "the bonus was paid for an unresolved ticket, so closing at once would earn it.": (
            lambda resolved, shortest, steps: VALUES["efficiency"] * shortest / steps
        ),
        "the fraction is upside down: wasted steps would raise the bonus.": (
            lambda resolved, shortest, steps: VALUES["efficiency"] * steps / shortest if resolved else 0.0
        ),
        "the value of the table is missing.": (
            lambda resolved, shortest, steps: shortest / steps if resolved else 0.0
        ),
    },
)
returns_to_go = Exercise(
    reference=_returns_to_go,
    inputs=[([2.0], 0.5), ([0.0, 0.0, 8.0], 0.5), ([1.0, 2.0, 4.0], 0.5)],
    mistakes={
        "the discount counts from the start of the episode; each step counts from itself.": (
            lambda rewards, gamma: [
                sum(gamma**k * rewards[k] for k in range(t, len(rewards))) for t in range(len(rewards))
            ]
        ),
        "the reward of the step itself is missing.": (
            lambda rewards, gamma: _returns_to_go([*rewards[1:], 0.0], gamma)
        ),
        "nothing is discounted.": lambda rewards, gamma: _returns_to_go(rewards, 1.0),
        "the list is in the order of the backward loop, last step first.": (
            lambda rewards, gamma: _returns_to_go(rewards, gamma)[::-1]
        ),
    },
)
share_when_told = Exercise(
    reference=_share_when_told,
    inputs=[
        (["order", "refund"], ["resolve", "billing"]),
        (["order", "order", "order", "refund"], ["resolve", "resolve", "ask", "billing"]),
        (["order", "order", "refund", "refund"], ["resolve", "ask", "resolve", "resolve"]),
    ],
    mistakes={
        "the labels are not used: one ending was taken for all tickets.": (
            lambda labels, endings: max(Counter(endings).values()) / len(endings)
        ),
        "the labels' shares were averaged, so a label of one ticket weighs as much as any other.": (
            _share_by_label
        ),
        "only the commonest pair of label and ending was counted.": (
            lambda labels, endings: max(Counter(zip(labels, endings, strict=True)).values()) / len(endings)
        ),
    },
)
