"""Three agents without learning: random, keyword rules, and the oracle that reads the hidden truth."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from rlcas_utils.desk.actions import ACTIONS, ENDINGS, SERVICES
from rlcas_utils.desk.adviser import guess_intent
from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.handbook import next_node
from rlcas_utils.desk.rules import INTENTS


class Agent(Protocol):
    """Anything that names the next action of an episode."""

    name: str

    def act(self, episode: Episode) -> int:
        """Return an action id."""
        ...


class RandomAgent:
    """Draws every action uniformly."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        """Start the generator.

        Args:
            seed: Seed of the draws.
        """
        self.rng = np.random.default_rng(seed)

    def act(self, episode: Episode) -> int:
        """Return a random action id."""
        return int(self.rng.integers(len(ACTIONS)))


class OracleAgent:
    """Follows the handbook with the ticket's true intent; the upper reference, not a policy one could deploy."""

    name = "oracle"

    def act(self, episode: Episode) -> int:
        """Return the action that is due."""
        return next_node(episode.ticket.tree, episode.ticket.written, episode.facts).action


class KeywordAgent:
    """Rules of the kind a support team writes in an hour: keywords pick the first service, facts pick the rest."""

    name = "rules"

    FIRST: ClassVar[dict[str, str]] = {
        "order": "order",
        "refund": "order",
        "shipping": "order",
        "account": "auth",
        "auth": "auth",
        "billing": "auth",
        "inventory": "inventory",
        "technical": "knowledge",
    }
    NEXT: tuple[tuple[str, str], ...] = (
        ("order.status=shipped", "logistics"),
        ("order.status=backordered", "inventory"),
        ("auth.identity=verified", "customer"),
    )
    ENDS: tuple[tuple[str, str], ...] = (
        ("auth.identity=mismatch", "human"),
        ("auth.login=suspicious", "human"),
        ("order.status=hold_fraud", "human"),
        ("refund.decision=fraud_flag", "human"),
        ("logistics.status=lost", "human"),
        ("logistics.status=delivered_unsigned", "human"),
        ("inventory.lifecycle=recalled", "human"),
        ("order.status=hold_payment", "billing"),
        ("refund.decision=over_limit", "billing"),
        ("refund.decision=payout_failed", "billing"),
        ("customer.invoice=duplicate", "billing"),
        ("auth.login=sso_error", "technical"),
        ("customer.profile=sync_error", "technical"),
        ("knowledge.match=no_fix", "technical"),
        ("knowledge.match=no_match", "technical"),
        ("knowledge.match=details_needed", "ask"),
        ("refund.decision=return_missing", "ask"),
        ("logistics.status=address_problem", "ask"),
        ("logistics.status=customs", "ask"),
    )

    def act(self, episode: Episode) -> int:
        """Return the action the rules name."""
        facts = {f"{name}={value}" for name, value in episode.facts.items()}
        if not facts:
            return SERVICES.index(self._first(episode))
        if any(".error=" in fact for fact in facts):
            return ENDINGS["ask"]
        for fact, ending in self.ENDS:
            if fact in facts:
                return ENDINGS[ending]
        category = INTENTS[guess_intent(episode.query)][0]
        follow = (*self.NEXT, ("order.status=delivered", "refund")) if category == "refund" else self.NEXT
        for fact, service in follow:
            if fact in facts and service not in episode.called:
                return SERVICES.index(service)
        return ENDINGS["resolve"]

    def _first(self, episode: Episode) -> str:
        category = INTENTS[guess_intent(episode.query)][0]
        if category == "shipping" and episode.ticket.written.parcel_id:
            return "logistics"
        return self.FIRST[category]
