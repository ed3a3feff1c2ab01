"""A scripted expert agent that follows the tech-support workflow and sees only what an agent sees."""

from dataclasses import dataclass
from typing import Any

from rlcas_utils.telecom.expert.flows import run
from rlcas_utils.telecom.expert.steps import Case, Flow

__all__ = ["Action", "Expert"]


@dataclass(frozen=True)
class Action:
    """One turn of an agent.

    Attributes:
        name: One of the 13 agent tools, "respond" or "done".
        arguments: The tool's arguments; "respond" has `content`.
        thought: The expert's memory before acting, in a fixed small vocabulary.
    """

    name: str
    arguments: dict[str, Any]
    thought: str


class Expert:
    """Solves telecom tasks by the workflow.

    Args:
        seed: Picks among wordings.
        single: At most one device action in each message; False joins related ones.
        variety: Number of wordings per step, at least 1. 1 always says the same.

    Raises:
        ValueError: `variety` below 1.
    """

    def __init__(self, seed: int = 0, single: bool = True, variety: int = 1) -> None:
        if variety < 1:
            raise ValueError(
                f"variety is {variety}; the expert would have nothing to say. Set it to 1 or more."
            )
        self._case = Case(seed, single, variety)
        self._flow: Flow | None = None

    def act(self, observation: str) -> Action:
        """The next action.

        Args:
            observation: The customer's words or the result of the expert's last tool call; at first the
                customer's opening message.
        """
        if self._flow is None:
            self._flow = run(self._case, observation)
            step = next(self._flow)
        else:
            step = self._flow.send(observation)
        return Action(step.name, step.arguments, self._case.notes.thought(step.label))
