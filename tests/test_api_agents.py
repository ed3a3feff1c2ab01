"""Hosted models at the desk, over real HTTP: rows, labels, journal, caps, the adviser, and a served model."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from functools import partial
from pathlib import Path

import pytest
from model_server import failed, said, serving

from rlcas_utils import api_agents as api
from rlcas_utils import api_calls, benchmark, desk
from rlcas_utils.api_journal import Journal
from rlcas_utils.api_usage import ApiError, Usage
from rlcas_utils.desk.adviser import Advice, Case, advise
from rlcas_utils.desk.conversation import DeskConversation
from rlcas_utils.desk.env import DeskEnv
from rlcas_utils.desk.prompts import SYSTEM_PROMPT
from rlcas_utils.language.tiny import build_tiny
from rlcas_utils.parsing import REASONS

CANARY = "CANARY-7f3a9d21"
TICKETS = desk.load_tickets("validation")[:4]
FIRST_LOOK = json.dumps({"reasoning": "look up the order", "action_id": 0})


def model(server, **changes):
    settings = {"agent": "own_server", "model": "tiny", "max_tokens": 50, "retry_max_tokens": 400}
    return api.ApiModel(**(settings | {"base_url": server.url} | changes))


def play(server, folder, tickets=TICKETS, max_usd=1.0, **options):
    said_aloud = []
    journal = Journal(folder / "own_server.jsonl")
    options = {"patience_s": 0.01, "report": said_aloud.append} | options
    return api.play_tickets(model(server), tickets, journal, max_usd, **options), said_aloud


class OracleServer:
    """Plays each ticket as the oracle would, from the chat alone: it counts the turns that were taken."""

    def __init__(self):
        self.plans = {ticket.query: ticket.optimal_actions for ticket in desk.load_tickets("validation")}

    def __call__(self, request):
        plan = self.plans[request["messages"][1]["content"]]
        turn = sum(message["role"] == "assistant" for message in request["messages"])
        return said(json.dumps({"reasoning": "known", "action_id": plan[turn]}))


def test_rows_come_out_of_the_http_path_with_all_that_was_used(tmp_path):
    with serving(OracleServer()) as server:
        played, _ = play(server, tmp_path)
    assert benchmark.check_rows(played.rows, "rows", "desk") == played.rows
    assert [row["ticket_id"] for row in played.rows] == [ticket.ticket_id for ticket in TICKETS]
    assert all(row["resolved"] for row in played.rows)
    for row in played.rows:
        block = row["api"]
        assert block["labels"] == {"answered": row["steps"]}
        assert (block["calls"], block["prompt_tokens"]) == (row["steps"], 100 * row["steps"])
        assert (block["model"], block["server"], block["models"]) == (
            "tiny",
            server.url,
            {"served-model-2026": row["steps"]},
        )
        assert (block["max_tokens"], block["retry_max_tokens"], block["thinking"]) == (
            50,
            400,
            "provider default",
        )
        assert block["unpriced_calls"] == block["calls"]
    assert [message["role"] for message in server.requests[1]["messages"][:4]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert server.requests[0]["messages"][0]["content"] == SYSTEM_PROMPT
    for part in ("served-model-2026", server.url, "cap 50 then 400", "cost unknown"):
        assert part in played.note


def test_a_truncated_reply_is_asked_once_more_with_a_larger_cap(tmp_path):
    """Case 9: one bounded second try; both caps in the row."""
    answers = lambda request: said(FIRST_LOOK) if request["max_tokens"] == 400 else said(None, "MAX_TOKENS")
    with serving(answers) as server:
        played, _ = play(server, tmp_path, TICKETS[:1])
    caps = [request["max_tokens"] for request in server.requests]
    assert caps[:4] == [50, 400, 50, 400]
    block = played.rows[0]["api"]
    assert block["labels"] == {"answered": played.rows[0]["steps"]}
    assert block["retries"] == len(caps) / 2
    with pytest.raises(ValueError, match="not above"):
        api.ApiModel("gpt_4o_mini", "m", 50, 50)


@pytest.mark.parametrize(
    ("answer", "label", "reason"),
    [
        (said('{"reasoning": "the cust', "MAX_TOKENS"), "api_truncated", "truncated"),
        (said(None, "length"), "api_truncated", "empty"),
        (said(None, "content_filter"), "api_blocked", "empty"),
        (said(None, refusal="no"), "api_refused", "empty"),
        (said(""), "api_empty", "empty"),
    ],
)
def test_an_unusable_reply_is_counted_under_its_name_and_takes_no_action(tmp_path, answer, label, reason):
    """Case 9: shown as counts beside the score, never booked as a wrong action."""
    with serving(lambda request: answer) as server:
        played, _ = play(server, tmp_path, TICKETS[:1])
    row = played.rows[0]
    assert row["api"]["labels"] == {label: row["steps"]}
    assert set(row["failure_reasons"]) <= set(REASONS)
    assert row["parse_failures"] == row["steps"]
    assert set(row["actions"]) == {None}
    assert f"{label} {row['steps']}" in played.note


def test_an_outage_loses_no_finished_episode_and_the_next_run_goes_on(tmp_path):
    oracle, down = OracleServer(), {"from": TICKETS[2].query}

    def answer(request):
        return failed(503, "down") if request["messages"][1]["content"] == down["from"] else oracle(request)

    with serving(answer) as server:
        played, aloud = play(server, tmp_path)
        assert [row["ticket_id"] for row in played.rows] == [ticket.ticket_id for ticket in TICKETS[:2]]
        assert "2 of 4 episodes are kept" in aloud[0]
        assert played.note.startswith("2 of 4 tickets evaluated: no headline.")
        lost = Journal(tmp_path / "own_server.jsonl").entries[-1]
        assert (lost["ticket_id"], lost["api"]["outages"]) == (
            TICKETS[2].ticket_id,
            {"ServiceUnavailableError": 1},
        )
        down["from"], before = None, len(server.requests)
        played, aloud = play(server, tmp_path)
        again = {request["messages"][1]["content"] for request in server.requests[before:]}
        assert again == {ticket.query for ticket in TICKETS[2:]}
        calls = played.usage.calls
        played, _ = play(server, tmp_path)
    assert [row["ticket_id"] for row in played.rows] == [ticket.ticket_id for ticket in TICKETS]
    assert played.usage.calls == calls == sum(row["steps"] for row in played.rows)
    assert not aloud
    assert all(row["resolved"] for row in played.rows)


def test_a_rate_limit_is_no_failure_of_the_agent(tmp_path):
    oracle, limits = OracleServer(), iter([True, False, True, True])
    answer = lambda request: (
        failed(429, headers={"Retry-After": "0.01"}) if next(limits, False) else oracle(request)
    )
    with serving(answer) as server:
        played, _ = play(server, tmp_path, TICKETS[:1], patience_s=60, sleep=lambda s: None, clock=ticking())
    assert played.rows[0]["resolved"]
    assert played.rows[0]["api"]["outages"] == {"RateLimitError": 3}
    assert "3 outages" in played.note


def ticking():
    """A clock that moves two seconds whenever it is read."""
    ticks = iter(range(0, 10_000, 2))
    return lambda: float(next(ticks))


def test_the_spend_cap_stops_the_run_and_keeps_finished_episodes(tmp_path):
    """Case 34: the cap holds over runs, and raising it goes on from there."""
    with serving(OracleServer()) as server:
        complete = partial(
            api_calls.completion(), api_base=server.url, api_key="none", custom_llm_provider="openai"
        )
        options = {"complete": complete, "price": lambda response: 0.1}
        own = api.ApiModel("gpt_4o_mini", "m", 50, 400)
        journal, aloud = Journal(tmp_path / "rows.jsonl"), []
        steps = [len(ticket.optimal_actions) for ticket in TICKETS]
        cap = 0.1 * (steps[0] + steps[1]) + 0.05  # one call into the third ticket
        played = api.play_tickets(own, TICKETS, journal, cap, report=aloud.append, **options)
        assert len(played.rows) == 2
        assert "the spend cap is" in aloud[0]
        assert len(server.requests) == steps[0] + steps[1] + 1
        again = api.play_tickets(own, TICKETS, Journal(journal.path), cap, report=aloud.append, **options)
        assert len(server.requests) == steps[0] + steps[1] + 1
        assert len(again.rows) == 2
        rest = api.play_tickets(own, TICKETS, Journal(journal.path), 99.0, **options)
    assert len(rest.rows) == 4
    assert rest.usage.cost_usd == pytest.approx(0.1 * (sum(steps) + 1))


def test_without_a_key_the_row_says_what_it_needs(monkeypatch):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert api.ApiModel("gpt_4o_mini", "gpt-4o-mini", 50, 400).needs() == "needs OPENAI_API_KEY"
    assert "GEMINI_API_KEY" in api.ApiModel("gemini_2_5_flash", "gemini/gemini-2.5-flash", 50, 400).needs()
    assert api.ApiModel("own_server", "tiny", 50, 400).needs() == "needs API_URL"
    assert api.ApiModel("own_server", "tiny", 50, 400, base_url="http://127.0.0.1:1/v1").needs() == ""


def test_no_key_in_rows_journal_or_notes(tmp_path, monkeypatch, capfd):
    """Case 11: the provider quotes the key in its error, and nothing written or printed holds it."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    oracle = OracleServer()
    broken = lambda r: (
        failed(401, f"wrong key {CANARY}") if r["messages"][1]["content"] == TICKETS[1].query else oracle(r)
    )
    with serving(broken) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        own = api.ApiModel("gpt_4o_mini", "gpt-4o-mini", 50, 400)
        played = api.play_tickets(own, TICKETS, Journal(tmp_path / "rows.jsonl"), 1.0)
    assert server.keys[0] == f"Bearer {CANARY}"
    assert len(played.rows) == 1
    assert "wrong key [key hidden]" in played.note
    assert f"at {server.url}" in played.note  # the address came from the environment and is told
    text = played.note + json.dumps(played.rows) + "".join(capfd.readouterr())
    assert CANARY not in text
    for file in tmp_path.iterdir():
        assert CANARY.encode() not in file.read_bytes()


