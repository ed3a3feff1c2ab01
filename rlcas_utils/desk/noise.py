"""Makes template messages look like an inbox: alternatives, typing slips, temper, small talk."""

from __future__ import annotations

import random
import re

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
SHORT = 9  # words; in a shorter message openers, small talk and closers would outweigh the wish
ADDRESS_ALONE = 0.3  # share of messages without any number that get the customer's address
ADDRESS_BESIDE_NUMBER = 0.15  # the same for messages that have one
_SLOT = re.compile(r"\{[a-z]+\}")


def expand(template: str, rng: random.Random) -> str:
    """Replace every `[one|two|three]` by one of its alternatives, innermost first."""
    while match := _CHOICE.search(template):
        template = template[: match.start()] + rng.choice(match.group(1).split("|")) + template[match.end() :]
    return re.sub(r"\s+", " ", template).strip()


def slip(word: str, rng: random.Random) -> str:
    """Return a word with one typing slip: two letters swapped, one dropped or one doubled."""
    at = rng.randrange(1, len(word) - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + word[at + 1 :] if kind == 1 else word[:at] + word[at] + word[at:]


def add_slips(text: str, rate: float, rng: random.Random) -> str:
    """Give each longer word a slip with probability `rate`; slots are left alone."""
    words = text.split(" ")
    for i, word in enumerate(words):
        if len(word) > 3 and word.isalpha() and rng.random() < rate:
            words[i] = slip(word, rng)
    return " ".join(words)


def roughen(text: str, chatter: dict[str, list[str]], rng: random.Random) -> str:
    """Add small talk, temper and typing habits to an expanded template that still has its slots.

    Args:
        text: Expanded template with slots such as `{order}`.
        chatter: Lists `openers`, `closers`, `angry`, `smalltalk` and `addresses`.
        rng: Source of all choices.

    Returns:
        The message with slots still in place.
    """
    if len(text.split()) >= SHORT:
        text = _with_chatter(text, chatter, rng)
    text = _with_address(text, chatter["addresses"], rng)
    if rng.random() < 0.35:
        text = add_slips(text, 0.12, rng)
    habit = rng.random()
    if habit < 0.15:
        return _keep_slots(text, str.lower)
    if habit < 0.20:
        return _keep_slots(text, str.upper)
    return text.replace(",", "").replace(".", "") if habit < 0.30 else text


def _with_chatter(text: str, chatter: dict[str, list[str]], rng: random.Random) -> str:
    if rng.random() < 0.30:
        text = f"{rng.choice(chatter['openers'])} {text}"
    if rng.random() < 0.25:
        text = f"{rng.choice(chatter['smalltalk'])} {text}"
    if rng.random() < 0.22:
        text = f"{text} {rng.choice(chatter['angry'])}"
    if rng.random() < 0.30:
        text = f"{text} {rng.choice(chatter['closers'])}"
    return text


def _with_address(text: str, addresses: list[str], rng: random.Random) -> str:
    """Some customers also say who they are, which opens ways and checks that a number alone does not."""
    share = ADDRESS_BESIDE_NUMBER if _SLOT.search(text) else ADDRESS_ALONE
    if "{email}" in text or rng.random() >= share:
        return text
    parts = [text, rng.choice(addresses)]
    return " ".join(parts if rng.random() < 0.75 else reversed(parts))


def _keep_slots(text: str, change: type[str] | object) -> str:
    parts, slots = _SLOT.split(text), _SLOT.findall(text)
    changed = [change(part) for part in parts]  # type: ignore[operator]
    return "".join(a + b for a, b in zip(changed, [*slots, ""], strict=True))
