"""Verbs and moods: what may be asked to happen, and how a clause is meant.

`topics` holds the nouns. The parser in `rules` and `clauses` holds the grammar; a new wording is usually one
more alternative in one of these tables.
"""

import re

_TURN = r"(?:turn|switch|toggl|flip|shut|put|set)(?:e|ing|ting|ping|ching)?"
VERBS: dict[str, re.Pattern[str]] = {
    "off": re.compile(
        rf"\b{_TURN}\b[^,;]*?\boff\b|\b(?:disabl|deactivat)(?:e|ing)\b|\bdisconnect(?:ing)?\b|\bkill\b"
        r"|\b(?:make sure|ensure|be sure|see to it|has to be|must be|needs? to be"
        r"|should be)\b[^,;]*\b(?:off|disabled|disconnected)\b"
    ),
    "on": re.compile(
        rf"\b{_TURN}\b[^,;]*?\bon\b(?! (?:your|the) (?:phone|device|screen))|\b(?:re-?)?enabl(?:e|ing)\b"
        rf"|\b(?:re-?)?activat(?:e|ing)\b|\b(?:re)?connect(?:ing)? (?:to )?(?:your |the |a )?vpn"
        r"|\b(?:make sure|ensure|be sure|see to it|has to be|must be|needs? to be"
        r"|should be)\b[^,;]*\b(?:on|enabled)\b"
    ),
    "toggle": re.compile(r"\btoggl(?:e|ing)\b|\bflip\b"),
    "cycle": re.compile(r"\bcycl(?:e|ing)\b"),
    "reseat": re.compile(
        r"\bre-?seat(?:ing)?\b|\b(?:re-?insert|remov|tak|eject|pull|pop)(?:e|ing)?\b[^.]*\bsim\b"
        r"|\bsim\b[^.]*\b(?:out|back in)\b|\b(?:tak|pull|pop|remov)(?:e|ing) it(?: out)?\b"
        r"|\bput it back(?: in)?\b"
    ),
    "reset": re.compile(
        r"\breset(?:ting)?\b|\brestor(?:e|ing)\b[^.]*\b(?:default|original|factory)|\bback to (?:the "
        r"|their |its )?defaults?\b"
    ),
    "reboot": re.compile(
        r"\bre-?boot(?:ing)?\b|\bre-?start(?:ing)?\b|\bpower[- ]?cycl(?:e|ing)\b|\bpower (?:it"
        r"|your phone|your device|the phone|the device|down|off)\b"
        r"|\b(?:turn|switch) (?:it|(?:your|the) (?:phone|device)) off and (?:then )?(?:back )?on"
        r"|\b(?:turn|switch) off (?:your|the) (?:phone|device)"
    ),
    "grant": re.compile(
        r"\b(?:grant|allow|giv|enabl|add|provid)(?:e|ing)?\b|\b(?:turn|switch|toggle)\b[^,;]*\bon\b"
    ),
    "set": re.compile(r"\b(?:set|chang|switch|select|choos|updat|adjust|mov|put|pick)(?:e|ing|ting)?\b"),
    "pay": re.compile(
        r"\b(?:mak|complet|submit|proceed with|go ahead with|accept|approv|authoriz|process|finish"
        r"|send)(?:e|ing)?\b[^.]*\bpayment\b(?! request)"
        r"|\bpay(?:ing)?\b(?! attention)|\b(?:accept|approve|complete|confirm) (?:it|(?:the|this|that|my"
        r"|your) (?:payment )?request)\b|\bsettle\b[^.]*\bbill"
    ),
    "check": re.compile(
        r"\b(?:re-?|double[- ])?(?:check|verify|confirm|test|run|try|read|inspect|measure|attempt)(?:ing)?\b"
        r"|\b(?:look|see|tell|let me know|report|view|show|share|send|resend|find out|note|observe"
        r"|describe|give|do|perform|retry|monitor|have a look|take a look|want to know|like to know"
        r"|need to know|wondering|open)\b"
    ),
}
"""What can be asked to happen. `understanding` says which topics each verb goes with."""

