"""Topics: the things on a phone an agent talks about, the words for them, and what is visible where."""

import re

# Two topics never claim the same words: earlier rows win.
_WAYS: dict[str, tuple[str, ...]] = {
    "wifi_calling": (
        r"wi-?\s?fi[- ]call(?:ing|s)?",
        r"calls? over wi-?\s?fi",
    ),
    "airplane": (
        r"(?:air\s?plane|aeroplane|flight)[- ]?mode",
        r"\bairplane\b",
    ),
    "data_saver": (
        r"\b(?:low[- ])?data[- ]?(?:sav(?:er|ing)|restrictions?|limiting|usage limits?)\b(?: mode"
        r"| status| settings?)*",
        r"low data mode",
    ),
    "roaming": (r"\b(?:international |data[- ])?roaming\b",),
    "vpn": (
        r"\bvpns?\b",
        r"virtual private network",
    ),
    "network_mode": (
        r"(?:preferred )?network[- ](?:mode|type)?\s?preferences?",
        r"(?:preferred )?network[- ]mode",
        r"preferred network(?: type| mode)?",
        r"network[- ](?:type|mode) settings?",
        r"preferred (?:mode|generation)",
    ),
    "apn": (
        r"\bapns?\b(?: settings?| name)?",
        r"access point (?:names?|settings?)",
        r"\bmmsc\b(?: url)?",
        r"mms settings?",
    ),
    "sim": (r"\be?sim\b(?:[- ]card)?(?: status)?",),
    "payment_request": (
        r"payment[- ]requests?",
        r"request (?:for|to) pay(?:ment)?",
    ),
    "permissions": (
        r"\bpermissions?\b",
        r"(?:messaging|messages?) app(?:'s)? (?:is )?(?:allowed|access)",
    ),
    "apps": (
        r"installed apps?",
        r"(?:apps?|applications?) (?:are |do you have )?installed",
        r"list of apps",
    ),
    "speed": (
        r"speed[- ]?tests?",
        r"(?:internet|data|connection|download|browsing) speeds?",
        r"how fast\b.*?(?:internet|data|connection)",
        r"(?:test|check|measure) (?:your |the )?(?:internet|data|speed)\b(?! plan| usage| saver)",
    ),
    "mms": (
        r"\bmms\b(?: messages?)?",
        r"(?:picture|multimedia|photo) (?:messages?|messaging|texts?)",
        r"(?:re)?send(?:ing)? (?:(?:the|your|me|a|an|any|another|test|same|one) )*(?:picture|photo|image"
        r"|pic)s?\b",
    ),
    "app": (
        r"(?:app|application) (?:status|details)",
        r"status of (?:the|your) [a-z]+ app",
    ),
    "mobile_data": (
        r"(?:mobile|cellular)[- ]data(?: connection| switch| setting| toggle| status)*",
        r"\bdata (?:switch|toggle|connection)\b",
        r"\bdata(?= (?:on|off|back on|is (?:on|off))\b)",
        r"(?<=turn on )data\b(?! saver)",
        r"\byour data\b(?! (?:plan|usage|limit|allowance))",
    ),
    "network": (
        r"network[- ](?:status|connection|type|technology)(?: status)?",
        r"connection status",
        r"connectivity(?: status)?",
        r"cellular (?:status|connection|network)(?: status)?",
        r"network (?:and|&) (?:signal|sim) status",
        r"network details",
    ),
    "status_bar": (
        r"status[- ]?bar",
        r"(?:top|upper (?:part|edge)) of (?:your|the) (?:phone|screen|display)(?:'s screen)?",
        r"icons?\b",
        r"signal (?:bars?|strength|indicators?|icons?|status)",
        r"\b(?:bars?|signal|reception)\b",
        r"(?:cellular |phone )?service\b",
    ),
    "wifi": (r"\bwi-?\s?fi\b",),
}
TOPICS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile("|".join(ways))) for name, ways in _WAYS.items()
)

# A topic that is read takes in what is merely said to be visible there ("the status bar, for a VPN icon").
_VISIBLE: dict[str, str] = {
    "status_bar": "airplane data_saver mobile_data network network_mode roaming sim status_bar vpn wifi",
    "network": "airplane mobile_data network network_mode roaming sim status_bar wifi",
    "permissions": "app apps mms permissions",
    "apn": "apn mms",
    "speed": "mobile_data network speed status_bar",
    "mms": "app mms mobile_data wifi",
    "wifi_calling": "mms wifi_calling",
    "sim": "network sim status_bar",
    "apps": "app mms",
    "network_mode": "network network_mode status_bar",
    "payment_request": "payment_request",
    "data_saver": "data_saver mobile_data",
    "vpn": "network vpn",
    "airplane": "airplane network status_bar",
    "mobile_data": "mobile_data network status_bar",
    "roaming": "mobile_data roaming",
    "wifi": "network wifi",
    "app": "app mms",
}
ABSORBS: dict[str, frozenset[str]] = {name: frozenset(seen.split()) for name, seen in _VISIBLE.items()}
