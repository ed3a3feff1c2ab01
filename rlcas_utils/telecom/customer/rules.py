"""The rules that turn one clause into requests: reseat, reset, reboot, pay, grant, set, switch, check.

Each rule sees a clause and the context and returns what it recognised, or an empty list.
"""

import re
from collections.abc import Callable

from rlcas_utils.telecom.customer import device, lexicon, topics
from rlcas_utils.telecom.customer.clauses import Clause, Mention
from rlcas_utils.telecom.customer.requests import Context, Request

Rule = Callable[[Clause, Context], list[Request]]

_MODES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("4g_5g_preferred", re.compile(r"5g|fastest|newest|automatic|\bauto\b|best available")),
    ("4g_only", re.compile(r"4g[_ ]only|lte only|only (?:4g|lte)")),
    ("4g_5g_preferred", re.compile(r"\b4g\b|\blte\b")),
    ("3g_only", re.compile(r"3g_only|\b3g\b")),
    ("2g_only", re.compile(r"2g_only|\b2g\b")),
)
_PERMISSION = re.compile(r"\b(?:storage|sms|phone|camera|contacts|location|microphone)\b(?! app)")
_STATE = re.compile(
    r"(?P<off>\boff\b|\bdisabl(?:e|ing|ed)\b|\bdeactivat\w+|\bdisconnect\w*|\bkill\b)"
    r"|(?P<on>\bon\b(?! (?:your|the|my|it|them|their) (?!on\b|off\b))|\b(?:re-?)?enabl(?:e|ing|ed)\b"
    r"|\b(?:re-?)?activat\w+|\bconnect(?:ing)?\b)"
)
_GLUE = re.compile(
    r"^(?:[\s,&/+]|\b(?:and|or|also|then|as well as|plus|the|your|both|any|status|settings?|in|of|on"
    r"|off)\b)*$"
)


def _call(tool: str, **details: str) -> Request:
    return Request("call", tool, tuple(details.items()))


def _mode(text: str) -> str:
    """Network mode named in the text: what follows the last "to" counts first."""
    for part in (text.rpartition(" to ")[2], text):
        for mode, pattern in _MODES:
            if pattern.search(part):
                return mode
    return ""


def _app(text: str) -> str:
    return "browser" if "browser" in text and "messag" not in text else "messaging"


def _grants(clause_text: str, message: str) -> list[Request]:
    names = _PERMISSION.findall(clause_text) or _PERMISSION.findall(message)
    names = [name for name in names if name in ("storage", "sms")] or names or ["storage", "sms"]
    return [_call("grant_app_permission", app_name=_app(clause_text), permission=name) for name in names]


def _set_mode(clause_text: str, message: str) -> list[Request]:
    mode = _mode(clause_text) or _mode(message)
    return [_call("set_network_mode_preference", mode=mode) if mode else Request("ask", "network_mode")]


def _states(text: str) -> list[str]:
    """Positions named, in order, without repetition: "turn it on and off" gives on, off."""
    states: list[str] = []
    for match in _STATE.finditer(text):
        if not states or states[-1] != match.lastgroup:
            states.append(str(match.lastgroup))
    return states


def _switch(setting: str, state: str) -> Request:
    if setting == "vpn":
        return _call(device.VPN_TOOLS[state])
    return Request("switch", setting, (("state", state),))


def _named_tool(tool: str, clause: Clause, context: Context) -> list[Request]:
    settings = {name: setting for setting, name in device.SWITCH_TOOLS.items()}
    if tool in settings:
        states = _states(clause.text)
        return [_switch(settings[tool], state) for state in states] or [_call(tool)]
    if tool == "set_network_mode_preference":
        return _set_mode(clause.text, context.text)
    if tool == "grant_app_permission":
        return _grants(clause.text, context.text)
    if tool in ("check_app_permissions", "check_app_status"):
        return [_call(tool, app_name=_app(clause.text))]
    if tool == "set_apn_settings":
        return [_call(tool, apn_name="internet")]
    return [_call(tool)]


def named_tools(clause: Clause, context: Context) -> list[Request]:
    """Device tools written out by name: the clearest request there is."""
    settings = {name: setting for setting, name in device.SWITCH_TOOLS.items()}
    context.last_switch = next((settings[t] for t in clause.tools if t in settings), context.last_switch)
    return [request for tool in clause.tools for request in _named_tool(tool, clause, context)]


def reseat(clause: Clause, context: Context) -> list[Request]:
    """Take the SIM card out and put it back."""
    about_sim = "sim" in clause.topics or context.last == "sim" or "seat" in clause.text
    return [_call("reseat_sim_card")] if about_sim and lexicon.VERBS["reseat"].search(clause.text) else []


def reset(clause: Clause, context: Context) -> list[Request]:
    """Reset the APN settings."""
    about_apn = "apn" in clause.topics or (context.last == "apn" and "network_mode" not in clause.topics)
    return [_call("reset_apn_settings")] if about_apn and lexicon.VERBS["reset"].search(clause.text) else []


def reboot(clause: Clause, context: Context) -> list[Request]:
    """Restart the phone."""
    return [_call("reboot_device")] if lexicon.VERBS["reboot"].search(clause.text) else []


