"""What a language model is told at the desk: one system prompt, then one short line of facts per turn.

The prompt is the same for training, rollout and benchmark, and for models behind an API. It shows the form
of an answer without an example id: small models copy the example instead of choosing.
"""

import json

from rlcas_utils.desk.actions import ACTIONS

MEANINGS: tuple[str, ...] = (
    "order service",
    "refund service",
    "customer account",
    "login and identity check",
    "parcel tracking",
    "stock",
    "knowledge base",
    "resolve",
    "ask the customer for missing data",
    "hand to billing",
    "hand to technical support",
    "hand to a human",
    "ask an adviser",
)
"""A few words for each action id; the names in ``ACTIONS`` would cost three times the tokens."""


def _numbered(first: int, last: int) -> str:
    return ", ".join(f"{action} {MEANINGS[action]}" for action in range(first, last + 1))


SYSTEM_PROMPT = f"""You run a customer service desk. Each turn choose one action by its id.
Look up facts: {_numbered(0, 6)}.
End the ticket: {_numbered(7, 11)}.
Hint: {_numbered(12, len(ACTIONS) - 1)}.
Gather the facts that decide, no more, then end.
Answer only with JSON: {{"reasoning": "<short>", "action_id": <id>}}"""


def opening_messages(query: str) -> list[dict[str, str]]:
    """Return the chat messages that open an episode.

    Args:
        query: What the customer wrote. Control marks in it are taken apart, so that it cannot open a turn.
    """
    safe = query.replace("<|im_start|>", "<im_start>").replace("<|im_end|>", "<im_end>")
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": safe}]


def render_answer(reasoning: str, action_id: int) -> str:
    """Return an answer in the form of the output contract."""
    return json.dumps({"reasoning": reasoning, "action_id": action_id}, ensure_ascii=False)
