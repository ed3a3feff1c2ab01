"""Verbs and moods: what may be asked to happen, and how a clause is meant.

`topics` holds the nouns, `grammar` the joints between clauses. Every entry lists ways to say a thing; a new
wording is usually one more line.
"""

import re


def _ways(*alternatives: str) -> re.Pattern[str]:
    """Any of the alternatives."""
    return re.compile("|".join(alternatives))


def _words(*alternatives: str) -> re.Pattern[str]:
    """Any of the alternatives, as whole words."""
    return re.compile(rf"\b(?:{'|'.join(alternatives)})\b")


_TURN = r"(?:turn|switch|toggl|flip|shut|put|set)(?:e|ing|ting|ping|ching)?"
VERBS: dict[str, re.Pattern[str]] = {
    "off": _ways(
        rf"\b{_TURN}\b[^,;]*?\boff\b",
        r"\b(?:disabl|deactivat)(?:e|ing)\b",
        r"\bdisconnect(?:ing)?\b",
        r"\bkill\b",
        r"\b(?:make sure|ensure|be sure|see to it|has to be|must be|needs? to be"
        r"|should be)\b[^,;]*\b(?:off|disabled|disconnected)\b",
    ),
    "on": _ways(
        rf"\b{_TURN}\b[^,;]*?\bon\b(?! (?:your|the) (?:phone|device|screen))",
        r"\b(?:re-?)?enabl(?:e|ing)\b",
        r"\b(?:re-?)?activat(?:e|ing)\b",
        r"\b(?:re)?connect(?:ing)? (?:to )?(?:your |the |a )?vpn",
        r"\b(?:make sure|ensure|be sure|see to it|has to be|must be|needs? to be"
        r"|should be)\b[^,;]*\b(?:on|enabled)\b",
    ),
    "toggle": _ways(
        r"\btoggl(?:e|ing)\b",
        r"\bflip\b",
    ),
    "cycle": _ways(
        r"\bcycl(?:e|ing)\b",
    ),
    "reseat": _ways(
        r"\bre-?seat(?:ing)?\b",
        r"\b(?:re-?insert|remov|tak|eject|pull|pop)(?:e|ing)?\b[^.]*\bsim\b",
        r"\bsim\b[^.]*\b(?:out|back in)\b",
        r"\b(?:tak|pull|pop|remov)(?:e|ing) it(?: out)?\b",
        r"\bput it back(?: in)?\b",
    ),
    "reset": _ways(
        r"\breset(?:ting)?\b",
        r"\brestor(?:e|ing)\b[^.]*\b(?:default|original|factory)",
        r"\bback to (?:the |their |its )?defaults?\b",
    ),
    "reboot": _ways(
        r"\bre-?boot(?:ing)?\b",
        r"\bre-?start(?:ing)?\b",
        r"\bpower[- ]?cycl(?:e|ing)\b",
        r"\bpower (?:it|your phone|your device|the phone|the device|down|off)\b",
        r"\b(?:turn|switch) (?:it|(?:your|the) (?:phone|device)) off and (?:then )?(?:back )?on",
        r"\b(?:turn|switch) off (?:your|the) (?:phone|device)",
    ),
    "grant": _ways(
        r"\b(?:grant|allow|giv|enabl|add|provid)(?:e|ing)?\b",
        r"\b(?:turn|switch|toggle)\b[^,;]*\bon\b",
    ),
    "set": _ways(
        r"\b(?:set|chang|switch|select|choos|updat|adjust|mov|put|pick)(?:e|ing|ting)?\b",
    ),
    "pay": _ways(
        r"\b(?:mak|complet|submit|proceed with|go ahead with|accept|approv|authoriz|process|finish"
        r"|send)(?:e|ing)?\b[^.]*\bpayment\b(?! request)",
        r"\bpay(?:ing)?\b(?! attention)",
        r"\b(?:accept|approve|complete|confirm) (?:it|(?:the|this|that|my|your) (?:payment )?request)\b",
        r"\bsettle\b[^.]*\bbill",
    ),
    "check": _ways(
        r"\b(?:re-?|double[- ])?(?:check|verify|confirm|test|run|try|read|inspect|measure|attempt)(?:ing)?\b",
        r"\b(?:look|see|tell|let me know|report|view|show|share|send|resend|find out|note|observe"
        r"|describe|give|do|perform|retry|monitor|have a look|take a look|want to know|like to know"
        r"|need to know|wondering|open)\b",
    ),
}
"""What can be asked to happen. `rules` says which topics each verb goes with."""

