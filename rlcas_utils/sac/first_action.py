"""A supervised yardstick: a classifier names the first action, keyword rules do the rest.

It learns from what the expert cannot have, the right first action of every training ticket, and shows how far
that alone goes: the rest of a ticket hangs on facts that nobody knows before the first action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlcas_utils.desk.agents import KeywordAgent
from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.sac.text import TextFunction, linear_probe


class FirstActionAgent(KeywordAgent):
    """Opens every ticket with the action that a classifier named, then follows the keyword rules."""

    name = "classifier"

    def __init__(self, first_actions: Mapping[str, int]) -> None:
        """Keep what the classifier said.

        Args:
            first_actions: Action id by message, for every message that will be played.
        """
        self.first_actions = first_actions

    def act(self, episode: Episode) -> int:
        """Return the classifier's action on the first step, the rules' action on later ones.

        Raises:
            KeyError: If the classifier was never asked about the message.
        """
        if episode.history:
            return super().act(episode)
        if episode.query not in self.first_actions:
            raise KeyError(
                f"no first action for {episode.query[:60]!r}; the agent would have to guess. "
                "Give `first_action_agent` every ticket that it will play."
            )
        return self.first_actions[episode.query]


def first_action_agent(
    read: TextFunction, train: Sequence[Ticket], play: Sequence[Ticket]
) -> FirstActionAgent:
    """Train a logistic regression on the oracle's first actions and let it read the tickets to be played.

    Args:
        read: Turns messages into vectors; the expert's reader, so that both read the same.
        train: Tickets whose first action is known.
        play: Tickets that the agent will play; only their messages are read.

    Returns:
        The agent.
    """
    right = [ticket.optimal_actions[0] for ticket in train]
    known = sorted(set(right))
    labels_N = np.array([known.index(action) for action in right])
    queries = [ticket.query for ticket in play]
    guesses = linear_probe(read([ticket.query for ticket in train]), labels_N, read(queries))
    return FirstActionAgent({query: known[guess] for query, guess in zip(queries, guesses, strict=True)})
