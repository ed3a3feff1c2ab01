"""The customer's wording: variants from which a seeded generator picks, and device results in plain words."""

import re

GREETINGS = ("Hi,", "Hello,", "Hi there,", "Hello!")

OPENINGS: dict[str, tuple[str, ...]] = {
    "service": (
        "my phone has been showing 'No Service' for the past few hours. Can you help me get it working?",
        "I've had no service on my phone for a few hours now and I can't make calls.",
        "my phone says 'No Service' and has done so for hours. What can I do?",
    ),
    "speed": (
        "my mobile data isn't working properly. It either stops completely or is very slow. I need "
        "excellent internet speed and I don't have Wi-Fi.",
        "I'm having trouble with my mobile data: it stops or is extremely slow. I really need excellent "
        "speed, nothing less.",
        "the internet on my phone keeps stopping or crawling. I want excellent mobile data speed, and I "
        "have no Wi-Fi here.",
    ),
    "mms": (
        "I haven't been able to send MMS messages with my messaging app for the past few hours. Can you "
        "help?",
        "my messaging app won't send picture messages (MMS) any more. It has been like this for hours.",
        "I can't send MMS messages from my phone and I'd like to get that fixed.",
    ),
}
UNEASY = "I'm not very good with technology, I'm afraid."

ANSWERS: dict[str, tuple[str, ...]] = {
    "identity": (
        "Sure, my name is {name} and my phone number is {phone}.",
        "My phone number is {phone}. I'm {name}.",
        "It's {phone}, under the name {name}.",
    ),
    "same_number": ("Yes, the number is {phone}.",),
    "no_birth_date": (
        "I'd rather not give my date of birth, but my name is {name} and my number is {phone}.",
    ),
    "location": ("I'm currently {location}.",),
    "no_location": ("I haven't been travelling as far as I know.",),
    "no_model": ("I'm not sure which model it is.",),
    "refuel_amount": ("I don't want to change my plan, but yes, please refuel {refuel_gb} GB of data.",),
    "refuel_yes": (
        "Yes, please go ahead and add the {refuel_gb} GB.",
        "Yes, that price is fine. Please go ahead.",
        "Yes, please.",
    ),
    "keep_plan": ("No, I don't want to change my plan.",),
    "keep_plan_refuel": (
        "No, I don't want to change my plan. I'm willing to refuel {refuel_gb} GB if that helps.",
    ),
    "pay_yes": (
        "Yes, I accept. I'm willing to pay the bill.",
        "Yes, I'll pay it.",
        "Okay, I'll pay that bill.",
    ),
    "pay_unsure": ("Okay, if that's needed.",),
    "roaming_yes": ("Yes, please enable it.",),
    "yes": ("Yes, please go ahead.",),
}

LOST = (
    "I'm not sure what you would like me to do. Which check or setting on my phone should I look at?",
    "Okay. What exactly should I check or change on my phone?",
    "Sorry, I don't follow. Could you tell me one specific thing to do on my phone?",
)
MISHEARD = (
    "Sorry, could you say that in other words?",
    "I didn't quite get that. Could you explain it again?",
)
ONE_AT_A_TIME = "Sorry, I can't do several things at once. Could you give me one step at a time, please?"
TOO_MANY = "I stopped there because that was a lot of steps at once."
NOT_ABROAD = "I'm not abroad, so I left that as it is."
SWITCHED_BACK = "(It was already that way, I switched it back.)"
NO_REQUEST = "I don't see any payment request to pay."
WHICH_MODE = "Which network mode should I choose?"
FINE_TRANSFER = "Okay, please go ahead and transfer me then."
NOTHING_DONE = "Okay."

SOLVED: dict[str, str] = {
    "speed": "That's the excellent speed I wanted!",
    "mms": "So picture messages work again!",
    "service": "I have signal again!",
}
THANKS = ("Thank you so much!", "Great, thanks!", "Thanks for your help.")
GOODBYE = (
    "###STOP###",
    "Thank you, that's all I needed. ###STOP###",
    "No, that's everything. Thanks for your help! ###STOP###",
)
GIVE_UP = "It's still not solved, but I have to go now. ###STOP###"
OUT_OF_SCOPE = "I don't know how to continue from here. ###OUT-OF-SCOPE###"
TRANSFER = "###TRANSFER###"
FRUSTRATED = (
    "It's still not fixed, which is a bit frustrating.",
    "Hmm, that didn't solve it. This is getting a little frustrating.",
)
ANXIOUS = ("I hope I won't lose my photos?", "Did I do that right?", "Is that bad?")
NEXT = ("What should I do next?", "What's next?", "What now?")

SETTINGS: dict[str, str] = {
    "airplane": "Airplane Mode",
    "data_saver": "Data Saver",
    "roaming": "Data Roaming",
    "mobile_data": "Mobile Data",
    "wifi_calling": "Wi-Fi Calling",
    "wifi": "Wi-Fi",
}
BAR_LABEL = "The status bar now shows:"

_PREFIXES: dict[str, str] = {
    "check_status_bar": "My status bar shows: ",
    "check_network_status": "The network status says: ",
    "check_apn_settings": "It says: ",
    "check_app_status": "It says: ",
    "run_speed_test": "I ran the speed test. ",
    "can_send_mms": "I tried it: ",
}
_BAR = re.compile(r"\n?Status Bar: (.*)$", re.S)


def already(setting: str, state: str) -> str:
    """What the customer says when a setting needs no change."""
    return f"{SETTINGS[setting]} is already {state.upper()}."


def device_result(tool: str, content: str) -> str:
    """A device tool's result in the customer's words; no fact is added or left out.

    Args:
        tool: The tool that was run.
        content: Its result as tau2 gives it.
    """
    content, bar = content.strip(), ""
    match = _BAR.search(content)
    if match:
        bar, content = match.group(1).strip(), content[: match.start()].strip()
    if tool == "check_status_bar":
        content, bar = bar or content, ""
    elif tool == "reboot_device":
        content = "I restarted my phone."
    elif tool == "can_send_mms":
        content = content[:1].lower() + content[1:]
    lines = [
        line.strip() for line in content.split("\n") if line.strip() and "technical settings" not in line
    ]
    text = _PREFIXES.get(tool, "") + ("; " if tool.startswith("check_") else " ").join(lines)
    text = text if text.endswith((".", "!")) else text + "."
    return f"{text} {BAR_LABEL} {bar}." if bar else text
