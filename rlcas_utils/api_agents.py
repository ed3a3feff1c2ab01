"""Hosted models at the desk, through LiteLLM: the GPT-4o-mini and Gemini-2.5-flash rows of the benchmark.

They get the prompt and the parser of the local models and no example (zero-shot). A reply that the token cap
cut gets one second try with a larger cap. What the provider failed at is no episode of the agent: it is
listed apart, and the next run plays it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlcas_utils.api_calls import ApiClient, missing_key, server_of
from rlcas_utils.api_journal import Journal
from rlcas_utils.api_replies import Reply
from rlcas_utils.api_usage import ApiError, Budget, Usage, total_usage
from rlcas_utils.desk.actions import ACTIONS, CONSULT
from rlcas_utils.desk.adviser import Advice, Case
from rlcas_utils.desk.conversation import DeskConversation
from rlcas_utils.desk.prompts import opening_messages, render_answer
from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.parsing import Parsed, parse_action

OWN_SERVER = "own_server"


class Conversation(Protocol):
    """The part of a conversation, at the desk or in telecom, that is needed here."""

    messages: list[dict]

    def reply(self, text: str, *, truncated: bool = False) -> str | None:
        """Take the model's turn and return the next user text, or None at the end."""


@dataclass(frozen=True)
class ApiModel:
    """Which hosted model plays, and with which limits.

    Attributes:
        agent: name in tables, such as "gpt_4o_mini"; "own_server" is any model at `base_url`.
        model: LiteLLM's exact model name.
        max_tokens: cap on generated tokens, thinking included.
        retry_max_tokens: cap of the one second try after a truncated reply.
        thinking: LiteLLM's `reasoning_effort`; empty for the provider's default.
        temperature: of sampling.
        base_url: address of an OpenAI-compatible server; empty for the provider's own.
    """

    agent: str
    model: str
    max_tokens: int
    retry_max_tokens: int
    thinking: str = ""
    temperature: float = 0.0
    base_url: str = ""

    def __post_init__(self) -> None:
        """Refuse a second try that could not do better than the first."""
        if self.retry_max_tokens <= self.max_tokens:
            raise ValueError(
                f"retry_max_tokens = {self.retry_max_tokens} is not above max_tokens = {self.max_tokens}; a "
                "reply cut at the first cap would be cut again. Set a larger one."
            )

    def needs(self) -> str:
        """Return what is missing to ask it, such as "needs OPENAI_API_KEY", else an empty text."""
        if self.agent == OWN_SERVER and not self.base_url:
            return "needs API_URL"
        return missing_key(self.model, self.base_url)

    def settings(self) -> dict[str, Any]:
        """Return what a row must say about the model: two runs with other values are two agents."""
        return {
            "model": self.model,
            "server": server_of(self.model, self.base_url) or "provider",
            "max_tokens": self.max_tokens,
            "retry_max_tokens": self.retry_max_tokens,
            "thinking": self.thinking or "provider default",
            "temperature": self.temperature,
        }

    def text(self, answered_as: Iterable[str] = ()) -> str:
        """Return the settings in words, with the model names under which the provider answered."""
        settings = self.settings()
        where = "" if settings["server"] == "provider" else f" at {settings['server']}"
        names = ", ".join(answered_as) or self.model
        caps = f"{self.max_tokens} then {self.retry_max_tokens} tokens"
        return f"{names}{where}, cap {caps}, thinking: {settings['thinking']}"


class ApiPlayer:
    """Plays conversations with one hosted model."""

    def __init__(self, model: ApiModel, client: ApiClient) -> None:
        """Keep the model's settings and the client that asks it."""
        self.model, self.client = model, client

    def play(self, conversation: Conversation, usage: Usage) -> None:
        """Play one conversation to its end.

        Args:
            conversation: A fresh one.
            usage: What is used is added here, also when the provider fails midway.

        Raises:
            ApiError: The provider refuses or stays away, or the spend cap is reached.
        """
        messages = [dict(message) for message in conversation.messages]
        while True:
            reply = self.ask(messages, usage)
            user = conversation.reply(reply.text, truncated=reply.label == "api_truncated")
            if user is None:
                return
            messages += [
                {"role": "assistant", "content": reply.text or "(no reply)"},
                {"role": "user", "content": user},
            ]

    def ask(self, messages: Sequence[Mapping[str, Any]], usage: Usage) -> Reply:
        """Ask for one turn; a reply cut at the token cap is asked for once more with the larger cap."""
        options: dict[str, Any] = {"temperature": self.model.temperature}
        if self.model.thinking:
            options["reasoning_effort"] = self.model.thinking
        reply = self.client.ask(messages, usage, max_tokens=self.model.max_tokens, **options)
        if reply.label == "api_truncated":
            usage.retries += 1
            reply = self.client.ask(messages, usage, max_tokens=self.model.retry_max_tokens, **options)
        usage.labels[reply.label] += 1
        return reply