# ---- consult_llm ----


def adviser(server, **options):
    client = api_calls.ApiClient("tiny", api.Budget(1.0), server.url, patience_s=0.01, **options)
    return api.ApiAdviser(api.ApiPlayer(model(server), client))


def test_the_adviser_can_be_the_same_hosted_model():
    ticket = TICKETS[0]
    with serving(OracleServer()) as server:
        asked = adviser(server)
        episode = desk.Episode(ticket, adviser=asked)
        episode.step(ticket.optimal_actions[0])
        step = episode.step(desk.CONSULT)
    assert episode.hint == ticket.optimal_actions[1]
    assert step.result == {"service": "adviser", "ok": True, "hint": desk.ACTIONS[episode.hint]}
    chat = server.requests[0]["messages"]
    assert chat[:2] == DeskConversation(ticket).messages
    assert json.loads(chat[2]["content"])["action_id"] == ticket.optimal_actions[0]
    assert chat[3]["content"] == episode.history[0].text
    assert (asked.usage.calls, asked.usage.labels) == (1, {"answered": 1})
    assert "cost unknown" in asked.usage.cost_text()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (said(None, "content_filter"), "api_blocked"),
        (said('{"reasoning": "x', "length"), "truncated"),
        (said("Ask billing."), "no_json"),
        (said('{"reasoning": "x", "action_id": 12}'), "it wants to ask itself"),
    ],
)
def test_a_useless_adviser_is_told_and_not_replaced(answer, reason):
    with serving(lambda request: answer) as server:
        env = DeskEnv("validation", adviser=adviser(server))
        env.reset(seed=0)
        *_, info = env.step(desk.CONSULT)
    assert info["result"] == {"service": "adviser", "ok": False, "reason": reason}
    assert info["text"] == f"adviser: no usable advice ({reason})."
    assert env.episode.hint is None


