"""Pages of whole episodes beside a run's report: desk tickets side by side, telecom calls turn by turn.

A row keeps what an agent did, not what came back. The desk is deterministic, so its episodes are played again
from their recorded actions, and shown only if the return comes out as recorded. Calls are shown for the
scripted expert, which can be played again; rows of trained telecom models keep no words, so they are counted.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlcas_utils import desk
from rlcas_utils.benchmark import DESK_AGENTS, TELECOM_AGENTS, read_rows
from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.figures import label
from rlcas_utils.records import RecordError, read_record, write_atomic
from rlcas_utils.stages import STAGES, TELECOM
from rlcas_utils.viewer import desk as desk_view
from rlcas_utils.viewer.page import esc, page

Rows = dict[str, list[dict[str, Any]]]


class CannotReplay(ValueError):
    """A row that does not come out as recorded; the text says why that can be."""


def write_episodes(run_dir: Path) -> list[Path]:
    """Write `episodes/*.html` into a run folder, in place of those of an earlier call.

    Args:
        run_dir: Such as `runs/cpu`; stages without a record are left out.

    Returns:
        The pages; none if no finished stage kept rows.
    """
    folder, finished = run_dir / "episodes", _finished(run_dir)
    shutil.rmtree(folder, ignore_errors=True)
    pages = desk_pages(_rows(run_dir, finished, "desk", DESK_AGENTS))
    if TELECOM in finished:
        calls = _rows(run_dir, finished, "telecom", TELECOM_AGENTS)
        pages |= telecom_pages(calls, finished[TELECOM]["parameters"]["SEED"])
    return [write_atomic(folder / f"{name}.html", content) for name, content in pages.items()]


def _finished(run_dir: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for stem in STAGES:
        try:
            found[stem] = read_record(run_dir / "records" / f"{stem}.json")
        except RecordError:
            continue
    return found


def _rows(run_dir: Path, stems: Iterable[str], kind: str, agents: Iterable[str]) -> Rows:
    """Rows by agent, in the order of the tables."""
    paths = {a: p for s in stems for a in agents if (p := run_dir / s / f"{kind}_{a}.jsonl").is_file()}
    return {agent: read_rows(paths[agent], kind) for agent in agents if agent in paths}


def replay(row: Mapping[str, Any], ticket: Ticket) -> Episode:
    """Play a desk episode again from its row.

    Args:
        row: From `desk_<agent>.jsonl`.
        ticket: The ticket that it names.

    Raises:
        CannotReplay: The return differs from the recorded one, or an action comes after the end.
    """
    episode = Episode(ticket, max_steps=max(10, row["steps"]))
    for action in row["actions"]:
        if episode.done:
            break
        episode.invalid("the record keeps no text") if action is None or action < 0 else episode.step(action)
    if len(episode.history) != row["steps"] or abs(episode.total_reward - row["return"]) > 1e-4:
        raise CannotReplay(
            f"{row['agent']} on {row['ticket_id']} has return {row['return']} on record and "
            f"{episode.total_reward:.4f} now; the desk has changed since, or another adviser helped. "
            "Run the notebook again."
        )
    return episode


def desk_pages(rows: Rows) -> dict[str, str]:
    """Return one page per category, each ticket with all agents side by side.

    Args:
        rows: Desk rows by agent.
    """
    tickets = {ticket.ticket_id: ticket for ticket in desk.load_tickets("benchmark")} if rows else {}
    by_ticket: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for agent_rows in rows.values():
        first_seed = min(row["seed"] for row in agent_rows)
        for row in agent_rows:
            if row["seed"] == first_seed:
                by_ticket[row["ticket_id"]].append(row)
    parts: dict[str, list[str]] = defaultdict(list)
    for ticket_id, ticket in tickets.items():
        if by_ticket[ticket_id]:
            parts[ticket.category].append(_ticket(ticket, by_ticket[ticket_id]))
    said = "<p class='soft'>Played again from recorded actions, first seed; no reasons on record.</p>"
    return {
        f"desk_{category}": page(f"Desk episodes: {category}", said + "\n".join(made))
        for category, made in parts.items()
    }


def _ticket(ticket: Ticket, rows: list[dict[str, Any]]) -> str:
    tracks, odd = [], ""
    for row in rows:
        try:
            tracks.append(desk_view.Track(row["agent"], replay(row, ticket)))
        except CannotReplay as error:
            odd += f'<p class="bad">{esc(error)}</p>'
    right = sum(row["resolved"] for row in rows)
    head = f"<strong>{esc(ticket.ticket_id)}</strong> {esc(ticket.query[:90])} … {right} of {len(rows)} right"
    shown = desk_view.query(ticket.query) + desk_view.tracks(tracks)
    return f"<details><summary>{head}</summary>{odd}{shown}</details>"


def telecom_pages(rows: Rows, seed: int) -> dict[str, str]:
    """Return the page of the scripted expert's calls, with what became of the same task with other agents.

    Args:
        rows: Telecom rows by agent.
        seed: Seed of the run, which the expert was made with.
    """
    if "expert" not in rows:
        return {}
    rewards: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for agent, agent_rows in rows.items():
        for row in agent_rows:
            rewards[row["task_id"]][agent].append(row["reward"])
    calls = [_call(row, seed, rewards[row["task_id"]]) for row in rows["expert"] if row["trial"] == 0]
    said = (
        "<p class='soft'>The scripted expert's first attempt at each test task, played again. Rows of other "
        "agents keep no words; how often they solved the task stands beside it.</p>"
    )
    return {"telecom_expert": page("Telecom calls: scripted expert", said + "\n".join(calls))}


def _call(row: Mapping[str, Any], seed: int, rewards: Mapping[str, list[float]]) -> str:
    from rlcas_utils.telecom import agents, evaluation, tau2  # seconds, and only needed here
    from rlcas_utils.telecom.conversation import TelecomConversation
    from rlcas_utils.telecom.customers import scripted_customer
    from rlcas_utils.telecom.verdict import verdict
    from rlcas_utils.viewer import telecom as view

    task = tau2.task_by_id(row["task_id"])
    conversation = TelecomConversation(task, scripted_customer(task, row["seed"]), row["policy_arm"])
    evaluation.play_agent(agents.expert, [conversation], seed)
    end = verdict(conversation.session)
    if (end.reward, conversation.session.turns) != (row["reward"], row["turns"]):
        shown = '<p class="bad">This call does not come out as recorded; run notebook 06 again.</p>'
    else:
        thoughts = [view.thought_of(text) for text, _ in conversation.turns]
        shown = view.verdict(end) + view.chat(conversation.session.messages, thoughts)
    others = "; ".join(f"{label(a)} {sum(r):g}/{len(r)}" for a, r in rewards.items())
    return f"<details><summary>{esc(row['task_id'])}<br>{esc(others)}</summary>{shown}</details>"