def pay(clause: Clause, context: Context) -> list[Request]:
    """Accept a payment request."""
    return [_call("make_payment")] if lexicon.VERBS["pay"].search(clause.text) else []


def grant(clause: Clause, context: Context) -> list[Request]:
    """Give the messaging app permissions."""
    if not lexicon.VERBS["grant"].search(clause.text):
        return []
    named = _PERMISSION.search(clause.text)
    follows = (
        context.last == "permissions" and (named or lexicon.PRONOUN.search(clause.text)) and not clause.topics
    )
    about = "permissions" in clause.topics or (
        named and re.search(r"\baccess\b|\bapp\b|\bgrant|\ballow", clause.text)
    )
    return _grants(clause.text, context.text) if about or follows else []


def set_mode(clause: Clause, context: Context) -> list[Request]:
    """Choose the preferred network generation."""
    if not lexicon.VERBS["set"].search(clause.text):
        return []
    if "network_mode" in clause.topics:
        return _set_mode(clause.text, context.text)
    named = re.search(
        r"\b(?:to|as|include|for|on)\b[^.]*(?:\b[2345]g|\blte\b|(?:fastest|newest) (?:network|mode))",
        clause.text,
    )
    follows = context.last == "network_mode" and _mode(clause.text)
    return _set_mode(clause.text, context.text) if named or follows else []


def _switchable(clause: Clause) -> list[str]:
    return [topic for topic in clause.topics if topic in device.SWITCH_TOOLS or topic == "vpn"]


def switch(clause: Clause, context: Context) -> list[Request]:
    """Bring settings to a position: "turn X off", "make sure X is on", "toggle X on and off"."""
    verbs = [name for name in ("off", "on") if lexicon.VERBS[name].search(clause.text)]
    bare = clause.mood == "bare" and context.carry != "check"
    if not verbs and not bare:
        return []
    settings = _switchable(clause)
    if not settings and context.last_switch and (lexicon.PRONOUN.search(clause.text) or not clause.topics):
        settings = [context.last_switch]
    states = _states(clause.text) or ([context.carry] if context.carry in ("on", "off") else [])
    return [_switch(setting, state) for state in (states or verbs) for setting in settings]


def toggle(clause: Clause, context: Context) -> list[Request]:
    """Flip a setting when no position is said."""
    if not lexicon.VERBS["toggle"].search(clause.text):
        return []
    return [
        _call(device.SWITCH_TOOLS[topic]) for topic in _switchable(clause) if topic in device.SWITCH_TOOLS
    ]


_IN_BAR = re.compile(r"\b(?:in|on|at) (?:your|the) (?:status bar|top)\b")


def visible_topics(clause: Clause) -> list[str]:
    """Topics to look at, without those that are only said to be visible in another one.

    "Status bar and VPN status" are two checks; "the status bar for a VPN icon" is one.
    """
    kept: list[str] = []
    owner, previous, absorbed = "", None, False
    for mention in clause.mentions:
        listed = previous is not None and _GLUE.match(clause.text[previous.end : mention.start])
        if not listed:
            absorbed = bool(owner) and mention.topic in topics.ABSORBS.get(owner, ())
        if not absorbed:
            kept.append(mention.topic)
            owner = mention.topic
        previous: Mention | None = mention
    return ["status_bar"] if "status_bar" in kept and _IN_BAR.search(clause.text) else kept


def _already_seen(found: list[str], clause: Clause, context: Context) -> bool:
    """True for the second half of "look at the status bar and tell me if you see an airplane"."""
    symbols = topics.ABSORBS["status_bar"].issuperset(found)
    return context.acted and context.last == "status_bar" and symbols and "you see" in clause.text


def check(clause: Clause, context: Context) -> list[Request]:
    """Look at something and say what it shows."""
    looks = clause.mood == "question" or lexicon.VERBS["check"].search(clause.text)
    if not looks and not (clause.mood == "bare" and context.carry in ("", "check")):
        return []
    found = visible_topics(clause)
    if not found and context.last and lexicon.CHECK_PRONOUN.search(clause.text):
        found = [context.last]
    opened = context.opened or ("" if context.acted else context.last)
    if not found and opened and lexicon.READ_OUT.search(clause.text):
        found = [opened]
    if _already_seen(found, clause, context):
        return []
    if re.search(r"\b(?:your|the) line\b", clause.text):
        found = [topic for topic in found if topic != "roaming"]
    needs_app = {"permissions", "app"}
    return [
        _call(device.CHECK_TOOLS[t], **({"app_name": _app(clause.text)} if t in needs_app else {}))
        for t in found
    ]


def cycle(clause: Clause, context: Context) -> list[Request]:
    """Flip a setting and flip it back: "cycle Airplane Mode"."""
    if not lexicon.VERBS["cycle"].search(clause.text):
        return []
    order = {"airplane": ("on", "off")}
    return [_switch(t, s) for t in _switchable(clause) for s in order.get(t, ("off", "on"))]


ACTION_RULES: tuple[Rule, ...] = (reseat, reset, reboot, pay, grant, set_mode)
SWITCH_RULES: tuple[Rule, ...] = (cycle, switch, toggle)