NAVIGATE = _words(
    r"go (?:in)?to",
    r"open",
    r"navigate",
    r"head (?:in)?to",
    r"settings\s*>",
    r"swipe",
)
PRONOUN = _words(
    r"it",
    r"this",
    r"that",
    r"them",
    r"these",
    r"those",
    r"both",
    r"each",
    r"one",
    r"ones",
)
ABROAD = _ways(
    r"\b(?:abroad|travel|travell?ing|overseas|outside (?:of )?(?:the|your)|roaming area|another country"
    r"|foreign)",
)
NEGATION = _words(
    r"do not",
    r"don'?t",
    r"no need to",
    r"need not",
    r"needn'?t",
    r"(?:do(?:es)?n'?t|don't) (?:need|have) to",
    r"without",
    r"avoid",
    r"never",
    r"not necessary",
    r"not the",
    r"(?<=, )not",
    r"instead of",
    r"rather than",
    r"refrain from",
    r"unless",
    r"isn'?t necessary",
)
_YOU_CAN = (
    r"turn|switch|toggle|check|run|restart|reboot|reset|re-?seat|set|grant|allow|disable|enable"
    r"|disconnect|connect|try|verify|remove|take|make|pay|complete|confirm|look|tell|send|open|go"
    r"|change|select|choose|perform|test|have"
)
REQUEST = _words(
    r"please",
    r"kindly",
    r"could you",
    r"can you",
    r"would you(?! (?:like|prefer|be))",
    r"will you(?! be)",
    r"i(?:'d| would) like you",
    r"i(?:'ll)? (?:need|want) you",
    r"i want you",
    r"you(?:'ll)?(?: also| just| only)? (?:need|have|want|will need|will want) to",
    rf"you (?:can|may|should|could|must|might want to|will)(?: (?:also|then|now|simply"
    rf"|just))* (?:{_YOU_CAN})\b",
    r"go ahead and",
    r"have you tried",
    r"try(?:ing)? to",
    r"you try",
    r"make sure",
    r"ensure",
    r"be sure",
    r"(?:i(?:'d)?|we) (?:recommend|suggest|advise|propose)",
    r"i'?d ask you",
    r"let'?s",
    r"let us",
    r"we(?:'ll| will)? (?:need|have) to",
    r"we (?:should|must|can try)",
    r"you to\b",
    r"next step is(?: to)?",
    r"(?:first|next|second|last) thing (?:to do )?is(?: to)?",
    r"(?:fix|solution|step|thing to do) is to",
    r"(?:has|have|needs?) to be",
    r"must be",
    r"should be (?:on|off|enabled|disabled)",
)
"""Ways to put an order politely, or as advice."""

READ_OUT = re.compile(
    r"\b(?:tell me|let me know|report|share|read (?:it )?out|what)\b[^.]*\b(?:says?|shows?|see|reads?"
    r"|displayed|status|result|find|there|listed|set to|selected)\b"
)
CHECK_PRONOUN = re.compile(
    r"\b(?:re-?)?(?:check|verify|run|test|retry|inspect|look at|view) (?:it|that|this|them|these|those)\b"
)
FIRST_PERSON = re.compile(
    r"^\W*(?:(?:great|okay|ok|thanks?|thank you|perfect|good news|next|now|so|also|and|then|alright|sorry"
    r"|understood|first|sure|of course|yes|no|well|as|but|since|because)\b[\s,.!:-]*)*(?:i|i'?(?:ve|ll|m"
    r"|d)|we|we'?(?:ve|re|ll)|let me(?! know)|it (?:looks|seems|appears|sounds)|your (?:line|account|bill"
    r"|plan|phone|sim|device)\b[^?]*\b(?:is|was|has|shows?)|the (?:issue|problem|reason|cause))\b"
)
CONDITION = re.compile(
    r"^\W*(?:(?:and|but|also|so|otherwise|then)\W+)?(?:if|when|in case|should|once|as soon as|after|unless"
    r"|only if|while|until|before)\b"
)
NEVER_MIND_NEGATION = re.compile(
    r"\b(?:please )?(?:do not|don'?t) (?:forget|hesitate|worry)(?: to)?\b|\bmake sure not to forget to\b"
)
GERUND_STEP = re.compile(
    r"^\W*(?:(?:and|then)\W+)?after (?:you )?(\w+ing|you turn|you switch|you restart|you reset)\b"
)
