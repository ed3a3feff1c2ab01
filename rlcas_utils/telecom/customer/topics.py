"""Topics: the things on a phone an agent talks about, the words for them, and what is visible where."""

import re

# Two topics never claim the same words: earlier rows win.
_TOPIC_PATTERNS: tuple[tuple[str, str], ...] = (
    ("wifi_calling", r"wi-?\s?fi[- ]call(?:ing|s)?|calls? over wi-?\s?fi"),
    ("airplane", r"(?:air\s?plane|aeroplane|flight)[- ]?mode|\bairplane\b"),
    (
        "data_saver",
        r"\b(?:low[- ])?data[- ]?(?:sav(?:er|ing)|restrictions?|limiting|usage limits?)\b(?: mode"
        r"| status| settings?)*"
        r"|low data mode",
    ),
    ("roaming", r"\b(?:international |data[- ])?roaming\b"),
    ("vpn", r"\bvpns?\b|virtual private network"),
    (
        "network_mode",
        r"(?:preferred )?network[- ](?:mode|type)?\s?preferences?|(?:preferred )?network[- ]mode"
        r"|preferred network(?: type| mode)?"
        r"|network[- ](?:type|mode) settings?|preferred (?:mode|generation)",
    ),
    (
        "apn",
        r"\bapns?\b(?: settings?| name)?|access point (?:names?|settings?)|\bmmsc\b(?: url)?|mms settings?",
    ),
    ("sim", r"\be?sim\b(?:[- ]card)?(?: status)?"),
    ("payment_request", r"payment[- ]requests?|request (?:for|to) pay(?:ment)?"),
    ("permissions", r"\bpermissions?\b|(?:messaging|messages?) app(?:'s)? (?:is )?(?:allowed|access)"),
    ("apps", r"installed apps?|(?:apps?|applications?) (?:are |do you have )?installed|list of apps"),
    (
        "speed",
        r"speed[- ]?tests?|(?:internet|data|connection|download|browsing) speeds?"
        r"|how fast\b.*?(?:internet|data|connection)"
        r"|(?:test|check|measure) (?:your |the )?(?:internet|data|speed)\b(?! plan| usage| saver)",
    ),
    (
        "mms",
        r"\bmms\b(?: messages?)?|(?:picture|multimedia|photo) (?:messages?|messaging|texts?)"
        r"|(?:re)?send(?:ing)? (?:(?:the|your|me|a|an|any|another|test|same|one) )*(?:picture|photo"
        r"|image|pic)s?\b",
    ),
    ("app", r"(?:app|application) (?:status|details)|status of (?:the|your) [a-z]+ app"),
    (
        "mobile_data",
        r"(?:mobile|cellular)[- ]data(?: connection| switch| setting| toggle| status)*|\bdata (?:switch"
        r"|toggle|connection)\b|\bdata(?= (?:on|off|back on|is (?:on|off))\b)|(?<=turn on )data\b(?! saver)"
        r"|\byour data\b(?! (?:plan|usage|limit|allowance))",
    ),
    (
        "network",
        r"network[- ](?:status|connection|type|technology)(?: status)?|connection status"
        r"|connectivity(?: status)?"
        r"|cellular (?:status|connection|network)(?: status)?|network (?:and|&) (?:signal|sim) status"
        r"|network details",
    ),
    (
        "status_bar",
        r"status[- ]?bar|(?:top|upper (?:part|edge)) of (?:your|the) (?:phone|screen"
        r"|display)(?:'s screen)?|icons?\b"
        r"|signal (?:bars?|strength|indicators?|icons?|status)|\b(?:bars?|signal|reception)\b"
        r"|(?:cellular |phone )?service\b",
    ),
    ("wifi", r"\bwi-?\s?fi\b"),
)
TOPICS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern)) for name, pattern in _TOPIC_PATTERNS
)

# A topic that is read takes in what is merely said to be visible there ("the status bar, for a VPN icon").
ABSORBS: dict[str, frozenset[str]] = {
    "status_bar": frozenset(
        [
            "network",
            "airplane",
            "data_saver",
            "vpn",
            "wifi",
            "mobile_data",
            "sim",
            "roaming",
            "network_mode",
            "status_bar",
        ]
    ),
    "network": frozenset(
        ["airplane", "mobile_data", "roaming", "sim", "status_bar", "wifi", "network", "network_mode"]
    ),
    "permissions": frozenset(["mms", "app", "apps", "permissions"]),
    "apn": frozenset(["mms", "apn"]),
    "speed": frozenset(["mobile_data", "network", "speed", "status_bar"]),
    "mms": frozenset(["wifi", "mobile_data", "mms", "app"]),
    "wifi_calling": frozenset(["mms", "wifi_calling"]),
    "sim": frozenset(["sim", "network", "status_bar"]),
    "apps": frozenset(["app", "mms"]),
    "network_mode": frozenset(["network_mode", "network", "status_bar"]),
    "payment_request": frozenset(("payment_request",)),
    "data_saver": frozenset(["data_saver", "mobile_data"]),
    "vpn": frozenset(["vpn", "network"]),
    "airplane": frozenset(["airplane", "status_bar", "network"]),
    "mobile_data": frozenset(["mobile_data", "status_bar", "network"]),
    "roaming": frozenset(["roaming", "mobile_data"]),
    "wifi": frozenset(["wifi", "network"]),
    "app": frozenset(["app", "mms"]),
}
