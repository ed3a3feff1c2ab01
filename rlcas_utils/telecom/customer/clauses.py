"""Cut an agent's message into clauses and say how each clause is meant.

A clause is a request ("please turn it off"), a question ("is it on?"), a condition ("if it is on"), a bare
list item ("2. SIM status") or a report ("I have enabled roaming"). Only the first two, and list items below
a request, can make the customer do something.
"""

import re
from dataclasses import dataclass, replace

from rlcas_utils.telecom.customer import device, lexicon, topics

MAX_CHARACTERS = 4000  # longer messages are cut: parse time grows with length and no agent needs more

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

_IMPERATIVES = (
    "activate|accept|adjust|allow|approve|attempt|change|check|choose|complete|confirm|connect"
    "|deactivate|describe|disable"
    "|disconnect|do|double[- ]check|eject|enable|ensure|find out|flip|give|go|grant|have a look|insert"
    "|keep|leave|let me know|look|make"
    "|make sure|move|navigate|note|open|pay|perform|pick|pop|power|proceed|provide|pull|put|re-?boot"
    "|re-?check|re-?insert"
    "|re-?run|re-?seat|re-?start|read|remove|repeat|report|resend|reset|restore|retry|run|see|select"
    "|send|set|settle|share"
    "|show|submit|switch|take|tell|test|toggle|try|turn|update|verify|view|wait"
)
_FILLER = (
    r"(?:please|kindly|pls|now|next|first|firstly|second|secondly|third|then|also|and|so|but|or|finally"
    r"|lastly|okay|ok|great|thanks"
    r"|thank you|perfect|good|alright|all right|right|sure|just|once more|again|meanwhile|afterwards"
    r"|after that|step \d+|to (?:start|begin)(?: with)?"
    r"|quickly|simply|additionally|otherwise|in the meantime|sorry|no problem|understood|let'?s"
    r"|and also|from there|there|hi|hello|yes)\b[\s,.:;!)-]*"
)
_IMPERATIVE_START = re.compile(rf"^\W*(?:\d+[.)]\s*)?(?:{_FILLER})*(?:{_IMPERATIVES})\b")
_BOUNDARY = re.compile(
    r"(?<=[.!?;:])\s+|\n+|\s+-\s+|(?<=\S)\s+(?=\(?\d{1,2}[.)]\s)"
    r"|,?\s+(?:and then|then|and after that|after that|afterwards|followed by|and finally)\s+(?!on\b"
    r"|off\b|back\b)"
    rf"|,\s*(?=(?:and |or |also |then |please |just )*(?:{_IMPERATIVES})\b)"
    rf"|\s+(?:and|or|&|but)\s+(?=(?:please |also |then |just |simply )*(?:{_IMPERATIVES})\b)"
    r"|\s+(?=please\b)|,\s+(?=(?:can|could|would|will) you\b)|,\s+(?=(?:i|we|you|you'll|let's)\b)"
    r"|\s+so that\s+|\s+because\s+|\s+since\s+"
)
_SENTENCE_END = re.compile(r"[.!?]\s*$")
_STATE_THEN_VERB = re.compile(
    rf"\b(on|off|enabled|disabled|missing|active|connected|needed|necessary|yes|not|so|wrong"
    rf"|incorrect)\s+(?=(?:{_IMPERATIVES})\b)"
)
_CONSENT_QUESTION = re.compile(
    r"\b(?:would you (?:like|prefer|be)|do you (?:want|agree|accept|consent|authorize|approve|wish)"
    r"|shall i|should i|may i|can i|could i|are you (?:ok|okay|willing|happy|comfortable|ready|fine)"
    r"|is (?:that|it|this) (?:ok|okay|fine|alright|all right|acceptable))\b"
)
_BARE_WORDS = re.compile(
    r"\b(?:the|your|any|a|an|and|or|of|for|in|on|off|is|it|its|status|settings?|mode|connection|phone"
    r"|phone's|device|current|also|both|result|test|checks?|card|app|messaging|if|whether|whether|not"
    r"|has|are|with|enabled|active)\b|\W|\d+"
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
    for piece in _BOUNDARY.split(text):
        piece = piece.strip()
        if not piece:
            continue
        if lexicon.CONDITION.search(piece):
            parts = [part for part in re.split(r"\|", _STATE_THEN_VERB.sub(r"\1|", piece)) if part.strip()]
        else:
            parts = [piece]
        pieces += [(part.strip(), sentence) for part in parts]
        sentence += bool(_SENTENCE_END.search(piece))
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
    """True for a list item: topics and hardly anything else."""
    rest = "".join(" " if any(m.start <= i < m.end for m in mentions) else c for i, c in enumerate(text))
    return bool(mentions) and len(_BARE_WORDS.sub("", rest)) <= 3


def mood_of(text: str, mentions: tuple[Mention, ...]) -> str:
    """How a clause is meant; see the module's first lines."""
    if lexicon.GERUND_STEP.search(text):
        return "request"
    if lexicon.CONDITION.search(text):
        return "condition"
    if _CONSENT_QUESTION.search(text):
        return "report"
    if lexicon.REQUEST.search(text) or _IMPERATIVE_START.search(text):
        return "request"
    if _is_bare(text.rstrip("?"), mentions):
        return "bare"
    if text.endswith("?"):
        return "question"
    return "report"


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
        Clauses with mood, topics and tool names. A negation hides what follows it in its clause.
    """
    clauses = []
    for text, sentence in split(normalise(message)):
        negation = lexicon.NEGATION.search(text)
        clause = _read_clause(text[: negation.start()] if negation else text, sentence)
        if negation and not clause.text.strip():
            clause = replace(_read_clause(text, sentence), mood="report", tools=())
        clauses.append(clause)
    return clauses
