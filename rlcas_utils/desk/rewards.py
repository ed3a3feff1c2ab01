"""The reward: one table of 14 signals, and the function that fires them.

Every step of an episode yields a dictionary with all 14 names; the step's reward is their sum. The fee of the
adviser is part of `step_cost`; an unusable output of a language model is part of `failed_call`.
"""

from __future__ import annotations

from typing import NamedTuple


class Signal(NamedTuple):
    """One line of the reward table."""

    name: str
    when: str
    value: float


SIGNALS: tuple[Signal, ...] = (
    Signal("resolution", "the ticket ends the right way and all deciding evidence was gathered", 10.0),
    Signal("right_route", "the ending is the right one, with or without evidence", 2.0),
    Signal("evidence_complete", "a call reveals the last fact that decides the ending", 2.0),
    Signal("relevant_tool", "first useful call of a service that this ticket needs", 1.0),
    Signal("right_order", "that service was the next one due, nothing skipped", 0.25),
    Signal("new_information", "a call brings facts that were not known before", 0.5),
    Signal("efficiency", "at a resolution: value x shortest possible steps / steps taken", 3.0),
    Signal("step_cost", "every step; asking the adviser costs six times as much", -0.1),
    Signal("redundant_call", "a call, or a consultation, that can only repeat what is known", -1.0),
    Signal("irrelevant_tool", "first call of a service that this ticket does not need", -1.5),
    Signal("failed_call", "a call that fails by the agent's fault; an unusable output counts twice", -0.75),
    Signal("wrong_ending", "the ticket ends the wrong way, or before the evidence is complete", -6.0),
    Signal("unneeded_escalation", "escalated to a human although no human was needed", -2.0),
    Signal("timeout", "the step limit, or the limit of unusable outputs, is reached", -5.0),
)

SIGNAL_NAMES: tuple[str, ...] = tuple(signal.name for signal in SIGNALS)
VALUES: dict[str, float] = {signal.name: signal.value for signal in SIGNALS}
CONSULT_FACTOR: float = 6.0
INVALID_FACTOR: float = 2.0


def fire(**counts: float) -> dict[str, float]:
    """Turn fired signals into the full per-step dictionary.

    Args:
        **counts: Signal name to how strongly it fires (1.0 = its table value once).

    Returns:
        All 14 names in table order, each with value x strength; their sum is the step's reward.

    Raises:
        KeyError: If a name is not in the table.
    """
    signals = dict.fromkeys(SIGNAL_NAMES, 0.0)
    for name, strength in counts.items():
        signals[name] = VALUES[name] * strength
    return signals
