"""The desk as a visitor sees it: one ticket, several agents in their seats, and a seat for the visitor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rlcas_utils import desk
from rlcas_utils.demo.limits import MAX_QUERY, Refused, Turn, cleaned
from rlcas_utils.demo.models import Speaker
from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.desk.adviser import guess_intent
from rlcas_utils.desk.conversation import DeskConversation
from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.identifiers import extract
from rlcas_utils.desk.rules import INTENTS
from rlcas_utils.desk.ticket import Ticket, make_ticket
from rlcas_utils.desk.world import default_world
from rlcas_utils.parsing import Parsed, parse_action
from rlcas_utils.viewer import desk as view
from rlcas_utils.viewer.desk import Track

OWN = "own"  # id of the ticket made from a visitor's message
MAX_RAW = 400  # characters of an unusable answer that are shown


class Seat(Protocol):
    """An agent with its own copy of the ticket."""

    track: Track

    def step(self, stop: threading.Event) -> None:
        """Take one step."""


class CodedSeat:
    """An agent whose next action is computed from the episode."""

    def __init__(self, name: str, ticket: Ticket, move: Callable[[Episode], tuple[int, str]]) -> None:
        self.track, self.move = Track(name, Episode(ticket)), move

    def step(self, stop: threading.Event) -> None:
        """Take one step."""
        action, why = self.move(self.track.episode)
        self.track.episode.step(action)
        self.track.thoughts.append(why)


class ModelSeat:
    """A language model: it reads the chat and answers in JSON."""

    def __init__(self, name: str, ticket: Ticket, speaker: Speaker) -> None:
        self.conversation, self.speaker = DeskConversation(ticket), speaker
        self.track = Track(name, self.conversation.episode)
        self.chat = list(self.conversation.messages)

    def step(self, stop: threading.Event) -> None:
        """Take one step; an unusable answer is a step, and is shown as it came."""
        text, cut = self.speaker(self.chat, stop)
        heard = self.conversation.reply(text, truncated=cut)
        parsed = parse_action(text, len(ACTIONS), truncated=cut)
        self.track.thoughts.append(parsed.reasoning if isinstance(parsed, Parsed) else text[:MAX_RAW])
        said = {"role": "assistant", "content": text}
        self.chat += [said, {"role": "user", "content": heard}] if heard is not None else [said]


class RecordedSeat:
    """The recorded actions of an agent whose model is not here, played again on the same ticket."""

    def __init__(
        self, name: str, ticket: Ticket, rows: Mapping[str, Sequence[int | None]], title: str
    ) -> None:
        if ticket.ticket_id not in rows:
            raise Refused(
                f"{title} has recorded actions for benchmark queries only. Pick one of them, or leave it out."
            )
        self.track, self.actions = Track(name, Episode(ticket), title=title), list(rows[ticket.ticket_id])

    def step(self, stop: threading.Event) -> None:
        """Take the next recorded step."""
        episode, number = self.track.episode, len(self.track.episode.history)
        if number >= len(self.actions):
            self.track.note = "The record ends here; it was made with other tickets or another handbook."
            self.actions = self.actions[:number]
            raise Refused(f"{self.track.title}: {self.track.note}")
        action = self.actions[number]
        episode.invalid("recorded") if action is None or action < 0 else episode.step(action)


def benchmark_choices() -> list[tuple[str, str]]:
    """Return (text, ticket id) of the 100 benchmark queries."""
    return [
        (f"{t.ticket_id.removeprefix('bench-')} {t.category}: {t.query[:70]}", t.ticket_id)
        for t in desk.load_tickets("benchmark")
    ]


def kinds() -> list[tuple[str, str]]:
    """Return (text, intent) for what an own message may be about."""
    named = [
        (f"{intent.replace('_', ' ')} ({category})", intent) for intent, (category, _) in INTENTS.items()
    ]
    return [("guess it from the words", ""), *named]


def known_records(count: int = 4) -> list[str]:
    """Return some records of the shop that an own message can mention."""
    rows = default_world().rows(
        "SELECT o.order_id, c.email, p.model FROM orders o JOIN customers c USING (customer_id) "
        "JOIN products p USING (sku) ORDER BY o.order_id DESC LIMIT ?",
        count,
    )
    return [f"order {row['order_id']} of {row['email']} ({row['model']})" for row in rows]


def benchmark_ticket(ticket_id: str) -> Ticket:
    """Return a benchmark ticket by its id."""
    found = [t for t in desk.load_tickets("benchmark") if t.ticket_id == ticket_id]
    if not found:
        raise Refused("Pick one of the benchmark queries first.")
    return found[0]


def own_ticket(text: str | None, intent: str) -> Ticket:
    """Make a ticket from a visitor's message.

    Args:
        text: The message.
        intent: What it is about, which decides what counts as right; "" guesses from its words.

    Raises:
        Refused: No text, too much of it, or nothing that the handbook has a branch for.
    """
    query, world = cleaned(text, MAX_QUERY), default_world()
    if intent and intent not in INTENTS:
        raise Refused("There is no such kind of request. Pick one of the list.")
    kind = intent or guess_intent(query, extract(query, world.models))
    try:
        return make_ticket(world, OWN, kind, query)
    except LookupError as error:
        raise Refused(f"The handbook has no branch for this: {error}. Choose another kind.") from error


def judged(ticket: Ticket) -> str:
    """Say as what kind of request an own message is judged; nothing for a benchmark query."""
    if ticket.ticket_id != OWN:
        return ""
    return f'<p class="soft">Judged as: {ticket.intent.replace("_", " ")} ({ticket.category}).</p>'


class DeskGame:
    """One visitor's desk.

    Attributes:
        ticket: The ticket on the desk.
        seats: The agents that handle it.
        asked: What the visitor had chosen when it began; another choice begins another game.
    """

    def __init__(self, ticket: Ticket, openers: Sequence[Callable[[Ticket], Seat]]) -> None:
        if not openers:
            raise Refused("Nobody is chosen. Tick at least one agent.")
        self.ticket, self.turn, self.asked = ticket, Turn(), None
        self.seats = [start(ticket) for start in openers]

    @property
    def done(self) -> bool:
        """True when every agent has ended."""
        return all(seat.track.episode.done for seat in self.seats)

    def round(self, stop: threading.Event) -> None:
        """Let every agent that is not done take one step."""
        for seat in self.seats:
            if stop.is_set():
                return
            if not seat.track.episode.done:
                self.step(seat, stop)

    def step(self, seat: Seat, stop: threading.Event) -> None:
        """Let one agent take a step."""
        seat.track.note = ""
        seat.step(stop)

    def html(self) -> str:
        """Return the ticket and all tracks."""
        return view.query(self.ticket.query) + judged(self.ticket) + view.tracks(s.track for s in self.seats)


class OwnGame:
    """A visitor who plays a ticket, and the oracle on the same ticket for comparison afterwards."""

    def __init__(self, ticket: Ticket) -> None:
        self.ticket, self.turn = ticket, Turn()
        self.track = Track("published", Episode(ticket), title="You")

    def act(self, action: int) -> None:
        """Take an action.

        Raises:
            Refused: The ticket is over.
        """
        if self.track.episode.done:
            raise Refused("This ticket is over. Start another one.")
        self.track.episode.step(action)

    def html(self) -> str:
        """Return the ticket and the visitor's track; at the end the oracle's beside it."""
        own = self.track.episode
        if not own.done:
            return view.query(self.ticket.query) + judged(self.ticket) + view.tracks([self.track])
        oracle = Track("oracle", desk.play(desk.OracleAgent(), self.ticket))
        both = view.tracks([self.track, oracle])
        return view.query(self.ticket.query) + view.oracle_line(own, oracle.episode) + both
