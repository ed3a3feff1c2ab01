"""What the customer answers to an agent's questions: identity, location, charges, offers."""

from rlcas_utils.telecom.customer import phrases
from rlcas_utils.telecom.customer.scenario import Scenario


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
        cues: From `cues.listen`.
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
