"""Tool calls: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, exactly one per turn."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlcas_utils.parsing.answer import CUT_REASONS
from rlcas_utils.parsing.reasons import Invalid, shorten
from rlcas_utils.parsing.relaxed import BrokenJsonError, DuplicateKeyError, Value, read_value, utf8_safe
from rlcas_utils.parsing.scan import Scan, scan


@dataclass(frozen=True)
class ParsedCall:
    """A usable tool call.

    Attributes:
        name: Name of the tool, unchecked: whether it exists is for the caller to say.
        arguments: Mapping from argument name to value.
        thought: Text of the thinking.
        repaired: True if the call departs from the protocol and was read all the same.
        text: Words beside the call; nobody executes them.
    """

    name: str
    arguments: dict[str, Any]
    thought: str = ""
    repaired: bool = False
    text: str = ""


def parse_tool_call(
    text: str | None, required: Mapping[str, Iterable[str]], truncated: bool = False
) -> ParsedCall | Invalid:
    """Read the one tool call of a model turn.

    The rules, in order:

    1. Thinking is set aside; calls rehearsed in it are not calls.
    2. Exactly one call per turn. Two wrappers, two objects in one wrapper, or a list of several calls are
       ``multiple_calls``, and none of them is executed. Words beside the call are kept as text.
    3. If there is no ``<tool_call>`` tag at all, one bare object with ``name`` and ``arguments`` counts
       (``repaired``). A missing closing tag after a complete object counts too (``repaired``).
    4. ``arguments`` is an object. A string that holds an object is decoded once (``repaired``). ``null`` or
       absent means no arguments, which is ``missing_argument`` for a tool that requires some. Lists, numbers
       and other strings are ``bad_arguments``.
    5. A required argument that is absent is ``missing_argument``; names of arguments and tools are not judged
       otherwise.
    6. ``truncated`` turns the reasons ``empty, unclosed_think, no_call, bad_json`` into ``truncated``. A call
       that was complete before the cut counts.

    Args:
        text: Decoded turn without special tokens; None counts as empty.
        required: Names of the required arguments by tool name. Tools that are not listed require none.
        truncated: True if the token limit ended the turn.

    Returns:
        The call, or the reason why there is none. Never raises on any text; linear in its length.
    """
    result = _parse(utf8_safe(text or ""), required)
    if truncated and isinstance(result, Invalid) and result.reason in CUT_REASONS:
        return replace(result, reason="truncated")
    return result


def _parse(text: str, required: Mapping[str, Iterable[str]]) -> ParsedCall | Invalid:
    if not text.strip():
        return Invalid("empty")
    found = scan(text)
    if isinstance(found, Invalid):
        return found
    value = _single_call(found)
    if isinstance(value, Invalid):
        return value
    call = _check_call(value.value, required)
    if isinstance(call, Invalid):
        return call
    repaired = call.repaired or value.repaired or found.unclosed or not found.wrappers
    return replace(call, thought=found.thought, text=found.text, repaired=repaired)


def _single_call(found: Scan) -> Value | Invalid:
    if found.wrappers:
        values = [value for value, wrapper in found.values if wrapper is not None]
    else:
        values = [value for value, _ in found.values if _looks_like_call(value.value)]
    num_calls = sum(len(v.value) if isinstance(v.value, list) else 1 for v in values)
    if num_calls > 1 or found.wrappers > 1:
        return Invalid("multiple_calls", f"{max(num_calls, found.wrappers)} calls")
    if not values:
        return Invalid("no_json", "empty tool_call") if found.wrappers else Invalid("no_call")
    if not isinstance(values[0].value, dict):
        return Invalid("not_object", shorten(values[0].value))
    return values[0]


def _looks_like_call(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, dict) and "name" in item and "arguments" in item for item in items)


def _check_call(call: dict[str, Any], required: Mapping[str, Iterable[str]]) -> ParsedCall | Invalid:
    if "name" not in call:
        return Invalid("missing_key", "no name")
    name = call["name"]
    if not isinstance(name, str) or not name:
        return Invalid("bad_type", f"name {shorten(name)}")
    arguments = call.get("arguments")
    decoded = _decode_once(arguments) if isinstance(arguments, str) else arguments
    if decoded is None and not isinstance(arguments, str):
        decoded = {}
    if not isinstance(decoded, dict):
        return Invalid("bad_arguments", shorten(arguments))
    missing = [key for key in required.get(name, ()) if key not in decoded]
    if missing:
        return Invalid("missing_argument", f"{name} needs {', '.join(missing)}")
    return ParsedCall(name, decoded, repaired=isinstance(arguments, str))


def _decode_once(text: str) -> Any:
    body = text.strip()
    try:
        value = read_value(body)
    except (BrokenJsonError, DuplicateKeyError):
        return None
    return value.value if value.end == len(body) else None
