"""What is trained on: the named arms of demonstrations and of reward, and which task comes when."""

from __future__ import annotations

import random
from collections.abc import Sequence

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.demonstrations import refuse_test_tasks
from rlcas_utils.telecom.endings import CUSTOMER_FAILED
from rlcas_utils.telecom.scoring import Score

TRAIN_ARMS = {
    "train74": "the 74 tasks of the training split",
    "outside_test": "all 2,245 tasks that are not in the test split",
}
REWARD_ARMS = {
    "robust": "tau2's reward and the partial score that cannot be gamed",
    "plain": "tau2's reward alone",
    "raw_match": "tau2's reward and its gameable share of matched actions: a hack, for comparison",
}


def _check(arm: str, known: dict[str, str], name: str) -> None:
    if arm not in known:
        raise ValueError(f"{name} is {arm!r}, so it is unclear what to train on. Set one of {list(known)}.")


def demonstration_tasks(arm: str) -> tuple[tau2.Task, ...]:
    """The tasks that the expert demonstrates; none of them is a test task.

    Args:
        arm: A name in `TRAIN_ARMS`.

    Raises:
        ValueError: Unknown arm.
        ContaminationError: A test task among them.
    """
    _check(arm, TRAIN_ARMS, "TRAIN_ARM")
    test = set(tau2.split_ids("test"))
    found = (
        tau2.tasks("train") if arm == "train74" else tuple(t for t in tau2.tasks("full") if t.id not in test)
    )
    refuse_test_tasks(task.id for task in found)
    return found


def training_reward(score: Score, arm: str, weight: float) -> float | None:
    """What GRPO trains on; never reported as a result.

    Args:
        score: Of a finished episode.
        arm: A name in `REWARD_ARMS`.
        weight: Of the partial score beside tau2's reward of 0 or 1.

    Returns:
        The reward, or None if the customer failed, which is not the agent's doing.

    Raises:
        ValueError: Unknown arm.
    """
    _check(arm, REWARD_ARMS, "REWARD_ARM")
    if score.end == CUSTOMER_FAILED:
        return None
    progress = {"robust": score.partial, "plain": 0.0, "raw_match": score.raw_action_match}
    return score.reward + weight * progress[arm]


def solved_rate(scores: Sequence[Score]) -> float | None:
    """Share of the attempts at a task that solved it; None if the customer failed in all of them."""
    played = [score.reward for score in scores if score.end != CUSTOMER_FAILED]
    return sum(played) / len(played) if played else None


def teaches(rate: float | None) -> bool:
    """False if screening found a task always solved or never: its groups would be without differences."""
    return rate is None or 0 < rate < 1


def schedule(rows: Sequence[dict], num_steps: int, per_step: int, *, seed: int) -> list[dict]:
    """Tasks with few faults first, and in every step the same share of tasks that end in a transfer.

    Over the first half of the steps the most faults allowed rise from the fewest to the most there are; then
    every task may come. Without the fixed share a step of repairs alone would unlearn when to hand over, and
    the other way round.

    Args:
        rows: Training rows, each task once, under `task_id`.
        num_steps: Optimizer steps.
        per_step: Tasks per step.
        seed: Of the order.

    Returns:
        `num_steps * per_step` rows, step by step.

    Raises:
        ValueError: There are no tasks.
    """
    if not rows:
        raise ValueError("there are no training tasks, so no step can be filled. Choose training tasks.")
    draw = random.Random(seed)
    kinds: dict[bool, list[dict]] = {True: [], False: []}
    for row in rows:
        kinds[tau2.is_transfer_task(tau2.task_by_id(row["task_id"]))].append(row)
    share = len(kinds[True]) / len(rows)
    decks: dict[bool, list[dict]] = {True: [], False: []}
    plan: list[dict] = []
    for step in range(num_steps):
        transfers = round((step + 1) * per_step * share) - round(step * per_step * share)
        wanted = {True: transfers, False: per_step - transfers}
        for kind, count in wanted.items():
            limit = _most_faults(kinds[kind], step, num_steps)
            plan += [_draw(decks[kind], kinds[kind], limit, draw) for _ in range(count)]
    return plan


def num_faults(row: dict) -> int:
    """Number of faults that the task of a row has."""
    return len(tau2.parse_task_id(row["task_id"]).faults)


def _most_faults(rows: Sequence[dict], step: int, num_steps: int) -> int:
    """The limit of a step: linear over the first half."""
    faults = [num_faults(row) for row in rows] or [0]
    progress = min(1.0, 2 * step / max(1, num_steps - 1))
    return round(min(faults) + progress * (max(faults) - min(faults)))


def _draw(deck: list[dict], rows: Sequence[dict], limit: int, draw: random.Random) -> dict:
    """Takes a task off a shuffled deck; a deck without one that is allowed is shuffled anew."""
    for _ in range(2):
        for place, row in enumerate(deck):
            if num_faults(row) <= limit:
                return deck.pop(place)
        deck[:] = draw.sample(list(rows), len(rows))
    raise ValueError(f"no task has {limit} faults or fewer; the limit is below the easiest task's.")
