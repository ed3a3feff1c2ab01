"""The adviser behind `consult_llm`, and the keyword table it shares with the rule agent.

The built-in one guesses the kind of request from keywords and names the handbook's next action for that
guess. It sees only what an agent may see, so it is wrong whenever the keywords mislead it. Anything else that
turns a `Case` into an `Advice` can take its place, such as `api_agents.ApiAdviser`, a hosted model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from rlcas_utils.desk.handbook import next_node
from rlcas_utils.desk.identifiers import Identifiers, normalise
from rlcas_utils.desk.rules import INTENTS


@dataclass(frozen=True, slots=True)
class Case:
    """What an adviser may see of an episode.

    Attributes:
        query: The customer's message.
        written: Identifiers in it.
        facts: Facts revealed so far.
        history: For each step so far the action, None for an unusable output, and the line that came back.
    """

    query: str
    written: Identifiers
    facts: dict[str, str]
    history: tuple[tuple[int | None, str], ...] = ()


class Advice(NamedTuple):
    """An action id 0 to 11, or None with the reason why there is no usable advice."""

    action: int | None
    reason: str = ""


Adviser = Callable[[Case], Advice]

KEYWORDS: dict[str, tuple[str, ...]] = {
    "second_factor": (
        "authenticator",
        "two-factor",
        "two factor",
        "2fa",
        "verification code",
        "codes",
        "sms",
    ),
    "hacked": (
        "hack",
        "somebody else",
        "someone else",
        "suspicious",
        "not me",
        "wasn't me",
        "phishing",
        "fake",
    ),
    "account_close": ("close my account", "delete my account", "my data", "erase", "close the account"),
    "login": ("password", "log in", "login", "sign in", "signing in", "log on", "locked", "get into"),
    "refund_status": ("my refund", "refund status", "still no refund", "reimburse"),
    "unknown_charge": (
        "recognise",
        "recognize",
        "unknown charge",
        "never ordered",
        "never bought",
        "not mine",
    ),
    "charge": ("inv-", "invoice", "charged", "billed", "my bill", "paid twice", "vat", "receipt"),
    "refund_request": ("refund", "money back", "return", "send it back", "send back"),
    "exchange": ("exchange", "swap", "another colour", "another size"),
    "order_change": ("cancel", "change my order", "change the address", "wrong address", "new address"),
    "damaged": ("damaged", "smashed", "crushed", "dent", "arrived broken", "came broken", "in pieces"),
    "account_update": (
        "my account",
        "profile",
        "points",
        "newsletter",
        "phone number",
        "unsubscribe",
        "surname",
    ),
    "parcel": ("parcel", "tracking", "px", "courier", "driver", "delivered", "delivery", "package"),
    "stock": ("in stock", "available", "back in stock", "restock", "sold out", "still sell", "reserve"),
    "fault": ("error", "fault", "not work", "broken", "won't", "crash", "app ", "leak", "smell", "battery"),
    "product_info": ("does the", "is the", "dishwasher", "compatible", "guarantee", "how long", "what size"),
    "order_status": ("order",),
}
"""Words that suggest an intent; the first intent with a hit wins."""


def guess_intent(query: str, written: Identifiers) -> str:
    """Guess the kind of request: a fault code decides, then the first keyword hit, then a product's name.

    Args:
        query: The customer's message.
        written: Identifiers in it.

    Returns:
        A key of `rules.INTENTS`; `order_status` if nothing points anywhere.
    """
    if written.fault:
        return "fault"
    plain = normalise(query)
    for intent, words in KEYWORDS.items():
        if any(word in plain for word in words):
            return intent
    if written.sku and not written.order_id:
        return "stock" if "?" in query else "fault"
    return "order_status"


def advise(case: Case) -> Advice:
    """Name the action that looks most useful: the built-in adviser, offline and deterministic.

    Args:
        case: What is known so far.

    Returns:
        An action. If the facts do not fit the guessed kind of request, it is asking a human.
    """
    try:
        tree = INTENTS[guess_intent(case.query, case.written)][1]
        return Advice(next_node(tree, case.written, case.facts).action)
    except LookupError:
        return Advice(11)