def test_an_adviser_out_of_reach_is_an_error_not_the_built_in_one():
    with serving(lambda request: failed(503, "down")) as server:
        episode = desk.Episode(TICKETS[0], adviser=adviser(server))
        with pytest.raises(ApiError, match="down"):
            episode.step(desk.CONSULT)
    assert episode.history == []


def test_the_built_in_adviser_is_the_default_and_needs_no_network():
    ticket = TICKETS[0]
    episode = desk.Episode(ticket)
    episode.step(desk.CONSULT)
    assert Advice(episode.hint) == advise(Case(ticket.query, ticket.written, {}))


# ---- a model behind `transformers serve` ----


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The tiny model behind transformers' own OpenAI server, in a process of its own."""
    folder = tmp_path_factory.mktemp("tiny")
    build_tiny(folder, [SYSTEM_PROMPT, *(ticket.query for ticket in desk.load_tickets("train")[:50])])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("transformers")), "serve", "--device", "cpu"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        command,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, "transformers serve did not start"
                time.sleep(0.1)
        yield str(folder), f"http://127.0.0.1:{port}/v1"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


def test_a_served_model_gives_rows(served, tmp_path):
    """The whole path with a real model: prompt, HTTP, generation, parser, desk, row."""
    name, url = served
    own = api.ApiModel("own_server", name, 8, 16, base_url=url)
    played = api.play_tickets(own, TICKETS[:2], Journal(tmp_path / "rows.jsonl"), 1.0)
    assert len(benchmark.check_rows(played.rows, "rows", "desk")) == 2
    for row in played.rows:
        assert row["api"]["prompt_tokens"] > 100
        assert row["api"]["models"] == {name: row["api"]["calls"]}
        assert sum(row["api"]["labels"].values()) == row["steps"]
    conversation, usage = DeskConversation(TICKETS[0]), Usage()
    client = api_calls.ApiClient(name, api.Budget(1.0), url)
    api.ApiPlayer(own, client).play(conversation, usage)
    assert conversation.row("own_server") | {"api": None} == played.rows[0] | {"api": None}  # greedy
