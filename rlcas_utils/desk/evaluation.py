"""Plays an agent over tickets and returns one row per episode."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rlcas_utils.desk.agents import Agent
from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.rewards import SIGNAL_NAMES
from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.desk.world import World


def play(agent: Agent, ticket: Ticket, world: World | None = None, max_steps: int = 10) -> Episode:
    """Let an agent handle one ticket to its end.

    Args:
        agent: Object with `act(episode) -> int`.
        ticket: The ticket.
        world: Database; the shared default if None.
        max_steps: Step limit.

    Returns:
        The finished episode.
    """
    episode = Episode(ticket, world, max_steps)
    while not episode.done:
        episode.step(agent.act(episode))
    return episode


def episode_row(episode: Episode, name: str, seed: int = 0) -> dict[str, Any]:
    """Summarise a finished episode.

    Args:
        episode: The episode, driven by any kind of agent.
        name: Agent name in tables.
        seed: Seed the agent ran with.

    Returns:
        JSON-able row: agent, ticket_id, category, seed, return, resolved, steps, parse_failures, outcome,
        actions (None for an unusable output) and the summed signals.
    """
    steps = episode.history
    return {
        "agent": name,
        "ticket_id": episode.ticket.ticket_id,
        "category": episode.ticket.category,
        "seed": seed,
        "return": round(episode.total_reward, 6),
        "resolved": bool(steps and steps[-1].resolved),
        "steps": len(steps),
        "parse_failures": sum(step.action is None for step in steps),
        "outcome": steps[-1].outcome if steps else "running",
        "actions": [step.action for step in steps],
        "signals": {n: round(sum(step.signals[n] for step in steps), 6) for n in SIGNAL_NAMES},
    }


def evaluate(
    agent: Agent, tickets: Iterable[Ticket], name: str | None = None, seed: int = 0, max_steps: int = 10
) -> list[dict[str, Any]]:
    """Play an agent over tickets.

    Args:
        agent: Object with `act(episode) -> int`.
        tickets: Tickets in the order to play.
        name: Name in the rows; the agent's own if None.
        seed: Written into the rows.
        max_steps: Step limit per episode.

    Returns:
        One row per ticket, see `episode_row`.
    """
    return [
        episode_row(play(agent, ticket, max_steps=max_steps), name or agent.name, seed) for ticket in tickets
    ]
