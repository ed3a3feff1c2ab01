"""Policies that try to earn reward without doing the work; none may get 40 % of the oracle's return."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from rlcas_utils.desk.actions import ACTIONS, CONSULT, ENDINGS, SERVICES
from rlcas_utils.desk.agents import RandomAgent
from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.evaluation import play
from rlcas_utils.desk.ticket import Ticket


class ScriptAgent:
    """Plays a fixed script of actions, whatever it sees; the last part repeats for ever."""

    def __init__(self, name: str, script: list[int], then: list[int] | None = None) -> None:
        """Store the script.

        Args:
            name: Name in tables.
            script: Action ids of the first steps.
            then: Action ids repeated afterwards; the whole script repeats if None.
        """
        self.name, self.script, self.then = name, script, then or script
        self._rest: Iterator[int] = iter(())

    def act(self, episode: Episode) -> int:
        """Return the next action of the script."""
        step = len(episode.history)
        if step == 0:
            self._rest = cycle(self.then)
        return self.script[step] if step < len(self.script) else next(self._rest)


def hacking_agents() -> list[ScriptAgent | RandomAgent]:
    """Return all policies: constant actions, repeats, spam, endless advice, blind endings, random."""
    tools = list(range(len(SERVICES)))
    agents: list[ScriptAgent | RandomAgent] = [RandomAgent(0)]
    agents += [ScriptAgent(f"always {name}", [action]) for action, name in enumerate(ACTIONS)]
    agents += [ScriptAgent(f"all tools, then {name}", tools, [end]) for name, end in ENDINGS.items()]
    agents += [ScriptAgent("tools for ever", tools)]
    agents += [ScriptAgent("advice, then escalate", [CONSULT] * 3, [ENDINGS["human"]])]
    agents += [ScriptAgent("order, sign-in, logistics for ever", [0, 3, 4])]
    for first in tools:
        for name, end in ENDINGS.items():
            agents.append(ScriptAgent(f"{SERVICES[first]}, then {name}", [first], [end]))
    for name, end in ENDINGS.items():
        agents.append(ScriptAgent(f"sign-in, account, then {name}", [3, 2], [end]))
        agents.append(ScriptAgent(f"order, logistics, then {name}", [0, 4], [end]))
    return agents


def mean_return(agent: ScriptAgent | RandomAgent, tickets: tuple[Ticket, ...]) -> float:
    """Return the mean return of an agent over tickets."""
    return sum(play(agent, ticket).total_reward for ticket in tickets) / len(tickets)


def worst_hack(tickets: tuple[Ticket, ...]) -> tuple[str, float]:
    """Find the best-paid hacking policy.

    Args:
        tickets: Tickets to play.

    Returns:
        Its name and mean return.
    """
    means = {agent.name: mean_return(agent, tickets) for agent in hacking_agents()}
    return max(means.items(), key=lambda item: item[1])
