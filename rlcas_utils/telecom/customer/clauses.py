"""Cut an agent's message into clauses and say how each clause is meant.

A clause is a request ("please turn it off"), a question ("is it on?"), a condition ("if it is on"), a bare
list item ("2. SIM status") or a report ("I have enabled roaming"). Only the first two, and list items below
a request, can make the customer do something.
"""

import re
from dataclasses import dataclass, replace

from rlcas_utils.telecom.customer import device, grammar, lexicon, topics

MAX_CHARACTERS = 4000  # longer messages are cut: parse time grows with length and no agent needs more
MAX_CLAUSE = 400  # characters; a clause without a joint for that long is not a sentence

_TYPOGRAPHY = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "‑": "-", "–": "-", "—": ";", "•": "\n", " ": " "}
)
_SPELLING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[*`#]+|\(\)"), ""),
    (re.compile(r"\b(?:e\.g|i\.e|etc)\."), "such as"),
    (re.compile(r"\b(?:is not|isn't|not) (?:turned |switched )?on\b"), "is off"),
    (re.compile(r"\b(?:is not|isn't|not) (?:turned |switched )?off\b"), "is on"),
    (lexicon.NEVER_MIND_NEGATION, "please"),
)


@dataclass(frozen=True)
class Mention:
    """A topic found in a clause, with the span of its words."""

    topic: str
    start: int
    end: int


@dataclass(frozen=True)
class Clause:
    """One clause of the agent's message.

    Attributes:
        text: Normalised lower-case words, cut at a negation.
        mood: "request", "question", "condition", "bare" or "report".
        sentence: Number of the sentence it stands in.
        mentions: Topics in order of appearance, not overlapping.
        tools: Device tool names written out, in order.
    """

    text: str
    mood: str
    sentence: int
    mentions: tuple[Mention, ...] = ()
    tools: tuple[str, ...] = ()

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics in order of appearance."""
        return tuple(mention.topic for mention in self.mentions)


_TOOL_NAME = re.compile(rf"\b(?:{'|'.join(sorted(device.DEVICE_TOOLS, key=len, reverse=True))})\b")


def normalise(message: str) -> str:
    """Lower-case the first 4,000 characters, unify typography and markdown, undo double negations."""
    text = message[:MAX_CHARACTERS].translate(_TYPOGRAPHY).lower()
    for pattern, replacement in _SPELLING:
        text = pattern.sub(replacement, text)
    return text


def split(text: str) -> list[tuple[str, int]]:
    """Cut normalised text into (clause, sentence number) pairs."""
    pieces, sentence = [], 0
    for piece in grammar.BOUNDARY.split(text):
        piece = piece.strip()
        if not piece:
            continue
        if lexicon.CONDITION.search(piece):
            parts = [
                part for part in re.split(r"\|", grammar.STATE_THEN_VERB.sub(r"\1|", piece)) if part.strip()
            ]
        else:
            parts = [piece]
        pieces += [(part.strip()[:MAX_CLAUSE], sentence) for part in parts]
        sentence += bool(grammar.SENTENCE_END.search(piece))
    return pieces


def find_mentions(text: str) -> tuple[Mention, ...]:
    """Topics named in a clause; where patterns overlap the more specific one (earlier row) wins."""
    found: list[Mention] = []
    for topic, pattern in topics.TOPICS:
        for match in pattern.finditer(text):
            if not any(match.start() < other.end and other.start < match.end() for other in found):
                found.append(Mention(topic, match.start(), match.end()))
    return tuple(sorted(found, key=lambda mention: mention.start))


def _is_bare(text: str, mentions: tuple[Mention, ...]) -> bool:
    """True for a list item or a terse order: topics and hardly anything else, no finite verb."""
    if text.endswith(":") or grammar.FINITE.search(text):
        return False
    rest = "".join(" " if any(m.start <= i < m.end for m in mentions) else c for i, c in enumerate(text))
    return bool(mentions) and len(grammar.LIST_WORD.sub("", rest)) <= 3


def mood_of(text: str, mentions: tuple[Mention, ...]) -> str:
    """How a clause is meant; see the module's first lines."""
    if lexicon.GERUND_STEP.search(text):
        return "request"
    if lexicon.CONDITION.search(text):
        return "condition"
    if grammar.CONSENT_QUESTION.search(text):
        return "report"
    if lexicon.REQUEST.search(text) or grammar.IMPERATIVE_START.search(text):
        return "request"
    if text.endswith("?") or grammar.WHETHER.search(text):
        return "question"
    return "bare" if _is_bare(text, mentions) else "report"


def _read_clause(text: str, sentence: int) -> Clause:
    tools = tuple(match.group(0) for match in _TOOL_NAME.finditer(text))
    mentions = find_mentions(_TOOL_NAME.sub(lambda match: "_" * len(match.group(0)), text))
    mood = mood_of(text, mentions)
    if lexicon.FIRST_PERSON.search(text) and mood in ("bare", "question"):
        mood = "report"
    return Clause(text, mood, sentence, mentions, tools)


def read_clauses(message: str) -> list[Clause]:
    """All clauses of an agent's message, in order.

    Args:
        message: The agent's words, any length (cut at 4,000 characters).

    Returns:
        Clauses with mood, topics and tool names. What follows a negation in its clause is kept as a report
        without tools: it asks for nothing, but a later "it" may mean it.
    """
    clauses = []
    for text, sentence in split(normalise(message)):
        negation = lexicon.NEGATION.search(text)
        cut = negation.start() if negation else len(text)
        if text[:cut].strip():
            clauses.append(_read_clause(text[:cut], sentence))
        if text[cut:]:
            clauses.append(replace(_read_clause(text[cut:], sentence), mood="report", tools=()))
    return clauses