NAVIGATE = re.compile(r"\b(?:go (?:in)?to|open|navigate|head (?:in)?to|settings\s*>|swipe)\b")
READ_OUT = re.compile(
    r"\b(?:tell me|let me know|report|share|read (?:it )?out|what)\b[^.]*\b(?:says?|shows?|see|reads?"
    r"|displayed|status|result|find|there|listed|set to|selected)\b"
)
CHECK_PRONOUN = re.compile(
    r"\b(?:re-?)?(?:check|verify|run|test|retry|inspect|look at|view) (?:it|that|this|them|these|those)\b"
)
PRONOUN = re.compile(r"\b(?:it|this|that|them|these|those|both|each|one|ones)\b")

_POLITE_YOU = r"turn|switch|toggle|check|run|restart|reboot|reset|re-?seat|set|grant|allow|disable"
r"|enable|disconnect|connect|try|verify|remove|take|make|pay|complete|confirm|look|tell|send|open|go"
r"|change|select|choose|perform|test|have"
REQUEST = re.compile(
    rf"\b(?:please|kindly|could you|can you|would you(?! (?:like|prefer|be))|will you(?! be)|i(?:'d"
    rf"| would) like you|i(?:'ll)? (?:need|want) you|i want you|you(?:'ll)?(?: also| just"
    rf"| only)? (?:need|have|want|will need"
    rf"|will want) to"
    rf"|you (?:can|may|should|could|must|might want to|will)(?: (?:also|then|now|simply"
    rf"|just))* (?:{_POLITE_YOU})\b|go ahead and|have you tried|try(?:ing)? to|you try|make sure|ensure"
    rf"|be sure"
    r"|(?:i(?:'d)?|we) (?:recommend|suggest|advise|propose)|i'?d ask you|let'?s|let us|we(?:'ll"
    r"| will)? (?:need|have) to|we (?:should|must|can try)|you to\b"
    r"|next step is(?: to)?|(?:first|next|second|last) thing (?:to do )?is(?: to)?|(?:fix|solution|step"
    r"|thing to do) is to|(?:has|have|needs?) to be|must be|should be (?:on|off|enabled|disabled))\b"
)
FIRST_PERSON = re.compile(
    r"^\W*(?:(?:great|okay|ok|thanks?|thank you|perfect|good news|next|now|so|also|and|then|alright"
    r"|sorry|understood|first|sure|of course|yes|no|well|as|but|since|because)\b[\s,.!:-]*)*"
    r"(?:i|i'?(?:ve|ll|m|d)|we|we'?(?:ve|re|ll)|let me(?! know)|it (?:looks|seems|appears|sounds)"
    r"|your (?:line|account|bill|plan|phone|sim|device)\b[^?]*\b(?:is|was|has|shows?)|the (?:issue"
    r"|problem|reason|cause))\b"
)
CONDITION = re.compile(
    r"^\W*(?:(?:and|but|also|so|otherwise|then)\W+)?(?:if|when|in case|should|once|as soon as|after"
    r"|unless|only if|while|until|before)\b"
)
ABROAD = re.compile(
    r"\b(?:abroad|travel|travell?ing|overseas|outside (?:of )?(?:the|your)|roaming area|another country"
    r"|foreign)"
)
NEGATION = re.compile(
    r"\b(?:do not|don'?t|no need to|need not|needn'?t|(?:do(?:es)?n'?t|don't) (?:need|have) to|without"
    r"|avoid|never|not necessary|not the|(?<=, )not|instead of|rather than|refrain from|unless"
    r"|isn'?t necessary)\b"
)
NEVER_MIND_NEGATION = re.compile(
    r"\b(?:please )?(?:do not|don'?t) (?:forget|hesitate|worry)(?: to)?\b|\bmake sure not to forget to\b"
)
GERUND_STEP = re.compile(
    r"^\W*(?:(?:and|then)\W+)?after (?:you )?(\w+ing|you turn|you switch|you restart|you reset)\b"
)
PAST = re.compile(
    r"\b(?:turned|switched|toggled|rebooted|restarted|enabled|disabled|granted|checked|paid|set|reset"
    r"|done|completed)\b"
)
