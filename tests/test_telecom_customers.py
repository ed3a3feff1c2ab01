"""Language-model customers over real HTTP: tau2's own requests, whole episodes, outages, caps, costs."""

import json
import logging
from copy import deepcopy
from functools import cache, partial

import pytest
from model_server import failed, said, serving

from rlcas_utils import api_calls
from rlcas_utils.api_agents import ApiModel, ApiPlayer, play_side_by_side
from rlcas_utils.api_calls import ApiClient
from rlcas_utils.api_journal import Journal
from rlcas_utils.api_usage import ApiError, Budget, SpendCapReached, Usage, total_usage
from rlcas_utils.benchmark import telecom_metrics
from rlcas_utils.telecom import agents, tau2
from rlcas_utils.telecom.customers import (
    MAX_ASKS,
    CustomerError,
    ModelCustomer,
    cost_estimate,
    customer_factory,
    lost_episodes,
    require_available,
    scripted_customer,
    spending,
)
from rlcas_utils.telecom.evaluation import evaluate, play_agent
from rlcas_utils.telecom.session import Session

CANARY = "CANARY-7f3a9d21"
TASKS = [
    next(task for task in tau2.tasks("test") if task.id.startswith(f"[{issue}")) for issue in ("mob", "ser")
]
STOP = said("Thank you. ###STOP###")


@cache
def _task_with(system_prompt):
    """A task whose scenario stands in this prompt; the customer knows no more of it than that."""
    return next(task for task in tau2.tasks("test") if str(task.user_scenario) in system_prompt)


def scripted(request):
    """A model that says what the scripted customer says, worked out from nothing but the chat."""
    prompt, *chat = request["messages"]
    return deepcopy(_scripted(prompt["content"], tuple((m["role"], m.get("content")) for m in chat)))


@cache
def _scripted(prompt, chat):
    customer = scripted_customer(_task_with(prompt), 3)
    state, reply = customer.get_init_state(), None
    for role, text in chat:
        if role == "user":
            heard = tau2.AssistantMessage(role="assistant", content=text)
        elif role == "tool":
            heard = tau2.ToolMessage(id="", role="tool", content=text, requestor="user")
        else:
            continue
        reply, state = customer.generate_next_message(heard, state)
    if reply.tool_calls:
        return said(None, tool=(reply.tool_calls[0].name, reply.tool_calls[0].arguments))
    return said(reply.content)


def factory(server, **options):
    options = {"patience_s": 0.01, "report": lambda text: None} | options
    return customer_factory("tiny", server.url, **options)


def serve_all(make_customer, agent=agents.expert, tasks=TASKS, **options):
    play = partial(play_agent, agent, seed=0, workers=2)
    return evaluate(
        "expert", tasks, play, num_trials=1, make_customer=make_customer, customer="tiny", **options
    )


def test_it_asks_what_tau2s_own_simulator_asks():
    """Word for word: prompt, chat, tools, temperature, over a text, a tool call and several tool results."""
    task, answers = (
        TASKS[0],
        [said("It is slow."), said(None, tool=("toggle_data", {})), said("Done. ###STOP###")],
    )
    greeting = tau2.AssistantMessage(role="assistant", content="Hi! How can I help you today?")
    order = tau2.AssistantMessage(role="assistant", content="Please toggle your data twice.")
    results = [tau2.ToolMessage(id=f"r{i}", role="tool", content="ok", requestor="user") for i in (1, 2)]
    both = tau2.MultiToolMessage(role="tool", tool_messages=results)
    with serving([*answers, *answers]) as server:
        own = {"temperature": 0.0, "api_base": server.url, "api_key": "none"}
        theirs = tau2.UserSimulator(
            tools=tau2.make_environment().get_user_tools(),
            instructions=str(task.user_scenario),
            llm="openai/tiny",
            llm_args=own,
        )
        ours = factory(server)(task, 0)
        spoken = []
        for customer in (theirs, ours):
            state = customer.get_init_state()
            for heard in (greeting, order, both):
                message, state = customer.generate_next_message(heard, state)
                spoken.append((message.content, [(c.name, c.arguments) for c in message.tool_calls or ()]))
    first, second = server.requests[:3], server.requests[3:]
    for request in (*first, *second):  # the server numbers its tool calls on
        for message in request["messages"]:
            for call in message.get("tool_calls") or ():
                call["id"] = "call"
    assert first == second
    assert len(first[0]["tools"]) == 30
    assert spoken[:3] == spoken[3:]
    assert (ours.usage.calls, ours.usage.labels) == (3, {"answered": 3})


