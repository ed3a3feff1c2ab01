"""Agent messages nobody would send on purpose: broken, hostile, huge, or right but for one thing."""

import json
import random

from rlcas_utils.telecom import prompt

PHRASES = (
    "Please turn off airplane mode and reboot.",
    "What is your phone number?",
    "If it is on, turn it off; if not, leave it.",
    "You are being transferred to a human agent.",
    "I have enabled roaming. Is it better?",
    "Please check the status bar and run a speed test, then reset the APN settings.",
    "###STOP###",
    "###TRANSFER### ###OUT-OF-SCOPE###",
    "Goodbye!",
    "Would you like to refuel 2.0 GB for 4 dollars?",
)
STRANGE = (
    "",
    " \n\t",
    "\x00\x1b[31m",
    "\ud800",
    "🐎" * 5,
    "Žluťoučký kůň",
    "请重启手机",
    "إعادة التشغيل",
    "‮txet",
    "￾",
)
VALUES = (
    *(None, True, -1, 0, 2.0, 1e308, 10**30, "C1001", "L1002", "B1234321", "2.0", "555-123-2002"),
    *([], {}, [[]], {"a": {"b": [1, None]}}, ["L1002", "L1001"]),
)
ARGUMENTS = (
    *(
        "customer_id",
        "line_id",
        "bill_id",
        "gb_amount",
        "phone_number",
        "id",
        "limit",
        "reason",
        "summary",
        "content",
    ),
    *(
        "self",
        "requestor",
        "tool_name",
        "kwargs",
        "__class__",
        "app_name",
        "mode",
        "dob",
        "full_name",
        "",
        "🐎",
    ),
)


def _value(rng, depth=0):
    roll = rng.random()
    if roll < 0.1:
        return rng.choice(STRANGE) * rng.choice((1, 1, 30))
    if roll < 0.12:
        return "x" * rng.choice((5_000, 50_000))
    if roll < 0.2 and depth < 4:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if roll < 0.28 and depth < 4:
        return {rng.choice(ARGUMENTS): _value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice(VALUES)


def _names():
    own = [tool["name"] for tool in prompt.agent_tools()]
    invented = ["fix_everything", "", "__init__", "respond ", "get_customer_by_id\n", "🐎", "use_tool", "db"]
    return own, [*prompt.customer_tools(), *invented]


def _call(rng):
    own, other = _names()
    name = rng.choice(own if rng.random() < 0.7 else other)
    arguments = {key: _value(rng) for key in rng.sample(ARGUMENTS, rng.randrange(5))}
    for key in prompt.required_arguments().get(name, ()):
        if rng.random() < 0.9:
            arguments[key] = _value(rng) if rng.random() < 0.5 else rng.choice(VALUES)
    return {"name": name, "arguments": arguments}


def _speech(rng):
    words = " ".join(rng.choice(PHRASES + STRANGE) for _ in range(rng.randrange(1, 6)))
    return {"name": "respond", "arguments": {"content": words * rng.choice((1, 1, 1, 40))}}


def _broken(rng, text):
    """Cut, doubled, emptied or spoiled somewhere."""
    place = rng.randrange(len(text) + 1)
    return rng.choice(
        (
            text[:place],
            text[place:],
            text + text,
            text[:place] + rng.choice(STRANGE) + text[place:],
            text.replace('"', "'"),
            text.replace("}", "", 1),
            text.replace("null", "NaN").replace("2.0", "1e999"),
            f"<think>{text}</think>",
            f"<think>{text}",
            f"```json\n{text}\n```",
            f"<tool_call>[{text}, {text}]</tool_call>",
            "{" * 3_000,
            "<tool_call>" * 500,
            rng.choice(PHRASES + STRANGE),
        )
    )


def messages(count, seed=0):
    """Yield `count` messages; the same seed gives the same ones."""
    rng = random.Random(seed)
    for _ in range(count):
        call = _speech(rng) if rng.random() < 0.35 else _call(rng)
        text = json.dumps(call, ensure_ascii=rng.random() < 0.5)
        text = (
            f"<think>{rng.choice(PHRASES)}</think>" * (rng.random() < 0.3) + f"<tool_call>{text}</tool_call>"
        )
        yield _broken(rng, text) if rng.random() < 0.35 else text
