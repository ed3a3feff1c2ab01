"""From an agent's message to the ordered list of things it asks the customer to do on the phone.

Each clause of the message passes the rules of `rules`. A `Context` carries what pronouns refer to, what a
list continues, and what was opened but not read yet. Nothing here knows the phone's state or the task.
"""

import re
from dataclasses import replace

from rlcas_utils.telecom.customer import device, lexicon
from rlcas_utils.telecom.customer.clauses import Clause, normalise, read_clauses
from rlcas_utils.telecom.customer.requests import Context, Request
from rlcas_utils.telecom.customer.rules import (
    ACTION_RULES,
    SWITCH_RULES,
    Rule,
    check,
    named_tools,
    visible_topics,
)

_LOOK_ONLY = re.compile(
    r"\b(?:check|verify|confirm|see|look|tell me|let me know|find out|determine|report)\b[^,;]*?"
    r"\b(?:if|whether|that|what|which|how|is|are)\b"
)
_OUTCOME = re.compile(r"\b(?:see (?:if|whether)|tell|let me know|check|test|try|run)\b")


def _first(rules: tuple[Rule, ...], clause: Clause, context: Context) -> list[Request]:
    return next((found for rule in rules if (found := rule(clause, context))), [])


def _clause_requests(clause: Clause, context: Context) -> list[Request]:
    if clause.tools and clause.mood != "condition":
        return named_tools(clause, context)
    if clause.mood in ("condition", "report"):
        return []
    if clause.mood == "question" or (
        _LOOK_ONLY.search(clause.text) and not lexicon.GERUND_STEP.search(clause.text)
    ):
        return check(clause, context)
    actions = [request for rule in ACTION_RULES for request in rule(clause, context)]
    actions = actions or _first(SWITCH_RULES, clause, context)
    if not actions:
        return check(clause, context)
    outcome = [t for t in visible_topics(clause) if t in ("status_bar", "speed", "mms")]
    asked = outcome and _OUTCOME.search(clause.text)
    return actions + ([Request("call", device.CHECK_TOOLS[t]) for t in outcome] if asked else [])


def _remember(clause: Clause, requests: list[Request], context: Context) -> None:
    """Leave behind what the next clauses may refer to."""
    topics = clause.topics
    if topics:
        context.last = topics[-1]
        context.last_switch = next(
            (t for t in reversed(topics) if t in device.SWITCH_TOOLS or t == "vpn"), context.last_switch
        )
    if topics and not requests and lexicon.NAVIGATE.search(clause.text):
        context.opened = topics[-1]
    elif requests:
        context.opened = ""
    if clause.mood == "condition":
        context.condition = ("abroad" if lexicon.ABROAD.search(clause.text) else "", clause.sentence)
    if clause.mood == "request":
        context.carry = next(
            (verb for verb in ("off", "on", "check") if lexicon.VERBS[verb].search(clause.text)), ""
        )


def _add(request: Request, found: list[Request]) -> None:
    """Append unless it repeats an earlier request that nothing has overtaken since."""
    if request not in found:
        found.append(request)
        return
    later = found[len(found) - found[::-1].index(request) :]
    opposite = any(other.kind == "switch" and other.target == request.target for other in later)
    changed = any(not other.reads for other in later)
    if opposite or (request.reads and changed):
        found.append(request)


def understand(message: str) -> list[Request]:
    """Read an agent's message as an ordered list of requests to the customer.

    Args:
        message: The agent's words; everything after 4,000 characters is ignored.

    Returns:
        Requests in the order asked, without idle repetition. Empty if nothing is asked of the phone.
    """
    context = Context(normalise(message))
    found: list[Request] = []
    for clause in read_clauses(message):
        requests = _clause_requests(clause, context)
        condition, sentence = context.condition
        if condition and sentence == clause.sentence:
            requests = [replace(request, condition=condition) for request in requests]
        for request in requests:
            _add(request, found)
        context.acted = bool(found)
        _remember(clause, requests, context)
    if context.opened:
        _add(Request("call", device.CHECK_TOOLS[context.opened]), found)
    return found
