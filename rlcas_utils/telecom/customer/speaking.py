"""What the customer says of their own accord: the opening, the report after acting, and its mood."""

from rlcas_utils.telecom.customer import phrases
from rlcas_utils.telecom.customer.memory import Memory


def opening(state: Memory) -> str:
    """Greeting and reason for the call; never a name or number before the agent asks."""
    words = [state.rng.choice(phrases.GREETINGS), state.rng.choice(phrases.OPENINGS[state.scenario.goal])]
    return " ".join(words + ([phrases.UNEASY] if state.scenario.persona == "hard" else []))


def summary(state: Memory, stop_style: str, small_talk: float) -> str:
    """Everything done and seen for the agent's last message, answers to its questions, and the mood.

    Args:
        state: The customer's memory; marks the goal as announced.
        stop_style: "polite" or "direct", see `ScriptedCustomer`.
        small_talk: Probability of an idle remark.
    """
    parts = [*state.report, *state.remarks, *state.replies]
    state.replies = []
    if state.phone.goal_met:
        state.announced = True
        ending = "Thank you! ###STOP###" if stop_style == "direct" else state.rng.choice(phrases.THANKS)
        return " ".join([*parts, phrases.SOLVED[state.scenario.goal], ending])
    return " ".join(parts + _mood(state, small_talk)) or phrases.NOTHING_DONE


def _mood(state: Memory, small_talk: float) -> list[str]:
    """Mild frustration once, after the first change that did not help; small talk otherwise."""
    if state.changes and not state.frustrated:
        state.frustrated = True
        return [state.rng.choice(phrases.FRUSTRATED)] if state.phone.goal_met is False else []
    if state.rng.random() < small_talk:
        return [state.rng.choice(phrases.ANXIOUS if state.scenario.persona == "hard" else phrases.NEXT)]
    return []
