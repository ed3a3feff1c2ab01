"""What the scripted expert says at each step: a few variants, the first one being the default."""

import random

TRANSFER_NOTICE = "YOU ARE BEING TRANSFERRED TO A HUMAN AGENT. PLEASE HOLD ON."

MESSAGES: dict[str, tuple[str, ...]] = {
    "ask phone": (
        "I'm sorry to hear that, I'll help you fix it. What is the phone number of the affected line?",
        "Sorry about the trouble. Please tell me your phone number so that I can find your account.",
        "I can help with that. Could you give me the phone number of your line, please?",
    ),
    "read bar": (
        "Please check your status bar and tell me what it shows.",
        "What does the status bar of your phone show right now?",
        "Could you look at the status bar and tell me which icons you see?",
    ),
    "airplane off": (
        "Airplane Mode blocks all connections. Please turn Airplane Mode off.",
        "Please toggle Airplane Mode OFF.",
        "I see that Airplane Mode is active. Could you switch it off, please?",
    ),
    "read sim": (
        "Please check the status of your SIM card.",
        "Next, could you check your SIM card status?",
        "What does your SIM card status say?",
    ),
    "reseat sim": (
        "The SIM card isn't detected. Please re-seat the SIM card.",
        "Your phone doesn't see the SIM card. Please take the SIM card out and put it back in.",
        "Please reseat your SIM card.",
    ),
    "recheck sim": (
        "There is still no signal. Please check the status of your SIM card again.",
        "Could you check the SIM card status once more?",
        "Please look at your SIM status again and tell me the result.",
    ),
    "read apn": (
        "Please check your APN settings and tell me what they show.",
        "Next, please look at the APN settings of your phone. What do they show?",
        "Could you check the APN settings?",
    ),
    "reset apn": (
        "The APN settings are not right. Please reset the APN settings.",
        "Please reset your APN settings to default.",
        "Could you reset the APN settings, please?",
    ),
    "reboot": (
        "Now please restart your phone.",
        "Please reboot your device.",
        "Could you restart the phone, please?",
    ),
    "pay bill": (
        "Your line is suspended because bill {bill} is overdue. I have sent you a payment request. Please "
        "make the payment.",
        "The cause is an overdue bill, {bill}. A payment request is on its way to you. If you agree, "
        "please make the payment.",
    ),
    "pay bill again": (
        "The bill isn't paid yet. Please make the payment so that I can resume your line.",
        "I can resume your line once the bill is paid. Please make the payment.",
    ),
    "reboot for line": (
        "Thank you, the bill is paid and your line is active again. Please restart your phone.",
        "I have resumed your line. Please reboot your device now.",
    ),
    "read network": (
        "Please check your network status and tell me everything it shows.",
        "Could you check the network status of your phone and tell me what it says?",
        "Next, please check your network connection status.",
    ),
    "data on": (
        "Mobile data is switched off. Please turn Mobile Data on.",
        "Your mobile data is disabled. Please turn it on.",
        "Could you switch mobile data on, please?",
    ),
    "ask abroad": (
        "Are you currently travelling outside your home country?",
        "Are you abroad at the moment, or at home?",
        "May I ask whether you are travelling abroad right now?",
    ),
    "roaming on": (
        "While you are abroad, Data Roaming must be on. Please turn Data Roaming on.",
        "Please toggle Data Roaming ON in your phone settings.",
    ),
    "offer refuel": (
        "Your data allowance is used up. I can refuel 2 GB for ${price:.2f}, or you could change your "
        "plan. Would you like me to refuel 2 GB?",
        "You have used all your data. Would you like to refuel 2 GB for ${price:.2f}, or change your plan?",
    ),
    "test speed": (
        "Please run a speed test and tell me the result.",
        "Could you run a speed test on your phone?",
        "Please run a speed test now. What does it say?",
    ),
    "saver off": (
        "Data Saver limits your speed. Please turn Data Saver off.",
        "Please turn off Data Saver mode.",
    ),
    "mode up": (
        "Your phone prefers an old network type. Please set your network mode preference to 4g_5g_preferred.",
        "Please change your preferred network mode to 4G/5G.",
    ),
    "vpn off": (
        "The VPN slows your connection down. Please disconnect the VPN.",
        "Please turn off the VPN.",
    ),
    "test mms": (
        "Please try to send an MMS and tell me whether it works.",
        "Can you try sending a picture message (MMS) now?",
        "Please test whether you can send an MMS.",
    ),
    "read wifi calling": (
        "Please check whether Wi-Fi Calling is turned on.",
        "Could you check your Wi-Fi Calling status?",
    ),
    "wifi calling off": (
        "Wi-Fi Calling can block MMS. Please turn Wi-Fi Calling off.",
        "Please turn off Wi-Fi Calling.",
    ),
    "read permissions": (
        "Please check the permissions of your messaging app.",
        "Could you check which app permissions the messaging app has?",
    ),
    "grant storage": (
        "Please grant the storage permission to your messaging app.",
        "The messaging app needs the storage permission. Please grant it.",
    ),
    "grant sms": (
        "Please grant the SMS permission to your messaging app.",
        "The messaging app needs the SMS permission. Please grant it.",
    ),
    "transfer notice": (TRANSFER_NOTICE,),
}
"""Step -> variants. Each names at most one action on the phone."""


def say(step: str, rng: random.Random, variety: int, **facts: object) -> str:
    """One wording of a step.

    Args:
        step: Key of `MESSAGES`.
        rng: Picks among the variants; not touched if there is one only.
        variety: Number of variants to choose from.
        facts: Values for the placeholders.
    """
    variants = MESSAGES[step][:variety]
    text = variants[0] if len(variants) == 1 else rng.choice(variants)
    return text.format(**facts)
