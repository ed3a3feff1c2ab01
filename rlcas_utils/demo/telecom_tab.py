"""The telecom hotline in the browser: watch a call turn by turn, or be the customer, phone in hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import gradio as gr

from rlcas_utils.demo import telecom_game as game
from rlcas_utils.demo.events import PAUSE_S, explained, told, watched
from rlcas_utils.demo.limits import MAX_MESSAGE, Refused
from rlcas_utils.demo.roster import Roster

WATCH, BE = "Scripted customer", "I am the customer"
KEPT_S = 3600
Game = game.TelecomGame


def telecom_tab(roster: Roster) -> None:
    """Draw the tab and connect its buttons."""
    tasks = game.task_choices()
    state = gr.State(None, time_to_live=KEPT_S)
    with gr.Row():
        mode = gr.Radio([WATCH, BE], value=WATCH, label="Who calls", min_width=220)
        task = gr.Dropdown(tasks, value=tasks[0][1], label="Task", filterable=True, min_width=240)
        agent = gr.Dropdown(roster.choices(), value="expert", label="Agent", min_width=200)
    with gr.Row():
        start = gr.Button("Start the call", variant="primary")
        one = gr.Button("Next turn")
        rest = gr.Button("Play to the end")
        stop = gr.Button("Stop", variant="stop")
    status = gr.HTML(told("Choose who calls, a task and an agent."))
    role, verdict = gr.HTML(), gr.HTML()
    with gr.Row():
        with gr.Column(scale=3, min_width=280):
            chat = gr.HTML()
            with gr.Group(visible=False) as speaking:
                words = gr.Textbox(
                    label="Your words (Enter sends; what the phone shows is written here for you)",
                    lines=1,  # with more, Enter would break the line instead of sending
                    max_lines=6,
                    max_length=MAX_MESSAGE,
                )
                with gr.Row():
                    send = gr.Button("Send", variant="primary")
                    hang = gr.Button("Hang up")
                    accept = gr.Button("Accept the transfer")
        with gr.Column(scale=2, min_width=280):
            phone = gr.HTML()
            with gr.Group(visible=False) as holding:
                tools = _phone_buttons()
    outputs = [state, status, chat, role, phone, verdict, words, speaking, holding]
    quiet = {"outputs": outputs, "show_progress": "hidden"}
    start.click(partial(_start, roster), [state, mode, task, agent], api_name="telecom_start", **quiet)
    one.click(partial(_play, False), state, api_name="telecom_turn", **quiet)
    rest.click(partial(_play, True), state, api_name="telecom_play", **quiet)
    stop.click(_stop, state, status, show_progress="hidden", queue=False, api_name=False)
    send.click(_say, [state, words], api_name="telecom_say", **quiet)
    words.submit(_say, [state, words], api_name=False, **quiet)
    hang.click(partial(_end, "hang_up"), state, api_name="telecom_hang_up", **quiet)
    accept.click(partial(_end, "accept_transfer"), state, api_name=False, **quiet)
    buttons, settings = tools
    for tool, button in buttons.items():
        button.click(partial(_use, tool), [state, words, *settings], api_name=f"phone_{tool}", **quiet)


def _phone_buttons() -> tuple[dict[str, gr.Button], list]:
    """Draw the 30 tools and the three lists that some of them need."""
    with gr.Row():
        settings = [
            gr.Dropdown(game.APPS, value="messaging", label="App", min_width=110),
            gr.Dropdown(game.PERMISSIONS, value="sms", label="Permission", min_width=110),
            gr.Dropdown(game.MODES, value=game.MODES[0], label="Network mode", min_width=200),
        ]
    buttons = {}
    for title, names in (("Look", game.LOOKING), ("Change", game.CHANGING)):
        with gr.Accordion(title, open=True), gr.Row(elem_classes="tools"):
            for name in names:
                buttons[name] = gr.Button(name.replace("_", " "), size="sm")
    return buttons, settings


def _view(state: Game | None, words: str, bad: bool = False) -> tuple:
    """Return everything that can have changed, in the order of the tab's outputs."""
    if state is None:
        return (
            None,
            told(words, bad),
            "",
            "",
            "",
            "",
            "",
            gr.update(visible=False),
            gr.update(visible=False),
        )
    shows = gr.update(visible=state.human)
    return (
        state,
        told(words, bad),
        _wrap(state.chat_html()),
        _wrap(state.role_html()),
        _wrap(state.phone_html()),
        _wrap(state.end_html()),
        state.draft,
        shows,
        shows,
    )


