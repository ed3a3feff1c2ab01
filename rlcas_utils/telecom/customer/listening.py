"""What else an agent's message does, besides asking for something on the phone.

A message asks who the customer is, where they are, whether a charge is fine, says goodbye or announces a
transfer. `listen` returns these as a set of cue names; `answers` says what the customer replies to them.
"""

import re

from rlcas_utils.telecom.customer import phrases
from rlcas_utils.telecom.customer.scenario import Scenario

_CUE_PATTERNS: dict[str, str] = {
    "question": r"\?|\bplease (?:provide|confirm|tell|share|give|let me "
    "know|reply|specify|verify|state)\b|\b(?:could|can|would|will) you\b"
    r"|\bi(?:'ll)? need (?:your|to identify|to verify|the phone)|\bi need\b|\blet me know\b"
    r"|\bmay i have\b|\bwhat(?:'s| is)\b|\bprovide\b",
    "identity": r"phone number|mobile number|your number|\bcustomer id|full name|your name\b|date of "
    "birth|\bdob\b|identify (?:you|your)"
    r"|verify your (?:account|identity)|who am i|look up your account|locate your account"
    r"|account (?:number|details|information)|which line|affected line|number (?:on|of|for) (?:the"
    r"|your) (?:account|line)",
    "number": r"(?:provide|what is|what's|give|share|tell me|need|confirm|have) (?:me )?(?:your |the "
    ")?(?:phone|mobile|number)",
    "birth_date": r"date of birth|\bdob\b|birth ?da(?:y|te)",
    "same": r"\bconfirm\b|\bcorrect\b|\bsame\b|\bright\?",
    "location": r"\babroad\b|\btravel|outside (?:of )?(?:the|your|usa|us)\b|where are "
    "you|(?:current|your) location|overseas|which country|what country"
    r"|home (?:network|country|area)|\blocated\b|out of the country|another country|foreign country"
    r"|in the (?:us|united states)",
    "where": r"are you|where|currently|whether you|if you(?:'re| are)|\byou(?:'re| are) (?:\w+ "
    ")?(?:abroad|travel|at home|outside|overseas)|let me know if you|tell me (?:if|whether|where) "
    "you|confirm "
    r"(?:if|whether)|travell?ing\?|abroad\?|location|which country|what country",
    "model": r"\bandroid\b|\biphone\b|what (?:kind|type|model|make) of (?:phone|device)|(?:device|phone) "
    "(?:model|type)|which phone",
    "consent": r"would you like|do you want|are you "
    "(?:ok|okay|willing|happy|comfortable|fine|ready)|shall i|may i|should i|can i|could i"
    r"|do you (?:agree|accept|consent|approve|authorize|wish|confirm)|please confirm|can you confirm"
    r"|confirm (?:that|if|whether|you)|reply yes|is (?:that|this|it) (?:ok|okay|alright|all right|fine"
    r"|correct|acceptable)"
    r"|proceed|go ahead|if you(?:'d| would) like|if you agree|let me know if|would that be|prefer"
    r"|interested|which option|ready|want me to|say yes|okay\?|ok\?|all right\?",
    "offer": r"would you like (?:me|to)|want me to|shall i|may i|should i|can i|is (?:that|this|it) "
    "(?:ok|okay|fine|alright|acceptable)|do you (?:agree|consent|authorize|accept|approve)|proceed|reply "
    "yes|go ahead",
    "refuel": r"refuel|top[- ]?up|add (?:more |extra |additional )?data|(?:more|additional|extra) "
    "data|\bgb\b|data (?:limit|allowance|cap)|gigabyte",
    "amount": r"how (?:much|many)|what amount|amount of data|number of gb|which amount",
    "two_gb": r"\b2(?:\.0+)? ?gb\b|\btwo (?:gb|gigabytes)",
    "plan": r"chang\w* (?:your |the |to (?:a|another) )?(?:\w+ )?plan|different plan|upgrad|higher[- "
    r"]?(?:data )?plan|(?:another|new|bigger|larger) plan|switch (?:to )?(?:a |your )?\w* ?plan",
    "bill": r"\bbill\b|overdue|\bpay(?:ment)?\b|balance|outstanding|settle",
    "pay": r"\bpay|settle",
    "roaming": r"\broaming",
    "enable": r"enabl|turn (?:it |roaming |data roaming )?on|activat|switch (?:it )?on",
    "transferring": r"you are being transferred|being transferred to|i(?:'m| am) (?:now )?transferring "
    "you|transferring you (?:now|to)|i(?:'ve| have) (?:now )?transferred"
    r"|have been transferred|please hold (?:on|the line|while i (?:transfer|connect))"
    r"|connecting you (?:to|with)|i(?:'m| am) (?:now )?connecting you",
    "will_transfer": r"(?:need to|will|going to|have to|must|let me|i'?ll|can|should|like to) (?:now "
    ")?(?:transfer|escalate|connect|hand)|transfer(?:ring)? (?:you )?to",
    "human": r"human|specialist|technical support|another "
    "agent|representative|supervisor|technician|colleague",
    "closing": r"anything else|is there (?:any|some)thing|have a "
    "(?:great|nice|good|wonderful|lovely)|glad (?:to|that|i could|we|it)|\bresolved\b|all set|feel "
    "free|happy to help(?!\b.*\bplease)"
    r"|good ?bye|take care|issue (?:is|has been) fixed|you'?re welcome|enjoy your"
    r"|thank you for (?:your patience|calling|contacting)",
    "outcome": r"working (?:now|again|properly|fine)|is (?:it|that|everything|your \w+(?: \w+)?) (?:now "
    ")?(?:working|back|fixed|ok)|still (?:having|experiencing|facing|seeing|not|the same)|(?:does|do) "
    r"(?:it|that|everything|things|your \w+(?: \w+)?) work"
    r"|did (?:that|this|it|the \w+) (?:work|help|fix|solve|change)|everything (?:is )?work|try (?:it "
    r"|that |this )?again|once more|test again|how (?:is|does) it|any (?:change|improvement|better|luck)"
    r"|what happens|can you (?:now )?(?:make|place) (?:a |any )?calls?",
}
_CUES = {name: re.compile(pattern) for name, pattern in _CUE_PATTERNS.items()}


