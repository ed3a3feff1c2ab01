"""How the expert reads a customer's words: small yes-or-no questions to a text."""

import json
import re
from typing import Any

_ISSUES = (
    ("mms", re.compile(r"\bmms\b|picture messag|messaging app", re.I)),
    ("data", re.compile(r"mobile data|internet|speed|browsing", re.I)),
)
_PHONE = re.compile(r"\b\d{3}-\d{3}-\d{4}\b")
_REFUEL_YES = re.compile(r"\b(?:yes|sure|please (?:refuel|add|go ahead)|okay|ok|go ahead)\b", re.I)
_ABROAD = re.compile(r"\babroad\b|\bfrance\b|travel(?:l)?ing (?:in|outside|to)", re.I)
_HOME = re.compile(r"\bat home\b|haven't been travel|not abroad|not travel", re.I)
_CONFUSED = re.compile(
    r"other words|explain it again|one step at a time|not sure what you would like|don't follow"
    r"|what exactly should",
    re.I,
)


def issue(text: str) -> str:
    """Issue named in the customer's first message: "mms", "data" or "service"."""
    return next((name for name, pattern in _ISSUES if pattern.search(text)), "service")


def phone_number(text: str) -> str:
    """Phone number in the text, or ""."""
    match = _PHONE.search(text)
    return match.group(0) if match else ""


def confused(text: str) -> bool:
    """True if the customer did not understand and did nothing."""
    return bool(_CONFUSED.search(text))


def has_signal(text: str) -> bool:
    """True if a status bar or network status in the text shows a connection."""
    if re.search(r"cellular connection: connected", text, re.I):
        return True
    return "📶" in text and not re.search(r"✈️|no signal", text, re.I)


def airplane_on(text: str) -> bool:
    """True if Airplane Mode shows as on."""
    return bool(re.search(r"✈️|airplane mode: on", text, re.I))


def sim_missing(text: str) -> bool:
    """True if the SIM card shows as missing."""
    return bool(re.search(r"no sim card|sim card status: missing", text, re.I))


def sim_locked(text: str) -> bool:
    """True if the SIM card shows as locked."""
    return bool(re.search(r"\blocked\b", text, re.I))


def apn_broken(text: str) -> bool:
    """True if the APN name is wrong."""
    return bool(re.search(r"apn name: broken|apn name: (?:none|not set)|incorrect", text, re.I))


def mmsc_missing(text: str) -> bool:
    """True if no MMSC address is set."""
    return bool(re.search(r"\(for picture messages\): not set|mmsc url[^;]*not set", text, re.I))


def data_off(text: str) -> bool:
    """True if mobile data shows as off."""
    return bool(re.search(r"mobile data enabled: no", text, re.I))


def phone_roaming_off(text: str) -> bool:
    """True if the phone's roaming switch shows as off."""
    return bool(re.search(r"data roaming enabled: no", text, re.I))


def shows_data(text: str) -> bool:
    """True if a status bar with mobile data on is in the text; only such a bar shows Data Saver."""
    return "📱" in text


def saver_on(text: str) -> bool:
    """True if the status bar shows Data Saver."""
    return "🔽" in text


def vpn_on(text: str) -> bool:
    """True if the status bar shows a VPN."""
    return "🔒" in text


def generation(text: str) -> str:
    """Network generation as shown ("2G" to "5G"), or ""."""
    match = re.search(r"\b([2-5]G)\b", text)
    return match.group(1) if match else ""


def speed_excellent(text: str) -> bool:
    """True if a speed test came out excellent."""
    return "(excellent)" in text.lower()


def no_connection(text: str) -> bool:
    """True if a speed test found no connection at all."""
    return bool(re.search(r"no connection|speed test failed", text, re.I))


def mms_works(text: str) -> bool:
    """True if an MMS can be sent."""
    return bool(re.search(r"can send mms", text, re.I))


def wifi_calling_on(text: str) -> bool:
    """True if Wi-Fi Calling shows as on."""
    return bool(re.search(r"wi-?fi calling is (?:currently turned|now|turned) on", text, re.I))


def missing_permissions(text: str) -> list[str]:
    """Which of storage and sms the messaging app lacks."""
    match = re.search(r"has permission for: ([^.]*)", text, re.I)
    granted = match.group(1).lower() if match else ""
    return [name for name in ("storage", "sms") if name not in granted]


def is_abroad(text: str) -> bool:
    """True if the customer says they are abroad."""
    return bool(_ABROAD.search(text)) and not _HOME.search(text)


def tells_location(text: str) -> bool:
    """True if the customer says where they are, or that they have not travelled."""
    return bool(_ABROAD.search(text) or _HOME.search(text))


def agrees(text: str) -> bool:
    """True if the customer agrees to the refuel offered."""
    return bool(_REFUEL_YES.search(text))


def record(text: str) -> Any:
    """A tool result as data; an empty mapping if the tool answered with an error."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return {}