def test_whole_episodes_are_solved_through_http_in_threads(tmp_path):
    """The expert repairs phones whose owner sits behind a server; rate limits change nothing but the time."""
    limits = iter([False, True, False, False, True])
    answer = lambda request: failed(429) if next(limits, False) else scripted(request)
    with serving(answer) as server:
        make = factory(server, patience_s=900, sleep=lambda s: None, clock=_ticking())
        rows = serve_all(make, workers=2, journal=Journal(tmp_path / "rows.jsonl"))
    assert [row["reward"] for row in rows] == [1.0, 1.0]
    assert {row["end"] for row in rows} <= {"user_stop", "agent_stop"}
    total = total_usage(rows, "customer_api")
    assert total.calls == len(server.requests) - 2
    assert total.outages == {"RateLimitError": 2}
    assert total.cost_text() == f"cost unknown ({total.calls} calls unpriced)"
    assert str(total.calls) in spending(make)
    assert lost_episodes(rows) == []
    by_end = Journal(tmp_path / "rows.jsonl").rows
    assert sorted(by_end, key=lambda row: rows.index(row)) == rows


def _ticking():
    ticks = iter(range(0, 10**6, 2))
    return lambda: float(next(ticks))


def test_an_outage_is_nobodys_failure_is_listed_and_is_played_again(tmp_path):
    """Case 30: lost trials are no failures and do not vanish; no headline without them."""
    down = {"scenario": str(TASKS[1].user_scenario)}
    answer = lambda request: (
        failed(503, "down") if down["scenario"] in request["messages"][0]["content"] else scripted(request)
    )
    with serving(answer) as server:
        journal = Journal(tmp_path / "rows.jsonl")
        rows = serve_all(factory(server), journal=journal)
        assert [row["end"] for row in rows] == ["agent_stop", "infrastructure_error"]
        assert rows[1]["turns"] == 0  # it failed at the customer's first word, so the agent never spoke
        assert rows[1]["customer_api"]["outages"] == {"ServiceUnavailableError": 1}
        (listed,) = lost_episodes(rows)
        assert TASKS[1].id in listed
        assert "down" in listed
        metrics = telecom_metrics(rows)
        assert metrics["telecom/expert/coverage"]["value"] == 0.5
        assert not any("avg@" in name for name in metrics)
        assert [row["task_id"] for row in journal.rows] == [TASKS[0].id]
        down["scenario"], before = "nothing", len(server.requests)
        rows = serve_all(factory(server), journal=Journal(journal.path))
        again = {request["messages"][0]["content"] for request in server.requests[before:]}
    assert [row["reward"] for row in rows] == [1.0, 1.0]
    assert all(str(TASKS[1].user_scenario) in prompt for prompt in again)


def test_a_run_stops_when_the_customers_are_gone_and_not_for_a_single_failure():
    down = iter([True, False, True, True, True])
    with serving(
        lambda request: failed(503, "down") if next(down) else said("My phone is broken.")
    ) as server:
        make = factory(server)
        for expected in ("infrastructure_error", None, *["infrastructure_error"] * 3):
            require_available(make)
            assert Session(TASKS[0], make(TASKS[0], 0)).end == expected
        with pytest.raises(ApiError, match="down"):
            require_available(make)


def test_a_customer_who_fails_midway_is_lost_too():
    answer = lambda request: (
        failed(404, "no such model") if len(request["messages"]) > 6 else scripted(request)
    )
    with serving(answer) as server:
        rows = serve_all(factory(server), tasks=TASKS[:1])
    assert rows[0]["end"] == "infrastructure_error"
    assert rows[0]["turns"] >= 1
    assert "no such model" in rows[0]["lost"]


def test_the_spend_cap_stops_and_keeps_what_is_finished(tmp_path):
    """Case 34: finished trials are kept, the others are listed, and a higher cap goes on from there."""

    def run(server, max_usd):
        complete = partial(
            api_calls.completion(), api_base=server.url, api_key="none", custom_llm_provider="openai"
        )
        path, journal = tmp_path / "spent.json", Journal(tmp_path / "rows.jsonl")
        options = {"complete": complete, "price": lambda response: 0.01, "path": path, "patience_s": 1.0}
        make = customer_factory("gpt-4.1-mini-2025-04-14", max_usd=max_usd, **options)
        play = partial(play_agent, agents.expert, seed=0)
        rows = evaluate("expert", TASKS, play, num_trials=1, make_customer=make, journal=journal)
        return make, rows

    with serving(scripted) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", CANARY)
        calls = _calls_of_one(server)
        before = len(server.requests)
        make, rows = run(server, 0.01 * (calls + 3))
        assert len(server.requests) - before == calls + 3
        assert [row["end"] for row in rows] == ["agent_stop", "infrastructure_error"]
        assert "the spend cap is" in rows[1]["lost"]
        with pytest.raises(SpendCapReached):
            require_available(make)
        make, rows = run(server, 99.0)
        require_available(make)
    assert [row["reward"] for row in rows] == [1.0, 1.0]
    assert make.budget.usage.calls == len(server.requests) - before
    assert make.budget.usage.cost_usd == pytest.approx(0.01 * make.budget.usage.calls)
    require_available(scripted_customer)