def listen(text: str) -> frozenset[str]:
    """Names of the cues in a normalised message (`clauses.normalise`)."""
    return frozenset(name for name, pattern in _CUES.items() if pattern.search(text))


def _about_identity(cues: frozenset[str], scenario: Scenario, identified: bool, acting: bool) -> str:
    if not {"question", "identity"} <= cues or not scenario.phone or (acting and identified):
        return ""
    if identified and "birth_date" in cues:
        return "no_birth_date"
    if identified and "same" in cues:
        return "same_number"
    return "identity" if not identified or "number" in cues else ""


def _about_location(cues: frozenset[str], scenario: Scenario) -> str:
    if not {"question", "location", "where"} <= cues:
        return ""
    return "location" if scenario.location else "no_location"


def _about_money(cues: frozenset[str], scenario: Scenario, paying: bool) -> str:
    asked = bool({"consent", "amount"} & cues)
    if asked and "refuel" in cues and scenario.refuel_gb:
        open_amount = "plan" in cues or "amount" in cues or "two_gb" not in cues
        return "refuel_amount" if open_amount else "refuel_yes"
    if asked and "plan" in cues and scenario.keeps_plan:
        return "keep_plan_refuel" if scenario.refuel_gb else "keep_plan"
    if "consent" in cues and {"bill", "pay"} <= cues and not paying:
        return "pay_yes" if scenario.pays else "pay_unsure"
    return ""


def answers(
    cues: frozenset[str], scenario: Scenario, *, identified: bool, acting: bool, paying: bool
) -> list[str]:
    """Names of the phrases with which the customer answers the agent's questions.

    Args:
        cues: From `listen`.
        scenario: Who the customer is.
        identified: Name and number were given before.
        acting: The same message also asks for something on the phone.
        paying: The same message asks to make the payment.

    Returns:
        Keys of `phrases.ANSWERS`, in the order to say them.
    """
    replies = [
        _about_identity(cues, scenario, identified, acting),
        _about_location(cues, scenario),
        "no_model" if {"model", "question"} <= cues and not acting else "",
        _about_money(cues, scenario, paying),
    ]
    replies = [reply for reply in replies if reply]
    if not replies and not acting and "offer" in cues and "closing" not in cues:
        replies.append("roaming_yes" if {"roaming", "enable"} <= cues else "yes")
    return [reply for reply in replies if reply in phrases.ANSWERS]
