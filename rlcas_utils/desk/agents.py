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
    """Follows the handbook with the true kind of request: the upper reference, not a policy to deploy."""

    name = "oracle"

    def act(self, episode: Episode) -> int:
        """Return the action that is due."""
        return next_node(episode.ticket.tree, episode.ticket.written, episode.facts).action


class KeywordAgent:
    """What a support team writes in an hour: keywords pick the first service, facts pick the rest."""

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
    """Category guessed from keywords to the first service to ask."""

    NEXT: tuple[tuple[str, str, str], ...] = (
        ("*", "order.status=shipped", "logistics"),
        ("order", "order.status=delivered", "logistics"),
        ("shipping", "order.status=delivered", "logistics"),
        ("refund", "order.status=delivered", "refund"),
        ("*", "order.status=cancelled", "refund"),
        ("*", "order.status=backordered", "inventory"),
        ("account", "auth.identity=verified", "customer"),
        ("billing", "auth.identity=verified", "customer"),
        ("auth", "auth.login=locked", "customer"),
        ("auth", "auth.login=ok", "knowledge"),
        ("technical", "knowledge.match=hardware_defect", "order"),
        ("technical", "knowledge.match=safety_check", "inventory"),
    )
    """Guessed category (* any), a fact, and the service it calls for."""

    ENDS: tuple[tuple[str, str], ...] = (
        ("auth.identity=mismatch", "human"),
        ("auth.login=suspicious", "human"),
        ("auth.login=sso_error", "technical"),
        ("auth.login=code_desync", "technical"),
        ("order.status=hold_fraud", "human"),
        ("order.status=hold_payment", "billing"),
        ("refund.decision=fraud_flag", "human"),
        ("refund.decision=over_limit", "billing"),
        ("refund.decision=payout_failed", "billing"),
        ("refund.decision=return_missing", "ask"),
        ("logistics.status=lost", "human"),
        ("logistics.status=delivered_unsigned", "human"),
        ("logistics.status=address_problem", "ask"),
        ("logistics.status=customs", "ask"),
        ("inventory.lifecycle=recalled", "human"),
        ("inventory.stock=count_error", "technical"),
        ("customer.status=closed", "human"),
        ("customer.profile=sync_error", "technical"),
        ("customer.invoice=duplicate", "billing"),
        ("customer.invoice=overdue", "billing"),
        ("knowledge.match=no_fix", "technical"),
        ("knowledge.match=no_match", "technical"),
        ("knowledge.match=details_needed", "ask"),
    )
    """A fact and the ending it calls for, first match wins; `resolve` if none matches."""

    def act(self, episode: Episode) -> int:
        """Return the action the rules name."""
        category = INTENTS[guess_intent(episode.query, episode.ticket.written)][0]
        facts = {f"{name}={value}" for name, value in episode.facts.items()}
        if not facts:
            return SERVICES.index(self._first(category, episode))
        if any(".error=" in fact for fact in facts):
            return ENDINGS["ask"]
        for fact, ending in self.ENDS:
            if fact in facts:
                return ENDINGS[ending]
        for only, fact, service in self.NEXT:
            if only in ("*", category) and fact in facts and service not in episode.called:
                return SERVICES.index(service)
        return ENDINGS["resolve"]

    def _first(self, category: str, episode: Episode) -> str:
        by_number = category == "shipping" and episode.ticket.written.parcel_id
        return "logistics" if by_number else self.FIRST[category]
