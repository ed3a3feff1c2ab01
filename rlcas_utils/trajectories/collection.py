"""Play tickets with an expert and keep every episode whole, good or bad: judging comes later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.trajectories.schema import Step, Trajectory


class Agent(Protocol):
    """What can play the desk."""

    def act(self, episode: Episode) -> int:
        """Return an action id for what the episode shows so far."""
        ...


def play(agent: Agent, ticket: Ticket, name: str, seed: int) -> Trajectory:
    """Play one ticket to its end.

    Args:
        agent: Plays.
        ticket: Ticket to play.
        name: Name of the agent.
        seed: Seed of the agent's choices, for the record.

    Returns:
        The whole episode.
    """
    episode = Episode(ticket)
    steps, truncated = [], False
    while not episode.done:
        action = int(agent.act(episode))
        step = episode.step(action)
        truncated = step.truncated
        steps.append(Step(action, float(step.reward), dict(step.signals), dict(step.result), step.text))
    return Trajectory(
        ticket_id=ticket.ticket_id,
        category=ticket.category,
        intent=ticket.intent,
        template_id=ticket.template_id or "hand-written",
        agent=name,
        seed=seed,
        query=episode.query,
        steps=tuple(steps),
        total_reward=float(sum(step.reward for step in steps)),
        resolved=bool(step.resolved),
        truncated=bool(truncated),
        outcome=step.outcome,
    )


def collect(
    make_agent: Callable[[int], Agent], tickets: Iterable[Ticket], seeds: Sequence[int], name: str = "sac"
) -> list[Trajectory]:
    """Play every ticket once per seed.

    Args:
        make_agent: Makes the agent of a seed; seed 0 is by custom the argmax agent, others sample.
        tickets: Tickets to play.
        seeds: Seeds of the agent's choices.
        name: Name of the agent.

    Returns:
        All episodes, seed by seed.
    """
    tickets = list(tickets)
    return [play(agent, ticket, name, s) for s in seeds for agent in [make_agent(s)] for ticket in tickets]
