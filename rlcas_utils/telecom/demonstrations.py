"""Expert episodes to learn from: recorded on training tasks only, kept only if tau2 gives them reward 1."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlcas_utils.records import write_atomic
from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.customers import CustomerFactory
from rlcas_utils.telecom.prompt import render_call, render_observation, system_prompt
from rlcas_utils.telecom.scoring import score
from rlcas_utils.telecom.session import Session

ENVIRONMENT_WEIGHT = 0.1  # loss weight of tokens that customer and tools wrote; the agent's weigh 1


@dataclass(frozen=True)
class Turn:
    """One agent turn: what it saw, what it thought, what it did."""

    observation: str
    thought: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Demonstration:
    """A solved episode."""

    task_id: str
    seed: int
    turns: tuple[Turn, ...]


# An expert is a function from the observation to (thought, name, arguments), fresh for each episode.
Expert = Callable[[str], tuple[str, str, dict[str, Any]]]
ExpertFactory = Callable[[int], Expert]


class ContaminationError(ValueError):
    """A test task among the training data."""


def refuse_test_tasks(task_ids: Iterable[str]) -> None:
    """Stop if a task of the test split is about to be trained on.

    tau2's default split ``base`` is train and test together, so this happens by leaving out one argument.

    Raises:
        ContaminationError: With the number of test tasks and the first of them.
    """
    leaked = sorted(set(task_ids) & set(tau2.split_ids("test")))
    if leaked:
        raise ContaminationError(
            f"{len(leaked)} of the training tasks belong to the test split ({leaked[0]} ...), so a score on "
            f"test would be contaminated. Train on split 'train' (74 tasks)."
        )


def record_episode(
    task: tau2.Task, seed: int, make_expert: ExpertFactory, make_customer: CustomerFactory
) -> tuple[Demonstration, float]:
    """Let the expert serve one customer.

    Args:
        task: The task.
        seed: Fixes the wording of both sides.
        make_expert: Builds an expert from a seed.
        make_customer: Builds a customer from task and seed.

    Returns:
        The episode and its tau2 reward.
    """
    session = Session(task, make_customer(task, seed), max_turns=100)
    expert = make_expert(seed)
    turns = []
    while not session.done:
        seen = session.observation
        thought, name, arguments = expert(seen.text)
        shown = render_observation(seen.text, is_tool_result=seen.is_tool_result)
        turns.append(Turn(shown, thought, name, arguments))
        session.step(name, arguments)
    return Demonstration(task.id, seed, tuple(turns)), score(session).reward


def collect(
    tasks: Sequence[tau2.Task],
    seeds: Sequence[int],
    make_expert: ExpertFactory,
    make_customer: CustomerFactory,
) -> tuple[list[Demonstration], int]:
    """Record every task with every seed and keep the solved episodes.

    Returns:
        The demonstrations, seed by seed, and the number of episodes dropped.

    Raises:
        ContaminationError: A task belongs to the test split.
    """
    refuse_test_tasks(task.id for task in tasks)
    kept: list[Demonstration] = []
    dropped = 0
    for seed in seeds:
        for task in tasks:
            demonstration, reward = record_episode(task, seed, make_expert, make_customer)
            if reward == 1.0:
                kept.append(demonstration)
            else:
                dropped += 1
    return kept, dropped


def segments(demonstration: Demonstration, policy_arm: str) -> Iterator[tuple[str, bool]]:
    """The ChatML text of an episode in pieces, each with whether the agent wrote it.

    The cuts are those of a rollout (prompt, model turn, suffix, model turn, ...), so tokenising piece by
    piece gives the very ids that the rollout engine will produce.
    """
    system = system_prompt(policy_arm)
    opening = f"<|im_start|>system\n{system}<|im_end|>\n" if system else ""
    for index, turn in enumerate(demonstration.turns):
        lead = opening if index == 0 else "\n"
        yield f"{lead}<|im_start|>user\n{turn.observation}<|im_end|>\n<|im_start|>assistant\n", False
        yield f"{render_call(turn.thought, turn.name, turn.arguments)}<|im_end|>", True


def chatml(demonstration: Demonstration, policy_arm: str) -> str:
    """The whole episode as ChatML text."""
    return "".join(text for text, _ in segments(demonstration, policy_arm))


def token_row(
    demonstration: Demonstration,
    tokenizer: Any,
    policy_arm: str,
    environment_weight: float = ENVIRONMENT_WEIGHT,
) -> dict[str, list]:
    """Token ids of an episode with one loss weight per token.

    Args:
        demonstration: The episode.
        tokenizer: Any ChatML tokenizer.
        policy_arm: The system prompt that goes before it.
        environment_weight: Weight of tokens that the agent did not write; 0 masks them.

    Returns:
        ``input_ids`` and ``weights`` of equal length.
    """
    ids: list[int] = []
    weights: list[float] = []
    for text, by_agent in segments(demonstration, policy_arm):
        piece = tokenizer.encode(text, add_special_tokens=False)
        ids.extend(piece)
        weights.extend([1.0 if by_agent else environment_weight] * len(piece))
    return {"input_ids": ids, "weights": weights}


def write_demonstrations(path: Path, demonstrations: Sequence[Demonstration]) -> None:
    """Write one JSON line per episode, whole or not at all."""
    lines = [json.dumps(asdict(d), ensure_ascii=False) for d in demonstrations]
    write_atomic(path, "\n".join(lines) + "\n")


def read_demonstrations(path: Path) -> list[Demonstration]:
    """Read what `write_demonstrations` wrote."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Demonstration(r["task_id"], r["seed"], tuple(Turn(**t) for t in r["turns"])) for r in rows]
