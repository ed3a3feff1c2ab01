"""Walk once over a turn and separate thinking, JSON values and plain text.

Rules, shared by desk answers and tool calls:

* ``<think>...</think>`` is thinking; whatever it rehearses is never executed.
* A ``</think>`` without opening tag (the tag was in the prompt) makes everything before it thinking.
* A ``<think>`` that is never closed makes the turn ``unclosed_think``.
* Tags inside a JSON string are text of that string.
* An object that breaks off after its first key spoils the turn (``bad_json``): what follows might be part of
  it. Braces in prose, such as ``{order}``, are prose.
"""

import re
from dataclasses import dataclass, field

from rlcas_utils.parsing.reasons import Invalid, shorten
from rlcas_utils.parsing.relaxed import BrokenJsonError, DuplicateKeyError, Value, read_value

_MARK = re.compile(r"<think>|</think>|<tool_call>|</tool_call>|[{\[]")


@dataclass
class Scan:
    """What one turn holds.

    Attributes:
        values: Objects and lists of objects outside thinking, in order, each with the index of the wrapper it
            stands in (None outside any ``<tool_call>``).
        wrappers: Number of ``<tool_call>`` tags outside thinking.
        thought: Text of the thinking.
        text: Everything that is neither thinking nor JSON nor tag.
        unclosed: True if the last ``<tool_call>`` has no closing tag.
    """

    values: list[tuple[Value, int | None]] = field(default_factory=list)
    wrappers: int = 0
    thought: str = ""
    text: str = ""
    unclosed: bool = False


def scan(text: str) -> Scan | Invalid:
    """Separate a turn into thinking, JSON values and text, in one pass.

    Args:
        text: Decoded model turn, special tokens removed.

    Returns:
        The parts, or the reason why the turn is unusable.
    """
    found = Scan()
    thoughts: list[str] = []
    texts: list[str] = []
    inside = False
    position = 0
    while match := _MARK.search(text, position):
        texts.append(text[position : match.start()])
        mark, position = match[0], match.end()
        if mark == "<think>":
            end = text.find("</think>", position)
            if end < 0:
                return Invalid("unclosed_think", shorten(text[position:]))
            thoughts.append(text[position:end])
            position = end + len("</think>")
        elif mark == "</think>":
            thoughts.extend(texts)
            texts, found, inside = [], Scan(), False
        elif mark == "<tool_call>":
            found.wrappers += 1
            inside = True
        elif mark == "</tool_call>":
            inside = False
        else:
            try:
                value = read_value(text, match.start())
            except DuplicateKeyError as error:
                return Invalid("duplicate_key", shorten(error.args[0]))
            except BrokenJsonError as error:
                if error.committed or inside:
                    return Invalid("bad_json", shorten(text[match.start() :]))
                texts.append(text[match.start() : max(error.position, position)])
                position = max(error.position, position)
                continue
            position = value.end
            if _holds_object(value.value):
                found.values.append((value, found.wrappers if inside else None))
            else:
                texts.append(text[match.start() : position])
    texts.append(text[position:])
    found.thought, found.text, found.unclosed = "".join(thoughts).strip(), "".join(texts).strip(), inside
    return found


def _holds_object(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(v, dict) for v in value))