@dataclass
class Played:
    """What became of the tickets.

    Attributes:
        rows: finished episodes, in the order of the tickets.
        usage: everything used, episodes that were lost included.
        note: one line for the result table.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    note: str = ""


def play_tickets(
    model: ApiModel,
    tickets: Sequence[Ticket],
    journal: Journal,
    max_usd: float,
    *,
    seed: int = 0,
    report: Callable[[str], None] = print,
    **client: Any,
) -> Played:
    """Play desk tickets, those of an interrupted run left out, until done or until something forbids it.

    Each row is on disk before the next ticket begins.

    Args:
        model: Who plays.
        tickets: What to play.
        journal: Where episodes are kept.
        max_usd: Spend cap in USD, earlier runs included.
        seed: Written into the rows.
        report: Takes one sentence when the run stops early.
        client: Further arguments of `ApiClient`.
    """
    budget = Budget(max_usd, journal.path.with_suffix(".spent.json"))
    player = ApiPlayer(model, ApiClient(model.model, budget, model.base_url, **client))
    done = {row["ticket_id"] for row in journal.rows}
    stopped = ""
    for ticket in [t for t in tickets if t.ticket_id not in done]:
        conversation, usage = DeskConversation(ticket), Usage()
        try:
            player.play(conversation, usage)
        except ApiError as error:
            stopped = str(error)
            lost = {"agent": model.agent, "ticket_id": ticket.ticket_id, "lost": stopped}
            journal.append(lost | {"api": model.settings() | usage.block()})
            break
        journal.append(conversation.row(model.agent, seed) | {"api": model.settings() | usage.block()})
    order = {ticket.ticket_id: place for place, ticket in enumerate(tickets)}
    rows = sorted((r for r in journal.rows if r["ticket_id"] in order), key=lambda r: order[r["ticket_id"]])
    if stopped:
        report(f"{model.agent} stopped, {len(rows)} of {len(tickets)} episodes are kept: {stopped}")
    budget.usage.labels = total_usage(rows).labels  # endings beside a score are those of its own episodes
    note = f"{model.text(budget.usage.models)}: {budget.usage.text()}"
    if stopped:
        note = f"{len(rows)} of {len(tickets)} tickets evaluated: no headline. {note}. Stopped: {stopped}"
    return Played(rows, budget.usage, note)


def play_side_by_side(player: ApiPlayer, conversations: Sequence[Any], threads: int) -> None:
    """Play telecom conversations in threads, each to its end.

    Args:
        player: The hosted agent.
        conversations: `telecom.conversation.TelecomConversation`; what the agent uses is added to the
            `agent_usage` of each, and one that the provider fails in is lost, not failed.
        threads: Conversations at a time.
    """

    def play(conversation: Any) -> None:
        try:
            player.play(conversation, conversation.agent_usage)
        except ApiError as error:
            conversation.lose(f"agent: {error}")

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(play, conversations))


class ApiAdviser:
    """The adviser behind `consult_llm` as a hosted model: prompt, parser and limits of the API agent.

    Attributes:
        usage: what all consultations used.
    """

    def __init__(self, player: ApiPlayer) -> None:
        """Keep the player that is asked for its next turn."""
        self.player, self.usage = player, Usage()

    def __call__(self, case: Case) -> Advice:
        """Ask the model what it would do now.

        Raises:
            ApiError: The provider failed; the built-in adviser does not step in for it.
        """
        messages = opening_messages(case.query)
        for action, text in case.history:
            said = render_answer("", action) if action is not None else "(no usable answer)"
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": text}]
        reply = self.player.ask(messages, self.usage)
        if reply.label not in ("answered", "api_truncated"):
            return Advice(None, reply.label)
        parsed = parse_action(reply.text, len(ACTIONS), truncated=reply.label == "api_truncated")
        if not isinstance(parsed, Parsed):
            return Advice(None, parsed.reason)
        return (
            Advice(None, "it wants to ask itself")
            if parsed.action_id == CONSULT
            else Advice(parsed.action_id)
        )
