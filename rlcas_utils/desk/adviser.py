"""The adviser behind `consult_llm`, and the keyword table it shares with the rule agent.

It guesses the kind of request from keywords and names the handbook's next action for that guess. It sees
only what an agent may see, so it is wrong whenever the keywords mislead it.
"""

from __future__ import annotations

from rlcas_utils.desk.handbook import next_node
from rlcas_utils.desk.identifiers import Identifiers, normalise
from rlcas_utils.desk.rules import INTENTS

KEYWORDS: dict[str, tuple[str, ...]] = {
    "second_factor": (
        "authenticator",
        "two-factor",
        "2fa",
        "verification code",
        "security code",
        "new phone",
    ),
    "hacked": ("hack", "someone else", "suspicious", "wasn't me", "not me"),
    "login": ("password", "log in", "login", "sign in", "locked out"),
    "refund_status": ("where is my refund", "refund status", "still no refund", "waiting for my refund"),
    "refund_request": ("refund", "money back", "return"),
    "unknown_charge": ("don't recognise", "do not recognise", "unknown charge", "never ordered"),
    "charge": ("invoice", "charged", "charge", "bill", "payment", "paid twice"),
    "account_close": ("close my account", "delete my account", "delete my data", "erase"),
    "account_update": (
        "my account",
        "profile",
        "loyalty",
        "points",
        "e-mail address",
        "phone number",
        "newsletter",
    ),
    "exchange": ("exchange", "swap", "replace it"),
    "order_change": ("cancel", "change my order", "change the address", "wrong address"),
    "damaged": ("damaged", "broken on arrival", "arrived broken", "cracked", "smashed"),
    "parcel": ("parcel", "tracking", "delivery", "delivered", "courier", "shipping", "package"),
    "stock": ("in stock", "available", "back in stock", "restock", "sold out"),
    "product_info": ("does the", "is the", "can i use", "compatible", "dishwasher", "guarantee"),
    "fault": ("error", "fault", "not working", "doesn't work", "won't", "app", "website", "crash"),
    "order_status": ("order",),
}
"""Words that suggest an intent; the first intent with a hit wins."""


def guess_intent(query: str) -> str:
    """Return the first intent whose keywords occur in the message, `order_status` if none does."""
    plain = normalise(query)
    for intent, words in KEYWORDS.items():
        if any(word in plain for word in words):
            return intent
    return "order_status"


def advise(query: str, written: Identifiers, facts: dict[str, str]) -> int:
    """Name the action that looks most useful.

    Args:
        query: The customer's message.
        written: Identifiers in it.
        facts: Facts revealed so far.

    Returns:
        An action id 0..11. If the facts do not fit the guessed kind of request, the id of asking a human.
    """
    try:
        return next_node(INTENTS[guess_intent(query)][1], written, facts).action
    except LookupError:
        return 11
