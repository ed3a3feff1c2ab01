"""The desk in the browser: pick or write a query, watch agents side by side, or play."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import gradio as gr

from rlcas_utils.demo import desk_game as game
from rlcas_utils.demo.events import PAUSE_S, explained, told, watched
from rlcas_utils.demo.limits import MAX_QUERY, Refused
from rlcas_utils.demo.roster import Roster
from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.desk.prompts import MEANINGS
from rlcas_utils.desk.ticket import Ticket

OWN = "Write one"
KEPT_S = 3600  # a visitor's state is dropped after this many idle seconds


def _wrap(html: str) -> str:
    return f'<div class="rv">{html}</div>'


def _ticket(source: str, ticket_id: str, text: str, kind: str) -> Ticket:
    return game.own_ticket(text, kind) if source == OWN else game.benchmark_ticket(ticket_id)


def desk_tab(roster: Roster) -> None:
    """Draw the tab and connect its buttons."""
    choices = game.benchmark_choices()
    with gr.Row():
        with gr.Column(scale=3, min_width=280):
            source = gr.Radio(["Benchmark query", OWN], value="Benchmark query", label="Query")
            picked = gr.Dropdown(choices, value=choices[0][1], label="Benchmark query", filterable=True)
            text = gr.Textbox(label="Your message to the shop", lines=3, max_length=MAX_QUERY, visible=False)
            kind = gr.Dropdown(
                game.kinds(),
                value="",
                label="What it is about (decides what is right)",
                info="Records that exist: " + "; ".join(game.known_records()),
                visible=False,
            )
        with gr.Column(scale=2, min_width=280):
            first = [n for n in ("rules", "sac", "grpo", "oracle") if n in roster.ready]
            agents = gr.CheckboxGroup(roster.choices(), value=first, label="Agents")
    source.change(
        lambda chosen: [gr.update(visible=chosen != OWN)] + [gr.update(visible=chosen == OWN)] * 2,
        source,
        [picked, text, kind],
        show_progress="hidden",
        api_name=False,
    )
    asked = [source, picked, text, kind]
    with gr.Tab("Watch the agents"):
        _watching(roster, asked, agents)
    with gr.Tab("Play it yourself"):
        _playing(asked)


def _watching(roster: Roster, asked: list, agents: gr.CheckboxGroup) -> None:
    state = gr.State(None, time_to_live=KEPT_S)
    with gr.Row():
        play = gr.Button("Play to the end", variant="primary")
        step = gr.Button("One step")
        again = gr.Button("Clear")
        stop = gr.Button("Stop", variant="stop")
    status, shown = gr.HTML(told("Choose a query and agents, then play.")), gr.HTML()
    run = partial(_run, roster)
    inputs, outputs = [state, *asked, agents], [state, status, shown]
    play.click(partial(run, True), inputs, outputs, show_progress="hidden", api_name="desk_play")
    step.click(partial(run, False), inputs, outputs, show_progress="hidden", api_name="desk_step")
    again.click(_clear, state, outputs, show_progress="hidden", api_name=False)
    stop.click(_stop, state, status, show_progress="hidden", api_name="desk_stop", queue=False)


def _stop(state: game.DeskGame | None) -> str:
    if state is not None:
        state.turn.stop.set()
    return told("Stopping …" if state is not None else "Nothing is running.")


def _clear(state: game.DeskGame | None) -> tuple:
    _stop(state)
    return None, told("Choose a query and agents, then play."), ""


def _run(
    roster: Roster,
    to_end: bool,
    state: game.DeskGame | None,
    source: str,
    ticket_id: str,
    text: str,
    kind: str,
    names: list[str],
) -> Iterator[tuple]:
    """Play the asked ticket with the chosen agents; unchanged choices go on where they stopped."""
    try:
        wanted = (source, ticket_id, text, kind, tuple(names))
        if state is None or state.asked != wanted or state.done:
            ticket = _ticket(source, ticket_id, text, kind)
            state = game.DeskGame(ticket, roster.starters(names, own=source == OWN))
            state.asked = wanted
        with state.turn.taken() as stop:
            yield state, told("Playing …"), _wrap(state.html())
            while not state.done and not stop.is_set():
                yield from _round(state, stop)
                if not to_end:
                    break
                time.sleep(PAUSE_S)
            words = "Stopped." if stop.is_set() else "All have ended." if state.done else "One step each."
            if source == OWN and roster.recorded & set(names):
                words += " Recorded agents are left out: they have benchmark queries only."
            yield state, told(words), _wrap(state.html())
    except Refused as error:
        yield state, told(str(error), bad=True), gr.update()


def _round(state: game.DeskGame, stop) -> Iterator[tuple]:
    """One step of every agent, with the seconds of a slow one shown."""
    for seat in state.seats:
        track = seat.track
        if track.episode.done or stop.is_set():
            continue
        for seconds, problem in watched(partial(state.step, seat, stop)):
            track.note = f"thinking … {seconds} s" if problem is None else problem
            if problem is None:
                yield state, gr.update(), _wrap(state.html())
        if track.note:
            stop.set()
        yield state, gr.update(), _wrap(state.html())


def _playing(asked: list) -> None:
    state = gr.State(None, time_to_live=KEPT_S)
    start = gr.Button("Open the ticket", variant="primary")
    status = gr.HTML(told("You choose each action; the desk answers. At the end the oracle shows its way."))
    with gr.Row(elem_classes="tools"):
        buttons = [gr.Button(f"{i} {MEANINGS[i]}", size="sm") for i in range(len(ACTIONS))]
    shown = gr.HTML()
    outputs = [state, status, shown]
    start.click(_open, asked, outputs, show_progress="hidden", api_name="desk_open")
    for action, button in enumerate(buttons):
        named = f"desk_act_{action}"
        button.click(partial(_act, action), state, outputs, show_progress="hidden", api_name=named)


def _open(source: str, ticket_id: str, text: str, kind: str) -> tuple:
    try:
        state = game.OwnGame(_ticket(source, ticket_id, text, kind))
    except Refused as error:
        return None, told(str(error), bad=True), ""
    return state, told("Your turn: choose an action."), _wrap(state.html())


def _act(action: int, state: game.OwnGame | None) -> tuple:
    if state is None:
        return state, told("Open a ticket first.", bad=True), gr.update()
    problem = explained(lambda: _locked_act(state, action))
    words = problem or ("The ticket is over." if state.track.episode.done else "Your turn: choose an action.")
    return state, told(words, bad=bool(problem)), _wrap(state.html())


def _locked_act(state: game.OwnGame, action: int) -> None:
    with state.turn.taken():
        state.act(action)
