"""Read one JSON value out of model text: strictly if that is possible, else the way a patient human would.

The relaxed reader finds where a value ends, and accepts what language models really write beside JSON:
single-quoted strings, Python's ``True``/``False``/``None``, trailing commas, raw line breaks inside strings.
What it found is then decoded strictly, and that result wins. Every character is looked at once, so time
is linear in the length of the text, and it never evaluates anything.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 32  # levels of nesting; an answer needs 1, a tool call 3 or 4
MAX_INT_DIGITS = 40  # longer digit strings become floats: int() is quadratic and refuses above 4300 digits

_SPACE = re.compile(r"[ \t\r\n]*+")
_STRING = {
    quote: re.compile(rf"{quote}([^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+){quote}", re.S) for quote in "\"'"
}
_NUMBER = re.compile(r"-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9A-Za-z_.])")
_WORD = re.compile(r"-?[A-Za-z]++")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_WORDS |= {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/"}


class DuplicateKeyError(ValueError):
    """An object names one key twice, so it has two meanings."""


class BrokenJsonError(ValueError):
    """Reading stopped at ``position``.

    Attributes:
        position: Index in the text of the first character that fits nowhere.
        committed: True if a key and its colon had been read, so this was meant as an object and not as prose.
    """

    def __init__(self, position: int, committed: bool) -> None:
        """Keep where reading stopped and whether an object had begun."""
        super().__init__(f"no JSON from character {position} on")
        self.position = position
        self.committed = committed


@dataclass(frozen=True)
class Value:
    """A value read from a text.

    Attributes:
        value: The Python value.
        end: Index of the first character after it.
        repaired: True if only the relaxed reader could read it.
    """

    value: Any
    end: int
    repaired: bool


def utf8_safe(text: str) -> str:
    """Replace lone surrogates, which no tokenizer and no file accepts, by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = {}
    for key, value in pairs:
        if key in result:
            raise DuplicateKeyError(key)
        result[key] = utf8_safe(value) if isinstance(value, str) else value
    return result


_STRICT = json.JSONDecoder(object_pairs_hook=_unique)


def read_value(text: str, start: int = 0) -> Value:
    """Read the JSON value that begins at ``start``.

    Args:
        text: Model output.
        start: Index of its first character.

    Returns:
        The value, where it ends, and whether the relaxed reader was needed.

    Raises:
        BrokenJsonError: No value can be read there.
        DuplicateKeyError: An object names one key twice.
    """
    value, end = _Reader(text).read(start, 0)
    try:  # strict goes second: building its error counts lines, which is quadratic over many failures
        return Value(_STRICT.decode(text[start:end]), end, False)
    except ValueError:
        return Value(value, end, True)


class _Reader:
    """Recursive descent over one text; ``committed`` as in BrokenJsonError."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.committed = False

    def fail(self, position: int) -> BrokenJsonError:
        return BrokenJsonError(position, self.committed)

    def skip(self, position: int) -> int:
        return _SPACE.match(self.text, position).end()

    def peek(self, position: int) -> str:
        return self.text[position : position + 1]

    def read(self, position: int, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise self.fail(position)
        first = self.peek(position)
        if first == "{":
            return self.read_object(position, depth)
        if first == "[":
            return self.read_list(position, depth)
        if first in _STRING:
            return self.read_string(position)
        return self.read_atom(position)

    def read_string(self, position: int) -> tuple[str, int]:
        match = _STRING[self.text[position]].match(self.text, position)
        if not match:  # the string never ends, so nothing after its quote can be trusted
            raise self.fail(len(self.text))
        return utf8_safe(_ESCAPE.sub(_unescape, match[1])), match.end()

    def read_atom(self, position: int) -> tuple[Any, int]:
        match = _NUMBER.match(self.text, position)
        if match:
            token = match[0]
            is_int = token.lstrip("-").isdigit() and len(token) <= MAX_INT_DIGITS
            return (int(token) if is_int else float(token)), match.end()
        match = _WORD.match(self.text, position)
        if match and match[0] in _WORDS:
            return _WORDS[match[0]], match.end()
        raise self.fail(position)

    def read_object(self, position: int, depth: int) -> tuple[dict[str, Any], int]:
        result: dict[str, Any] = {}
        position = self.skip(position + 1)
        while self.peek(position) != "}":
            if self.peek(position) not in _STRING:
                raise self.fail(position)
            key, position = self.read_string(position)
            position = self.skip(position)
            if self.peek(position) != ":":
                raise self.fail(position)
            self.committed = True
            value, position = self.read(self.skip(position + 1), depth + 1)
            if key in result:
                raise DuplicateKeyError(key)
            result[key] = value
            position = self.next_item(position, "}")
        return result, position + 1

    def read_list(self, position: int, depth: int) -> tuple[list[Any], int]:
        result: list[Any] = []
        position = self.skip(position + 1)
        while self.peek(position) != "]":
            value, position = self.read(position, depth + 1)
            result.append(value)
            position = self.next_item(position, "]")
        return result, position + 1

    def next_item(self, position: int, closing: str) -> int:
        """Step over a comma (a trailing one too) or stay on the closing bracket."""
        position = self.skip(position)
        if self.peek(position) == ",":
            return self.skip(position + 1)
        if self.peek(position) == closing:
            return position
        raise self.fail(position)


def _unescape(match: re.Match[str]) -> str:
    token = match[1]
    if len(token) == 5:
        return chr(int(token[1:], 16))
    return _ESCAPES.get(token, "\\" + token)
