"""The evaluation protocol: every task several times, one row per episode, the same for scripts and models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rlcas_utils.telecom import agents, tau2
from rlcas_utils.telecom.conversation import TelecomConversation
from rlcas_utils.telecom.customers import SCRIPTED, CustomerFactory, scripted_customer
from rlcas_utils.telecom.demonstrations import ContaminationError
from rlcas_utils.telecom.prompt import render_call

# Plays conversations to their end: a batch of model rollouts, or `play_agent` for scripts.
Play = Callable[[list[TelecomConversation]], Any]


def puppet_customer(task: tau2.Task, seed: int) -> agents.Puppet:
    """The customer of the gold replay."""
    return agents.Puppet(task.user_scenario)


def require_test_tasks(task_ids: Sequence[str]) -> None:
    """Refuse to score a trained model on anything but the test split.

    Raises:
        ContaminationError: Some of the tasks are not in the test split; tau2's default split ``base`` holds
            the 74 training tasks, so a score on it would be 65 % memory.
    """
    seen = [task_id for task_id in task_ids if task_id not in set(tau2.split_ids("test"))]
    if seen:
        raise ContaminationError(
            f"contaminated {len(seen)}/{len(task_ids)}: these tasks are not in the test split, so the model "
            f"may have trained on them. Evaluate on tau2.tasks('test')."
        )


def play_agent(factory: agents.AgentFactory, conversations: Sequence[TelecomConversation], seed: int) -> None:
    """Let a scripted agent play, through the same text interface as a model.

    Args:
        factory: Makes the agent of one episode.
        conversations: Fresh conversations.
        seed: Passed to the factory.
    """
    for conversation in conversations:
        act = factory(conversation.task, seed)
        while not conversation.done:
            conversation.reply(render_call(*act(conversation.session.observation.text)))


def customer_seed(seed: int, trial: int) -> int:
    """Seed of the customer of one attempt; the same for every agent, so that agents meet equal customers."""
    return 1000 * (seed + 1) + trial


def evaluate(
    agent: str,
    tasks: Sequence[tau2.Task],
    play: Play,
    *,
    num_trials: int,
    seed: int = 0,
    make_customer: CustomerFactory = scripted_customer,
    customer: str = SCRIPTED,
    policy_arm: str = "none",
    max_turns: int = 100,
) -> list[dict[str, Any]]:
    """Play every task `num_trials` times and return one row per episode.

    Args:
        agent: Name in the rows: ``always_transfer, gold, expert, base, sft, grpo``.
        tasks: Test tasks; anything else is refused.
        play: Plays all conversations to their end.
        num_trials: Attempts per task.
        seed: First seed of the customers.
        make_customer: Makes the customer of one episode.
        customer: Its name in the rows.
        policy_arm: The system prompt.
        max_turns: Cap on agent turns.

    Returns:
        Rows ordered by trial, then task. Reward is tau2's own, unshaped.

    Raises:
        ContaminationError: A task is not in the test split.
    """
    require_test_tasks([task.id for task in tasks])
    plan = [(task, trial) for trial in range(num_trials) for task in tasks]
    conversations = [
        TelecomConversation(task, make_customer(task, customer_seed(seed, trial)), policy_arm, max_turns)
        for task, trial in plan
    ]
    play(conversations)
    return [
        {
            "agent": agent,
            "trial": trial,
            "seed": customer_seed(seed, trial),
            **episode_facts(conversation),
            "customer": customer,
            "policy_arm": policy_arm,
        }
        for (_, trial), conversation in zip(plan, conversations, strict=True)
    ]


def episode_facts(conversation: TelecomConversation) -> dict[str, Any]:
    """What a finished episode says for a row, independent of who played it."""
    task, result = conversation.task, conversation.score
    first = conversation.first_transfer_turn
    return {
        "task_id": task.id,
        "group": "transfer" if tau2.is_transfer_task(task) else "fixable",
        "num_faults": len(tau2.parse_task_id(task.id).faults),
        "reward": result.reward,
        "partial": round(result.partial, 6),
        "turns": conversation.session.turns,
        "end": result.end,
        "transferred": first is not None,
        "first_transfer_turn": first,
        "tool_errors": dict(sorted(conversation.tool_errors.items())),
        "flags": list(result.flags),
    }
