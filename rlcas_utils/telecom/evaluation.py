"""The evaluation protocol: every task several times, one row per episode, the same for scripts and models."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rlcas_utils.api_journal import Journal
from rlcas_utils.telecom import agents, tau2
from rlcas_utils.telecom.conversation import TelecomConversation
from rlcas_utils.telecom.customers import SCRIPTED, CustomerFactory, scripted_customer
from rlcas_utils.telecom.demonstrations import ContaminationError
from rlcas_utils.telecom.kept import KeptConversation
from rlcas_utils.telecom.prompt import render_call

# Plays conversations to their end: a batch of model rollouts, or `play_agent` for scripts.
Play = Callable[[list[KeptConversation]], Any]
OnEnd = Callable[[KeptConversation], None]


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


def without_known_bad(tasks: Sequence[tau2.Task], known_bad: Collection[str]) -> list[tau2.Task]:
    """Leave out tasks that are known to be broken, and print which: the score is then of another benchmark.

    Args:
        tasks: The tasks to evaluate.
        known_bad: Their ids to leave out.

    Raises:
        ValueError: An id is not among the tasks, so leaving it out would change nothing unnoticed.
    """
    unknown = sorted(set(known_bad) - {task.id for task in tasks})
    if unknown:
        raise ValueError(
            f"{len(unknown)} of the ids to leave out are not among the {len(tasks)} tasks, {unknown[0]} for "
            "one; leaving them out would change nothing. Correct the list."
        )
    if known_bad:
        print(f"{len(known_bad)} of {len(tasks)} tasks left out as known to be bad:")
        print("\n".join(f"  {task.id}" for task in tasks if task.id in known_bad))
    return [task for task in tasks if task.id not in known_bad]


def play_agent(
    factory: agents.AgentFactory, conversations: Sequence[TelecomConversation], seed: int, workers: int = 1
) -> None:
    """Let a scripted agent play, through the same text interface as a model.

    Args:
        factory: Makes the agent of one episode.
        conversations: Fresh conversations.
        seed: Passed to the factory.
        workers: Conversations played side by side, in threads. Changes nothing but the time.
    """

    def play(conversation: TelecomConversation) -> None:
        act = factory(conversation.task, seed)
        while not conversation.done:
            conversation.reply(render_call(*act(conversation.session.observation.text)))

    _each(play, conversations, workers)


def _each(function: Callable[[Any], Any], items: Sequence[Any], workers: int) -> list[Any]:
    """`map` over threads; one worker means none."""
    if workers <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, items))


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
    temperature: float | None = None,
    known_bad: Collection[str] = (),
    workers: int = 1,
    journal: Journal | None = None,
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
        temperature: Of the model's sampling; None for scripts. 0 with several trials is warned about.
        known_bad: Ids of tasks to leave out; they are printed.
        workers: Conversations opened side by side; opening one waits for a model customer's first words.
        journal: Where each row is written when its episode ends; what it holds already is not played again,
            except episodes that were lost to a server.

    Returns:
        Rows ordered by trial, then task. Reward is tau2's own, unshaped.

    Raises:
        ContaminationError: A task is not in the test split.
    """
    require_test_tasks([task.id for task in tasks])
    _warn_if_greedy(temperature, num_trials)
    tasks = without_known_bad(tasks, known_bad)
    plan = [(task, trial) for trial in range(num_trials) for task in tasks]

    def open_one(task: tau2.Task, trial: int, on_end: OnEnd) -> KeptConversation:
        opposite = make_customer(task, customer_seed(seed, trial))
        return KeptConversation(task, opposite, policy_arm, max_turns, on_end=on_end)

    def row(conversation: KeptConversation, trial: int) -> dict[str, Any]:
        who = {"agent": agent, "trial": trial, "seed": customer_seed(seed, trial)}
        how = {"customer": customer, "policy_arm": policy_arm}
        return who | episode_facts(conversation) | how | conversation.spending()

    return _play_missing(plan, open_one, row, play, journal, workers)


def _play_missing(
    plan: Sequence[tuple[tau2.Task, int]],
    open_one: Callable[[tau2.Task, int, OnEnd], KeptConversation],
    row_of: Callable[[KeptConversation, int], dict[str, Any]],
    play: Play,
    journal: Journal | None,
    workers: int,
) -> list[dict[str, Any]]:
    """Play what the journal does not hold; return all rows of the plan, in its order."""
    rows = {(row["task_id"], row["trial"]): row for row in (journal.rows if journal else ())}

    def start(entry: tuple[tau2.Task, int]) -> KeptConversation:
        task, trial = entry

        def keep(conversation: KeptConversation) -> None:
            rows[task.id, trial] = row_of(conversation, trial)
            if journal is not None:
                journal.append(rows[task.id, trial])

        return open_one(task, trial, keep)

    missing = [(task, trial) for task, trial in plan if (task.id, trial) not in rows]
    conversations = _each(start, missing, workers)
    play([conversation for conversation in conversations if not conversation.done])
    return [rows[task.id, trial] for task, trial in plan]


def _warn_if_greedy(temperature: float | None, num_trials: int) -> None:
    if temperature == 0 and num_trials > 1:
        warnings.warn(
            f"temperature is 0 and num_trials {num_trials}: attempts at a task differ by the customer only, "
            "so pass@k and pass^k say little about the agent. Sample, or use one trial.",
            stacklevel=3,
        )


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
        "lost": conversation.session.failure,
    }
