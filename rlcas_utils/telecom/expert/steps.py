"""The pieces the workflow is made of: one step, one conversation's case, asking, calling, handing over."""

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

from rlcas_utils.telecom.expert import reading, wording
from rlcas_utils.telecom.expert.notes import Notes

Flow = Generator["Step", str, Any]
MAX_REPEATS = 2  # how often a step is said again to a customer who did not understand


@dataclass(frozen=True)
class Step:
    """One action of the workflow: its label in the thought, tool name and arguments."""

    label: str
    name: str
    arguments: dict[str, Any]


@dataclass
class Case:
    """One conversation: memory, wording and style."""

    seed: int = 0
    single: bool = True
    variety: int = 1
    notes: Notes = field(default_factory=Notes)
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)


def call(label: str, tool: str, **arguments: Any) -> Flow:
    """Use one of the agent's own tools."""
    return (yield Step(label, tool, arguments))


def ask(case: Case, *steps: str, **facts: Any) -> Flow:
    """Ask the customer for steps: one message each, or one message for all if not `single`."""
    texts = [wording.say(step, case.rng, case.variety, **facts) for step in steps]
    groups = (
        [[pair] for pair in zip(steps, texts, strict=True)]
        if case.single
        else [list(zip(steps, texts, strict=True))]
    )
    reply = ""
    for group in groups:
        label, text = ", ".join(step for step, _ in group), " ".join(text for _, text in group)
        for _ in range(1 + MAX_REPEATS):
            reply = yield Step(label, "respond", {"content": text})
            if not reading.confused(reply):
                break
        case.notes.see_bar(reply)
    return reply


def transfer(case: Case, why: str) -> Flow:
    """Hand the customer over to a human: the tool first, then the notice."""
    yield from call("transfer", "transfer_to_human_agents", summary=why)
    while True:
        yield from ask(case, "transfer notice")
        yield Step("done", "done", {})


def finish() -> Flow:
    """The fault is gone."""
    while True:
        yield Step("done", "done", {})