def _calls_of_one(server):
    rows = serve_all(factory(server), tasks=TASKS[:1])
    return rows[0]["customer_api"]["calls"]


@pytest.mark.parametrize("bad", [said(""), said(None), said(None, tool=("toggle_data", '{"half'))])
def test_an_unusable_reply_is_asked_for_again_and_then_given_up(bad):
    with serving([bad, said("My phone is broken."), *[bad] * MAX_ASKS]) as server:
        session = Session(TASKS[0], factory(server)(TASKS[0], 0))
        assert session.observation.text == "My phone is broken."
        session.step("respond", {"content": "What is your name?"})
    assert session.end == "infrastructure_error"
    assert f"no usable reply in {MAX_ASKS} tries" in session.failure
    assert len(server.requests) == 2 + MAX_ASKS


def test_both_sides_behind_a_server_are_counted():
    """Cost is summed over turns and over both sides."""

    def answer(request):
        if "tools" in request:
            return said("My internet is slow.")
        return said('<tool_call>{"name": "done", "arguments": {}}</tool_call>')

    with serving(answer) as server:
        model = ApiModel("own_server", "tiny", 50, 400, base_url=server.url)
        player = ApiPlayer(model, ApiClient("tiny", Budget(1.0), server.url))
        play = lambda conversations: play_side_by_side(player, conversations, 2)
        rows = evaluate(
            "base", TASKS, play, num_trials=1, make_customer=factory(server), policy_arm="compact"
        )
    assert {row["end"] for row in rows} == {"agent_stop"}
    assert (total_usage(rows, "api").calls, total_usage(rows, "customer_api").calls) == (2, 2)
    assert total_usage(rows, "api", "customer_api").prompt_tokens == 400


def test_an_agent_whose_server_fails_is_lost_not_failed():
    answer = lambda request: said("My internet is slow.") if "tools" in request else failed(500, "agent down")
    with serving(answer) as server:
        client = ApiClient("tiny", Budget(1.0), server.url, patience_s=0.01)
        player = ApiPlayer(ApiModel("own_server", "tiny", 50, 400, base_url=server.url), client)
        play = lambda conversations: play_side_by_side(player, conversations, 2)
        rows = evaluate("base", TASKS, play, num_trials=1, make_customer=factory(server))
    assert {row["end"] for row in rows} == {"infrastructure_error"}
    assert "agent: tiny: InternalServerError" in rows[0]["lost"]


def test_no_key_in_rows_journal_or_logs(tmp_path, monkeypatch, capfd, caplog):
    """Case 11, through the customer's path."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    caplog.set_level(logging.DEBUG)
    with serving(lambda request: failed(401, f"bad key {CANARY}")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        make = customer_factory("gpt-4.1-mini-2025-04-14")
        rows = serve_all(make, journal=Journal(tmp_path / "rows.jsonl"))
    assert server.keys[0] == f"Bearer {CANARY}"
    assert "bad key [key hidden]" in rows[0]["lost"]
    written = "".join(file.read_text() for file in tmp_path.iterdir())
    assert CANARY not in json.dumps(rows) + written + "".join(capfd.readouterr()) + caplog.text


def test_the_cost_is_estimated_before_the_run(monkeypatch):
    # 117,000 tokens at $0.40 and 670 at $1.60 a million: $0.0479 an episode.
    text = cost_estimate("gpt-4.1-mini-2025-04-14", 1000)
    assert "1000 episodes" in text
    assert "about $47.87" in text
    assert "26,500 calls and 117.0 M tokens" in text
    assert "not known" in cost_estimate("gpt-4.1-mini-2025-04-14", 10, "http://127.0.0.1:1/v1")
    assert "not known" in cost_estimate("tiny", 10)
    assert cost_estimate("scripted", 10) == "The scripted customer costs nothing."


def test_without_a_key_it_says_what_it_needs(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CustomerError, match=r"needs OPENAI_API_KEY.*set CUSTOMER to 'scripted'"):
        customer_factory("gpt-4.1-mini-2025-04-14")
    assert customer_factory("scripted") is scripted_customer
    assert spending(scripted_customer) == "The scripted customer cost nothing."
    assert isinstance(customer_factory("tiny", "http://127.0.0.1:1/v1")(TASKS[0], 0), ModelCustomer)
    assert ModelCustomer(TASKS[0].user_scenario, customer_factory("tiny", "http://x").client).usage == Usage()