def _wrap(html: str) -> str:
    return f'<div class="rv">{html}</div>' if html else ""


def _next_words(state: Game) -> str:
    if state.done:
        return "The call is over; tau2's checks stand below."
    if state.my_turn:
        return "Your turn: use the phone, then say what it shows."
    return "The agent's turn."


def _start(roster: Roster, old: Game | None, mode: str, task_id: str, agent: str) -> tuple:
    if old is not None:
        old.turn.stop.set()
    if agent not in roster.ready:
        return _view(None, "Pick an agent first.", bad=True)
    try:
        state = Game(task_id, roster.ready[agent], human=mode == BE)
    except Refused as error:
        return _view(None, str(error), bad=True)
    return _view(state, _next_words(state))


def _stop(state: Game | None) -> str:
    if state is not None:
        state.turn.stop.set()
    return told("Stopping …" if state is not None else "Nothing is running.")


def _play(to_end: bool, state: Game | None) -> Iterator[tuple]:
    if state is None:
        yield _view(None, "Start a call first.", bad=True)
        return
    try:
        with state.turn.taken() as stop:
            yield from _agent_turns(state, stop, to_end)
    except Refused as error:
        yield _view(state, str(error), bad=True)


def _agent_turns(state: Game, stop, to_end: bool) -> Iterator[tuple]:
    """Let the agent act: once, or until the call is over or it is the visitor's turn."""
    problem = _next_words(state) if state.done or state.my_turn else ""
    while not (problem or state.done or state.my_turn or stop.is_set()):
        for seconds, problem in watched(partial(state.agent_turn, stop)):
            if problem is None:
                yield _view(state, f"The agent is thinking … {seconds} s. Stop works at any time.")
        if not problem:
            yield _view(state, _next_words(state))
        if not to_end:
            break
        time.sleep(PAUSE_S)
    stopped = stop.is_set() and not state.done
    yield _view(state, problem or ("Stopped." if stopped else _next_words(state)), bad=bool(problem))


def _say(state: Game | None, words: str) -> Iterator[tuple]:
    """Say something as the customer, then let the agent act until it is the customer's turn again."""
    if state is None:
        yield _view(None, "Start a call first.", bad=True)
        return
    try:
        with state.turn.taken() as stop:
            state.say(words)
            yield _view(state, "The agent's turn.")
            yield from _agent_turns(state, stop, to_end=True)
    except Refused as error:
        yield _kept(_view(state, str(error), bad=True), words)


def _end(how: str, state: Game | None) -> tuple:
    if state is None:
        return _view(None, "Start a call first.", bad=True)
    problem = explained(lambda: _held(state, getattr(state, how)))
    return _view(state, problem or _next_words(state), bad=bool(problem))


def _use(tool: str, state: Game | None, words: str, app: str, permission: str, mode: str) -> tuple:
    """Use a phone tool; what it shows is added to the words that the visitor has written so far."""
    if state is None:
        return _view(None, "Start a call first.", bad=True)

    def work() -> None:
        arguments = game.tool_arguments(tool, app, permission, mode)
        state.draft = (words or "")[:MAX_MESSAGE]
        state.use(tool, arguments)

    problem = explained(lambda: _held(state, work))
    return _view(state, problem or f"{tool.replace('_', ' ')}: done.", bad=bool(problem))


def _held(state: Game, work) -> None:
    with state.turn.taken():
        work()


def _kept(view: tuple, words: str) -> tuple:
    """Leave the visitor's words in the box when they could not be sent."""
    return (*view[:6], words, *view[7:])
