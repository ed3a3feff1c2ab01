"""An expert episode as a chat: the model reads what the desk says and answers in its output contract.

The expert is a network without words, so its reasons are written here, from facts the episode had shown by
then and from nothing else: no category, no hidden truth, no later result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from rlcas_utils.desk import ACTIONS
from rlcas_utils.trajectories.schema import Step, Trajectory

SCHEMA = "rlcas-chat/1"
MAX_REASON_WORDS = 25
MAX_FACTS = 3

# What an action is for, in the words of somebody about to take it; one of each list is chosen by hash.
PURPOSES: dict[str, tuple[str, ...]] = {
    "invoke_order_service": ("look up the order", "check the order first", "the order record decides next"),
    "invoke_refund_service": ("check the refund", "ask the refund service", "the refund record is needed"),
    "invoke_customer_service": (
        "open the customer record",
        "check the account",
        "the account data is needed",
    ),
    "invoke_auth_service": ("check the login", "verify the identity", "the sign-in record is needed"),
    "invoke_logistics_service": ("track the parcel", "check the shipment", "the carrier data is needed"),
    "invoke_inventory_service": ("check the stock", "look up the product", "the stock record is needed"),
    "invoke_knowledge_base": ("search the articles", "look for known fixes", "an article may cover this"),
    "resolve_query": ("this can be resolved", "nothing else is open, resolve it", "I can close this now"),
    "request_customer_information": (
        "ask the customer for what is missing",
        "this needs details from the customer",
        "the customer must supply more",
    ),
    "route_to_billing_department": ("billing must decide", "hand it to billing", "this belongs to billing"),
    "route_to_technical_support": (
        "technical support must look",
        "hand it to technical support",
        "this belongs to technical support",
    ),
    "escalate_to_human_agent": ("a human must take over", "escalate to a human", "this needs a person"),
    "consult_llm": ("ask for a hint", "a hint may help", "I am not sure, consult"),
}
OPENINGS = ("The customer writes: {cue}", "They say: {cue}", "Query: {cue}")
FOLLOW_UPS = ("{facts}; {purpose}.", "Found {facts}, so {purpose}.", "With {facts}: {purpose}.")


def reason(trajectory: Trajectory, index: int) -> str:
    """Write the reason for one action from what was known before it.

    Args:
        trajectory: The episode.
        index: Number of the step.

    Returns:
        One sentence of at most 25 words; equal input gives equal text.
    """
    choice = _Choice(trajectory.ticket_id, trajectory.actions, index)
    purpose = choice.of(PURPOSES[ACTIONS[trajectory.steps[index].action]])
    if index == 0:
        cue = " ".join(trajectory.query.split()[:8])
        text = f"{choice.of(OPENINGS).format(cue=cue)}...; {purpose}."
    else:
        facts = describe(trajectory.steps[index - 1], choice)
        text = choice.of(FOLLOW_UPS).format(facts=facts, purpose=purpose)
    words = text[0].upper() + text[1:]
    return " ".join(words.split()[:MAX_REASON_WORDS])


def describe(step: Step, choice: _Choice) -> str:
    """Name the facts a step revealed, at most three."""
    facts = [f"{key.replace('_', ' ')} {_plain(value)}" for key, value in step.result.items()]
    return ", ".join(facts[:MAX_FACTS]) or "no new facts"


def to_chat(trajectory: Trajectory, system_prompt: str) -> dict[str, Any]:
    """Render an episode as a chat sample.

    Args:
        trajectory: The episode.
        system_prompt: Text that explains the desk and the output contract.

    Returns:
        Messages (system, user, then assistant and user in turn, ending with the assistant) and facts about
        the sample.
    """
    messages = [
        {"role": "system", "content": system_prompt},
        {"role": "user", "content": trajectory.query},
    ]
    for i, step in enumerate(trajectory.steps):
        answer = {"reasoning": reason(trajectory, i), "action_id": step.action}
        messages.append({"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)})
        messages.append({"role": "user", "content": step.text})
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
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).replace("_", " ")
