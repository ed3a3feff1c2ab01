"""Desk answers: ``{"reasoning": str, "action_id": int}`` and nothing else."""

import re
from dataclasses import dataclass, replace
from typing import Any

from rlcas_utils.parsing.reasons import Invalid, shorten
from rlcas_utils.parsing.relaxed import BrokenJsonError, DuplicateKeyError, read_value, utf8_safe
from rlcas_utils.parsing.scan import scan

_DIGITS = re.compile(r"[0-9]{1,9}")
CUT_REASONS = frozenset({"empty", "unclosed_think", "no_json", "no_call", "bad_json"})


@dataclass(frozen=True)
class Parsed:
    """A usable desk answer.

    Attributes:
        action_id: Integer in ``0 .. num_actions - 1``.
        reasoning: Text of the answer's ``reasoning``, unchanged; empty if it was absent.
        repaired: True if the answer departs from the contract and was read all the same.
    """

    action_id: int
    reasoning: str = ""
    repaired: bool = False


def parse_action(text: str | None, num_actions: int, truncated: bool = False) -> Parsed | Invalid:
    """Read the one action of a model turn.

    The rules, in order:

    1. The untouched text is read as strict JSON. Only if that fails is thinking removed and the object looked
       for in the rest (code fence, prose around it, Python quoting, trailing comma, raw line break in a
       string); each of these except thinking sets ``repaired``.
    2. Exactly one object with an ``action_id`` may stand outside thinking: two are ``multiple_calls``, even
       equal ones; a list is ``not_object``.
    3. ``action_id`` is an integer. ``3.0`` and ``"3"`` (ASCII digits) mean 3 and set ``repaired``. Booleans,
       other floats, ``NaN``, ``null``, lists and other strings are ``bad_type``. Nothing is ever wrapped
       round: ids outside ``0 .. num_actions - 1`` are ``out_of_range``.
    4. A key named twice is ``duplicate_key``. Absent or non-text ``reasoning`` counts as empty and sets
       ``repaired``; other keys are ignored.
    5. ``truncated`` turns the reasons ``empty, unclosed_think, no_json, bad_json`` into ``truncated``. An
       answer that was complete before the cut counts.

    Args:
        text: Decoded turn without special tokens; None counts as empty.
        num_actions: Number of actions, 13 at the desk.
        truncated: True if the token limit ended the turn.

    Returns:
        The action, or the reason why there is none. Never raises on any text; linear in its length.
    """
    result = _parse(utf8_safe(text or ""), num_actions)
    if truncated and isinstance(result, Invalid) and result.reason in CUT_REASONS:
        return replace(result, reason="truncated")
    return result


def _parse(text: str, num_actions: int) -> Parsed | Invalid:
    if not text.strip():
        return Invalid("empty")
    body = text.strip()
    try:
        whole = read_value(body)
        if whole.end == len(body):
            return _check([whole.value], num_actions, whole.repaired)
    except DuplicateKeyError as error:
        return Invalid("duplicate_key", shorten(error.args[0]))
    except BrokenJsonError:
        pass  # text around the object, thinking, or no object at all: the scan tells which
    found = scan(body)
    if isinstance(found, Invalid):
        return found
    clean = not found.text and not found.wrappers
    repaired = not clean or any(value.repaired for value, _ in found.values)
    return _check([value.value for value, _ in found.values], num_actions, repaired)


def _check(values: list[Any], num_actions: int, repaired: bool) -> Parsed | Invalid:
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    answers = [item for item in flat if isinstance(item, dict) and "action_id" in item]
    if len(answers) > 1:
        return Invalid("multiple_calls", f"{len(answers)} objects with action_id")
    if any(not isinstance(value, dict) for value in values):
        return Invalid("not_object", shorten(values[0]))
    if not values:
        return Invalid("no_json")
    if not answers:
        return Invalid("missing_key", "no action_id")
    return _check_answer(answers[0], num_actions, repaired)


def _check_answer(answer: dict[str, Any], num_actions: int, repaired: bool) -> Parsed | Invalid:
    value = answer["action_id"]
    reasoning = answer.get("reasoning")
    action = _as_integer(value)
    if action is None:
        return Invalid("bad_type", f"action_id {shorten(value)}")
    if not 0 <= action < num_actions:
        return Invalid("out_of_range", f"action_id {shorten(value)}, allowed 0 to {num_actions - 1}")
    departs = type(value) is not int or not isinstance(reasoning, str)
    return Parsed(action, reasoning if isinstance(reasoning, str) else "", repaired or departs)


def _as_integer(value: Any) -> int | None:
    if isinstance(value, bool):  # bool is a subclass of int: True would be played as action 1
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _DIGITS.fullmatch(value):  # str.isdigit() is True for superscripts
        return int(value)
    return None
