"""Rows to read a trained agent beside: handing over every caller, replaying the answer, the expert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlcas_utils.telecom import agents, evaluation, tau2
from rlcas_utils.telecom.customers import SCRIPTED, scripted_customer

YARDSTICKS = {"always_transfer": agents.always_transfer, "gold": agents.gold, "expert": agents.expert}


def play(name: str, tasks: Sequence[tau2.Task], num_trials: int, seed: int) -> list[dict[str, Any]]:
    """Rows of a scripted agent under the evaluation protocol, against the scripted customer.

    The gold replay names tools instead of talking, so it gets the customer that runs what it is told.

    Args:
        name: One of `YARDSTICKS`.
        tasks: Test tasks.
        num_trials: Attempts per task.
        seed: Of agent and customers.
    """
    puppet = name == "gold"
    return evaluation.evaluate(
        name,
        tasks,
        lambda conversations: evaluation.play_agent(YARDSTICKS[name], conversations, seed),
        num_trials=num_trials,
        seed=seed,
        make_customer=evaluation.puppet_customer if puppet else scripted_customer,
        customer="puppet" if puppet else SCRIPTED,
    )
