"""Why a model's turn can be unusable: one short name per cause, the same in rollout, reward and benchmark."""

from dataclasses import dataclass

REASONS: dict[str, str] = {
    "empty": "The answer is empty.",
    "truncated": "The answer was cut off by the token limit.",
    "unclosed_think": "The thinking block is never closed.",
    "no_json": "The answer holds no JSON object.",
    "no_call": "The answer holds no tool call.",
    "bad_json": "The JSON is malformed.",
    "not_object": "The JSON is not one object.",
    "multiple_calls": "The answer holds more than one call; exactly one is allowed per turn.",
    "duplicate_key": "The JSON names one key twice.",
    "missing_key": "A required key is missing.",
    "bad_type": "A value has the wrong type.",
    "out_of_range": "The action id does not exist.",
    "bad_arguments": "The arguments are not a JSON object.",
    "missing_argument": "A required argument is missing.",
}


@dataclass(frozen=True)
class Invalid:
    """An unusable turn. Nothing is executed for it, and no action is put in its place.

    Attributes:
        reason: A key of ``REASONS``.
        detail: What was seen, short enough for a log line.
    """

    reason: str
    detail: str = ""

    def __post_init__(self) -> None:
        """Refuse reasons that no table counts."""
        if self.reason not in REASONS:
            raise ValueError(f"reason is {self.reason!r}; counts by reason would miss it. Add it to REASONS.")

    @property
    def message(self) -> str:
        """One sentence for the model, with what was seen."""
        return REASONS[self.reason] + (f" Seen: {self.detail}." if self.detail else "")


def shorten(value: object, limit: int = 60) -> str:
    """Return ``repr(value)`` in at most ``limit`` characters."""
    shown = value[: limit + 1] if isinstance(value, str) else value
    text = repr(shown)
    return text if len(text) <= limit else text[: limit - 3] + "..."
