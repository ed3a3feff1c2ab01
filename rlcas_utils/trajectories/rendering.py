"""An expert episode as a chat: the model reads what the desk says and answers in its output contract.

The expert is a network without words, so its reasons are written here. Each names what the customer wants,
the facts that bear on it, and what follows. The wish is the training ticket's label of kind, as an archive
has it; a model has to learn to read it from the message, and writing it down first makes the choice of the
action easy. Nothing else goes in that the episode had not shown by then: no hidden truth, no later result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.desk.handbook import Ask, Choice, Node
from rlcas_utils.desk.identifiers import extract
from rlcas_utils.desk.prompts import opening_messages, render_answer
from rlcas_utils.desk.rules import INTENTS
from rlcas_utils.desk.services import FACTS
from rlcas_utils.desk.world import default_world
from rlcas_utils.trajectories.schema import Step, Trajectory

SCHEMA = "rlcas-chat/1"
MAX_REASON_WORDS = 25
MAX_FACTS = 3

# What an action is for, in the words of somebody about to take it; one of each list is chosen by hash.
PURPOSES: dict[str, tuple[str, ...]] = {
    "invoke_order_service": ("look up the order", "check the order record", "ask the order service"),
    "invoke_refund_service": ("check the refund", "ask the refund service", "see what the refund allows"),
    "invoke_customer_service": ("open the account", "check the account data", "ask the customer service"),
    "invoke_auth_service": ("verify the identity first", "check the sign-in", "ask the auth service"),
    "invoke_logistics_service": ("track the parcel", "check where the parcel is", "ask logistics"),
    "invoke_inventory_service": ("check the product's stock", "look up the product", "ask inventory"),
    "invoke_knowledge_base": ("search the knowledge base", "look for an article", "check for a known fix"),
    "resolve_query": ("this can be resolved", "nothing is left open, resolve it", "answer and close"),
    "request_customer_information": (
        "ask the customer for what is missing",
        "the customer has to supply more",
        "request the missing details",
    ),
    "route_to_billing_department": ("billing must decide", "hand it to billing", "route it to billing"),
    "route_to_technical_support": (
        "technical support must look",
        "hand it to technical support",
        "route it to technical support",
    ),
    "escalate_to_human_agent": ("a human must take over", "escalate to a human", "a person has to decide"),
    "consult_llm": ("ask for a hint", "a hint may help", "consult the adviser"),
}
WISHES: dict[str, str] = {
    "order_status": "news of an order",
    "order_change": "an order changed",
    "refund_request": "money back",
    "refund_status": "news of a refund",
    "account_update": "account data changed",
    "account_close": "the account closed",
    "login": "to sign in",
    "second_factor": "a working second factor",
    "hacked": "a safe account",
    "parcel": "a parcel found",
    "damaged": "damage settled",
    "stock": "news of stock",
    "product_info": "product advice",
    "exchange": "an exchange",
    "charge": "a bill explained",
    "unknown_charge": "an unknown charge explained",
    "fault": "a fault fixed",
}
OPENINGS = ("Wants {wish}, gives {facts}; {purpose}.", "Wants {wish}, {facts} given: {purpose}.")
FOLLOW_UPS = ("Wants {wish}. Result: {facts}; {purpose}.", "Wants {wish}. It says {facts}, so {purpose}.")
IDENTIFIER_WORDS = {
    "order_id": "an order number",
    "email": "an e-mail address",
    "parcel_id": "a tracking number",
    "invoice_id": "an invoice number",
    "sku": "a product",
    "fault": "a fault code",
}
# Values that need no attention; the others are named first when a service says more than fits.
USUAL = frozenset(
    {"active", "ok", "clear", "verified", "none", "current", "in_stock", "on_file", "one", "many"}
)
_FACT_NAMES = frozenset(fact.partition("=")[0] for fact in FACTS)


def reason(trajectory: Trajectory, index: int) -> str:
    """Write the reason for one action from what was known before it.

    Args:
        trajectory: The episode.
        index: Number of the step.

    Returns:
        One sentence of at most 25 words; equal input gives equal text.
    """
    choice = _Choice(trajectory.ticket_id, trajectory.actions, index)
    wish = WISHES[trajectory.intent]
    purpose = choice.of(PURPOSES[ACTIONS[trajectory.steps[index].action]])
    if index == 0:
        text = choice.of(OPENINGS).format(wish=wish, facts=mentioned(trajectory.query), purpose=purpose)
    else:
        text = choice.of(FOLLOW_UPS).format(
            wish=wish, facts=revealed(trajectory.steps[index - 1], trajectory.intent), purpose=purpose
        )
    return " ".join(text.split()[:MAX_REASON_WORDS])


def mentioned(query: str) -> str:
    """Say which identifiers a message holds.

    Args:
        query: The customer's text.

    Returns:
        Such as "an order number and an e-mail address".
    """
    written = extract(query, default_world().models)
    words = [text for name, text in IDENTIFIER_WORDS.items() if getattr(written, name)]
    return " and ".join(words) or "no number or address"


def revealed(step: Step, intent: str) -> str:
    """Name the facts a step revealed that bear on the request, the unusual ones first, at most three.

    Args:
        step: The step before the one to be explained.
        intent: Kind of request.

    Returns:
        Such as "login locked, identity verified".
    """
    result, service = step.result, step.result.get("service", "")
    if service == "adviser":
        return f"the hint {_plain(result['hint'])}" if result["ok"] else "no usable hint"
    facts = {name: value for name, value in result.items() if f"{service}.{name}" in _FACT_NAMES}
    facts = {n: v for n, v in facts.items() if n in (*asked_about(intent).get(service, ()), "error")} or facts
    if result.get("decision") == "over_limit":
        return f"{result['amount']:.2f} EUR is over the limit of {result['limit']:.0f} EUR"
    ordered = sorted(facts, key=lambda name: facts[name] in USUAL)
    named = [f"{_plain(name)} {_plain(facts[name])}" for name in ordered[:MAX_FACTS]]
    return ", ".join(named) or "nothing new"


@lru_cache
def asked_about(intent: str) -> dict[str, frozenset[str]]:
    """Which facts of each service the handbook branches on for a kind of request.

    Args:
        intent: Key of the handbook.

    Returns:
        Fact names by service.
    """
    found: dict[str, set[str]] = {}

    def walk(node: Node) -> None:
        if isinstance(node, Choice):
            walk(node.then)
            walk(node.otherwise)
        elif isinstance(node, Ask):
            conditions = " & ".join(node.branches).split(" & ")
            names = {name for name, equals, _ in (c.partition("=") for c in conditions) if equals}
            found.setdefault(node.service, set()).update(names)
            for branch in node.branches.values():
                walk(branch)

    walk(INTENTS[intent][1])
    return {service: frozenset(names) for service, names in found.items()}


def to_chat(trajectory: Trajectory) -> dict[str, Any]:
    """Render an episode as a chat sample.

    Args:
        trajectory: The episode.

    Returns:
        Messages (system, user, then assistant and user in turn, ending with the assistant) and facts about
        the sample.
    """
    messages = opening_messages(trajectory.query)
    for i, step in enumerate(trajectory.steps):
        answer = render_answer(reason(trajectory, i), step.action)
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": step.text}]
    return {
        "schema": SCHEMA,
        "messages": messages[:-1],  # nothing is said after the ending
        "ticket_id": trajectory.ticket_id,
        "category": trajectory.category,
        "template_id": trajectory.template_id,
        "return": trajectory.total_reward,
    }


class _Choice:
    """Picks a wording by hash, so that text varies between episodes and never between runs."""

    def __init__(self, *key: Any) -> None:
        digest = hashlib.sha256(repr(key).encode()).digest()
        self.number = int.from_bytes(digest[:8], "big")

    def of(self, options: Sequence[str]) -> str:
        self.number, rest = divmod(self.number, len(options))
        return options[rest]


def _plain(value: Any) -> str:
    return str(value).replace("_", " ")
