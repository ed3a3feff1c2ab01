"""Patterns that cut a message into clauses: verbs that open an order, words that may precede them, joints."""

import re


def _any(*words: str) -> str:
    """One alternation of all words in the given lines."""
    return "|".join(word for line in words for word in line.split(", "))


IMPERATIVES = _any(
    "activate, accept, adjust, allow, approve, attempt, bring, change, check, choose, complete, confirm",
    "connect, cycle, deactivate, describe, disable, disconnect, do, double[- ]check, eject, enable, ensure",
    "find out, flip, give, go, grant, have a look, insert, keep, kill, leave, let me know, look, make",
    "make sure, measure, move, navigate, note, open, pay, perform, pick, pop, power, proceed, provide, pull",
    "put, re-?boot, re-?check, re-?insert, re-?run, re-?seat, re-?start, read, remove, repeat, report",
    "resend, reset, restore, retry, run, see, select, send, set, settle, share, show, submit, switch, "
    "take, tell",
    "test, toggle, try, turn, update, verify, view, wait",
)
_FILLERS = _any(
    "please, kindly, pls, only, now, next, first, firstly, second, secondly, third, then, also, and, so, but",
    "or, finally, lastly, okay, ok, great, thanks, thank you, perfect, good, alright, all right, right, sure",
    "just, once more, again, meanwhile, afterwards, after that, quickly, simply, additionally, otherwise",
    "in the meantime, sorry, no problem, understood, let'?s, from there, there, hi, hello, yes",
)
_FILLER = rf"(?:{_FILLERS}|step \d+|to (?:start|begin)(?: with)?)\b[\s,.:;!)-]*"
_NUMBER = r"(?:\d{1,2}|[a-f])[.)]"
IMPERATIVE_START = re.compile(rf"^\W*(?:{_NUMBER}\s*)?(?:{_FILLER})*(?:{IMPERATIVES})\b")

_LINKS = (
    r"(?:and |or |also |then |please |just |simply |first |second |third |fourth |next |finally |lastly )*"
)
_SEQUENCE = _any("and then, then, and after that, after that, afterwards, followed by, and finally")
_JOINTS = (
    r"(?<=[.!?;:])\s+",
    r"\n+",
    r"\s+-\s+",
    rf"(?<=\S)\s+(?=\(?{_NUMBER}\s)",
    rf",?\s+(?:{_SEQUENCE})\s+(?!on\b|off\b|back\b)",
    rf",\s*(?={_LINKS}(?:{IMPERATIVES})\b)",
    rf"\s+(?:and|or|&|but)\s+(?={_LINKS}(?:{IMPERATIVES})\b)",
    r"\s+(?=please\b)",
    r",\s+(?=(?:can|could|would|will) you\b)",
    r",\s+(?=(?:i|we|you|you'll|let's)\b)",
    r"\s+(?:so that|because|since)\s+",
    r",?\s+so\s+(?=(?:you|we|please|let)\b)",
)
BOUNDARY = re.compile("|".join(_JOINTS))
SENTENCE_END = re.compile(r"[.!?]\s*$")

_STATES = _any(
    "on, off, enabled, disabled, missing, active, connected, needed, necessary, yes, not, so, wrong",
    "incorrect",
)
STATE_THEN_VERB = re.compile(rf"\b({_STATES})\s+(?=(?:{IMPERATIVES})\b)")
"""Where an unpunctuated condition ends: "if it is off | switch it on"."""

CONSENT_QUESTION = re.compile(
    r"\b(?:would you (?:like|prefer|be)|do you (?:want|agree|accept|consent|authorize|approve|wish)"
    r"|(?:shall|should) i|(?:may|can|could) i(?! (?:kindly |please )?(?:ask|request)\b)|are you (?:ok|okay"
    r"|willing|happy|comfortable|ready|fine)|is (?:that|it|this) (?:ok|okay|fine|alright|all right"
    r"|acceptable))\b"
)
"""Questions for a yes: the agent would act, not the customer."""

_LIST_WORDS = _any(
    "the, your, any, a, an, and, or, of, for, in, on, off, it, its, status, settings?, mode, connection",
    "phone, phone's, device, current, also, both, result, test, checks?, card, app, messaging, if, whether",
    "not, with, enabled, active, pls, now, then",
)
LIST_WORD = re.compile(rf"\b(?:{_LIST_WORDS})\b|\W|\d+")
FINITE = re.compile(r"\b(?:is|are|was|were|has|have)\b")
WHETHER = re.compile(r"^\W*(?:(?:and|\d{1,2}|[a-f])\W+)*whether\b")
