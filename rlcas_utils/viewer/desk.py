"""Desk episodes as HTML: each agent's steps, reasons, answers, the 14 signals as a bar, and the ending."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.desk.episode import Episode, StepResult
from rlcas_utils.figures import color, label
from rlcas_utils.viewer.page import esc

LOWEST, HIGHEST = -12.0, 18.0  # range of a step's bar; no single step can leave it
ENDINGS = {
    "resolved": "Right: the right ending, with the evidence that decides it.",
    "premature": "Wrong: the right ending, but chosen before the evidence was complete.",
    "wrong_ending": "Wrong ending.",
    "timeout": "Wrong: out of steps without an ending.",
    "invalid_output": "Wrong: three unusable outputs in a row.",
}


@dataclass
class Track:
    """One agent's way through a ticket.

    Attributes:
        agent: Name as in tables, such as "sac".
        episode: What it has done so far.
        thoughts: Its reason for each step, as far as it gives one.
        note: A line of status under the steps, such as what it waits for.
        title: Reader's name if it differs from the tables' one.
    """

    agent: str
    episode: Episode
    thoughts: list[str] = field(default_factory=list)
    note: str = ""
    title: str = ""


def query(text: str) -> str:
    """Return the customer's message."""
    return f'<div class="rv-query" role="note" aria-label="The customer wrote">{esc(text)}</div>'


def tracks(shown: Iterable[Track]) -> str:
    """Return agents side by side."""
    return f'<div class="rv-tracks">{"".join(track(one) for one in shown)}</div>'


def track(shown: Track) -> str:
    """Return the card of one agent."""
    episode, name = shown.episode, shown.title or label(shown.agent)
    total, items = 0.0, []
    for number, step in enumerate(episode.history, start=1):
        total += step.reward
        thought = shown.thoughts[number - 1] if number <= len(shown.thoughts) else ""
        items.append(_step(number, step, thought, total))
    note = f'<p class="soft">{esc(shown.note)}</p>' if shown.note else ""
    end = _end(episode) if episode.done else ""
    return (
        f'<article class="rv-track" style="--mark:{color(shown.agent)}" aria-label="{esc(name)}">'
        f'<div class="rv-head"><h4>{esc(name)}</h4>'
        f'<span class="rv-return">return {episode.total_reward:+.2f}</span></div>'
        f'<ol class="rv-steps">{"".join(items)}</ol>{note}{end}</article>'
    )


def _step(number: int, step: StepResult, thought: str, total: float) -> str:
    name = "unusable output" if step.action is None else f"{ACTIONS[step.action]} ({step.action})"
    why = f'<div class="rv-why">{esc(thought)}</div>' if thought else ""
    return (
        f'<li><div class="rv-act">{number}. {esc(name)}</div>{why}<div class="rv-got">{esc(step.text)}</div>'
        f"{signal_bar(step.signals)}"
        f'<div class="rv-signals"><span>step {step.reward:+.2f}</span>'
        f"<span>return {total:+.2f}</span></div></li>"
    )


def signal_bar(signals: dict[str, float]) -> str:
    """Return the signals of one step as a bar around zero, with the same numbers in words below.

    Args:
        signals: All 14 by name.
    """
    span = HIGHEST - LOWEST
    zero = -LOWEST / span * 100
    right = left = zero
    parts = []
    for name, value in signals.items():
        width = abs(value) / span * 100
        start, kind = (right, "plus") if value > 0 else (left - width, "minus")
        right, left = (right + width, left) if value > 0 else (right, left - width)
        if value:
            parts.append(
                f'<span class="{kind}" style="left:{start:.2f}%;width:{width:.2f}%" '
                f'title="{esc(name)} {value:+.2f}"></span>'
            )
    fired = "".join(f"<span>{esc(n.replace('_', ' '))} {v:+.2f}</span>" for n, v in signals.items() if v)
    return (
        f'<div class="rv-bar" aria-hidden="true">{"".join(parts)}<span class="zero" style="left:{zero:.2f}%">'
        f'</span></div><div class="rv-signals">{fired}</div>'
    )


def _end(episode: Episode) -> str:
    last, best = episode.history[-1], episode.ticket.optimal_names
    said = ENDINGS[last.outcome]
    if not last.resolved:
        said += f" The right way: {' → '.join(best)}."
    elif len(episode.history) > len(best):
        said += f" {len(episode.history)} steps, {len(best)} were enough."
    kind = "good" if last.resolved else "bad"
    return f'<p class="rv-end"><span class="{kind}">{esc(said)}</span></p>'


def oracle_line(own: Episode, oracle: Episode) -> str:
    """Compare a finished episode with the oracle's on the same ticket, in one sentence."""
    if not own.done:
        return ""
    gap = oracle.total_reward - own.total_reward
    same = "as good as the oracle" if gap < 0.005 else f"{gap:.2f} below the oracle"
    return (
        f"<p>You: {own.total_reward:+.2f} in {len(own.history)} steps, {same} "
        f"({oracle.total_reward:+.2f} in {len(oracle.history)} steps: {esc(path(oracle.history))}).</p>"
    )


def path(history: Sequence[StepResult]) -> str:
    """Return the actions of an episode in one line."""
    return " → ".join("unusable" if s.action is None else ACTIONS[s.action] for s in history)
