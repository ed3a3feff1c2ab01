"""The 13 actions of the desk; their ids are fixed by the published model card.

The first seven call a service, the next five end the ticket, the last one asks an adviser.
"""

from __future__ import annotations

import numpy as np

ACTIONS: tuple[str, ...] = (
    "invoke_order_service",
    "invoke_refund_service",
    "invoke_customer_service",
    "invoke_auth_service",
    "invoke_logistics_service",
    "invoke_inventory_service",
    "invoke_knowledge_base",
    "resolve_query",
    "request_customer_information",
    "route_to_billing_department",
    "route_to_technical_support",
    "escalate_to_human_agent",
    "consult_llm",
)

SERVICES: tuple[str, ...] = ("order", "refund", "customer", "auth", "logistics", "inventory", "knowledge")
"""Short name of the service behind action ids 0 to 6."""

ENDINGS: dict[str, int] = {"resolve": 7, "ask": 8, "billing": 9, "technical": 10, "human": 11}
"""Short name of each terminal action and its id."""

CONSULT: int = 12
CATEGORIES: tuple[str, ...] = (
    "order",
    "refund",
    "account",
    "auth",
    "shipping",
    "inventory",
    "billing",
    "technical",
)


def as_action(value: object) -> int:
    """Turn what an agent hands over into an action id.

    Args:
        value: A Python int, a NumPy integer, or a 0-d integer array.

    Returns:
        The action id as a Python int, 0 to 12.

    Raises:
        TypeError: If the value is a bool or is not an integer.
        ValueError: If the id is outside 0..12; ids never wrap round.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(
            f"action is {value!r} ({type(value).__name__}), expected an integer id 0..{len(ACTIONS) - 1}; "
            "anything else would hide a bug in the agent. Pass the id of an entry of desk.ACTIONS."
        )
    action = int(value)
    if not 0 <= action < len(ACTIONS):
        raise ValueError(
            f"action id {action} is outside 0..{len(ACTIONS) - 1}; there is no such action and ids do not "
            "wrap round. Pass the id of an entry of desk.ACTIONS."
        )
    return action
