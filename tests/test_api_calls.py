"""One call to a hosted model over real HTTP: endings, waiting, giving up, counting, caps, hidden keys."""

import io
import json
import logging
import traceback
from functools import partial

import pytest
from model_server import failed, gemini, said, serving, slowly

from rlcas_utils import api_calls
from rlcas_utils.api_calls import ApiClient
from rlcas_utils.api_journal import Journal
from rlcas_utils.api_replies import redact
from rlcas_utils.api_usage import ApiError, Budget, SpendCapReached, Usage, total_usage

CANARY = "CANARY-7f3a9d21"
CHAT = [{"role": "user", "content": "hello"}]


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self):
        self.now, self.slept = 0.0, []

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


def client(server, clock=None, **options):
    clock = clock or Clock()
    options = {"budget": Budget(1.0), "report": lambda text: None} | options
    return ApiClient("tiny", base_url=server.url, clock=clock, sleep=clock.sleep, **options)


def ask(made, usage=None, **options):
    return made.ask(CHAT, usage if usage is not None else Usage(), max_tokens=50, temperature=0.0, **options)


@pytest.mark.parametrize(
    ("answer", "text", "label"),
    [
        (said("hi"), "hi", "answered"),
        (said(None, "length"), "", "api_truncated"),
        (said('{"reasoning": "the cust', "MAX_TOKENS"), '{"reasoning": "the cust', "api_truncated"),
        (said(None, "content_filter"), "", "api_blocked"),
        (said("", "SAFETY"), "", "api_blocked"),
        (failed(400, "filtered", code="content_policy_violation"), "", "api_blocked"),
        (said(None, refusal="I cannot help with that."), "", "api_refused"),
        (said(None), "", "api_empty"),
        (said("  "), "  ", "api_empty"),
        ((200, {"object": "chat.completion", "created": 1, "choices": []}), "", "api_empty"),
    ],
)
def test_every_ending_has_its_label(answer, text, label):
    """Case 9: three bad endings, three labels, and no AttributeError on None."""
    usage = Usage()
    with serving([answer]) as server:
        reply = ask(client(server), usage)
    assert (reply.text, reply.label) == (text, label)
    assert (usage.calls, len(server.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        (gemini([], "MAX_TOKENS"), "api_truncated"),
        (gemini([{"text": '{"reasoning": "the cust'}], "MAX_TOKENS"), "api_truncated"),
        (gemini([], "SAFETY"), "api_blocked"),
        ((200, {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {}}), "api_blocked"),
    ],
)
def test_geminis_own_protocol_gives_the_same_labels_and_a_price(answer, label, monkeypatch):
    """Case 9, through LiteLLM's Gemini adapter."""
    monkeypatch.setenv("GEMINI_API_KEY", CANARY)
    usage = Usage()
    with serving([answer]) as server:
        complete = partial(api_calls.completion(), api_base=server.url)
        made = ApiClient("gemini/gemini-2.5-flash", Budget(1.0), complete=complete)
        assert ask(made, usage, reasoning_effort="disable").label == label
    assert server.requests[0]["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 0
    assert server.keys == [CANARY]
    assert (usage.calls, usage.prompt_tokens) == (1, 100 if "candidates" in answer[1] else 0)
    if label == "api_truncated":
        # 100 tokens read at $0.30 and 20 thought at $2.50 a million.
        assert usage.cost_usd == pytest.approx(100 * 0.3e-6 + 20 * 2.5e-6)


def test_a_rate_limit_is_waited_out_as_long_as_the_provider_asks():
    clock, usage = Clock(), Usage()
    with serving([failed(429, headers={"Retry-After": "7"}), failed(503), said("hi")]) as server:
        assert ask(client(server, clock), usage).text == "hi"
    assert len(server.requests) == 3, "LiteLLM or the OpenAI library retried on its own"
    assert clock.slept[0] == 7.0
    assert 1.5 <= clock.slept[1] <= 2.5  # second failure: 2 s, give or take a quarter
    assert usage.outages == {"RateLimitError": 1, "ServiceUnavailableError": 1}
    assert usage.waited_s == pytest.approx(sum(clock.slept))
    assert usage.calls == 1


def test_back_off_doubles_to_a_limit_and_gives_up_in_the_end():
    clock, usage = Clock(), Usage()
    gives_up = pytest.raises(ApiError, match=r"boom.*Tried \d+ times in .* Run again later")
    first = iter([said("hi")])
    with serving(lambda request: next(first, failed(500, "boom"))) as server:
        made = client(server, clock, patience_s=300)
        ask(made)
        with gives_up:
            ask(made, usage)
    doubled = [1, 2, 4, 8, 16, 32, 60, 60]
    for slept, expected in zip(clock.slept, doubled, strict=False):
        assert 0.74 * expected <= slept <= 1.26 * expected
    assert 200 < sum(clock.slept) <= 300
    assert usage.outages["InternalServerError"] == len(clock.slept) + 1
    assert usage.calls == 0


def test_a_server_that_never_answered_is_given_up_after_a_minute_unless_it_is_busy():
    for status, seconds in ((500, 60), (429, 300)):
        clock, answer = Clock(), failed(status)
        with serving(lambda request, answer=answer: answer) as server, pytest.raises(ApiError):
            ask(client(server, clock, patience_s=300))
        assert 0.3 * seconds < clock.now <= seconds


def test_one_threads_rate_limit_holds_all_calls():
    clock = Clock()
    with serving([failed(429, headers={"Retry-After": "30"})]) as server:
        made = client(server, clock, patience_s=10)
        with pytest.raises(ApiError):
            ask(made)  # 30 s is more than it would wait, so it gives up at once
    assert clock.slept == []
    with serving([failed(429, headers={"Retry-After": "30"}), said("a"), said("b")]) as server:
        made = client(server, clock)
        made._close_gate(30.0, "RateLimitError")  # as another thread does
        ask(made)
    assert clock.slept[0] == 30.0


def test_timeouts_and_an_absent_server_are_outages():
    usage = Usage()
    late = serving(lambda request: slowly(0.5, said("late")))
    with late as server, pytest.raises(ApiError, match="Timeout"):
        ask(client(server, timeout_s=0.1, patience_s=0.5), usage)
    with pytest.raises(ApiError, match="Connection error"):
        ask(client(server, patience_s=0.5), usage)
    assert usage.outages["Timeout"] >= 1
    assert usage.outages["InternalServerError"] >= 1


@pytest.mark.parametrize(
    "answer",
    [
        failed(401, "Incorrect API key"),
        failed(404, "no such model"),
        failed(429, "You exceeded your current quota", code="insufficient_quota"),
    ],
)
def test_what_waiting_does_not_mend_stops_at_once(answer):
    clock = Clock()
    with serving([answer]) as server, pytest.raises(ApiError, match="Check the key, the model's name"):
        ask(client(server, clock))
    assert clock.slept == []


def test_an_own_server_gets_no_providers_key_and_has_no_price(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.delenv(api_calls.SERVER_KEY, raising=False)
    usage = Usage()
    with serving([said("a"), said("b")]) as server:
        made = client(server)
        made.model = "gpt-4o-mini"  # a name with a price: the price is the provider's, not this server's
        ask(made, usage)
        monkeypatch.setenv(api_calls.SERVER_KEY, "own-key")
        ask(made, usage)
    assert server.keys == ["Bearer none", "Bearer own-key"]
    assert (usage.cost_usd, usage.unpriced_calls) == (0.0, 2)
    assert usage.cost_text() == "cost unknown (2 calls unpriced)"
    assert usage.models == {"served-model-2026": 2}


def test_an_address_in_the_environment_is_noticed(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x" * 20)
    assert api_calls.server_of("gpt-4o-mini") == ""
    with serving([said("a")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        usage = Usage()
        ApiClient("gpt-4o-mini", Budget(1.0)).ask(CHAT, usage)
        assert len(server.requests) == 1
        assert api_calls.server_of("gpt-4o-mini") == server.url
    assert usage.unpriced_calls == 1
    assert api_calls.server_of("gemini/gemini-2.5-flash") == ""


def test_costs_are_summed_and_unknown_ones_counted():
    """Case 34: 0.01, 0.02 and None are $0.03 plus one call unpriced."""
    costs = iter([0.01, 0.02, None])
    reply = lambda **request: type("Reply", (), {"choices": [], "usage": None, "model": "m"})()
    made = ApiClient("m", Budget(1.0), complete=reply, price=lambda response: next(costs))
    usage = Usage()
    for _ in range(3):
        made.ask(CHAT, usage)
    assert usage.cost_text() == "$0.0300 plus 1 call unpriced"
    assert made.budget.usage.cost_text() == "$0.0300 plus 1 call unpriced"
    assert Usage(calls=1, cost_usd=0.5).cost_text() == "$0.5000"


def test_litellm_has_no_price_for_an_unknown_model():
    with serving([said("a")]) as server:
        response = api_calls.completion()(
            model="openai/tiny", api_base=server.url, api_key="none", messages=CHAT, max_retries=0
        )
    assert api_calls.price(response) is None
    response.model = "gpt-4o-mini"
    assert api_calls.price(response) == pytest.approx(100 * 0.15e-6 + 20 * 0.6e-6)


def test_the_spend_cap_stops_calls_and_survives_a_kill(tmp_path):
    path = tmp_path / "spent.json"
    with serving(lambda request: said("a")) as server:
        made = ApiClient(
            "m",
            Budget(0.25, path),
            complete=partial(
                api_calls.completion(), api_base=server.url, api_key="none", custom_llm_provider="openai"
            ),
            price=lambda response: 0.1,
        )
        for _ in range(3):
            ask(made)
        with pytest.raises(SpendCapReached, match=r"spent \$0.3000, the spend cap is \$0.25"):
            ask(made)
    assert len(server.requests) == 3
    with pytest.raises(SpendCapReached):
        Budget(0.25, path).require()
    Budget(0.35, path).require()


def test_usage_blocks_add_up_and_survive_json():
    first = Usage(calls=2, cost_usd=0.1, latency_s=1.5)
    first.labels["answered"] = 2
    row = {
        "api": {"model": "x"} | json.loads(json.dumps(first.block())),
        "customer_api": Usage(calls=3).block(),
    }
    total = total_usage([row, row, {}], "api", "customer_api")
    assert (total.calls, total.cost_usd, total.labels) == (10, 0.2, {"answered": 4})
    assert total_usage([row]).calls == 2
    assert "$0.2000" in total.text()
    assert "answered 4" in total.text()


def test_a_journal_keeps_what_is_whole(tmp_path):
    journal = Journal(tmp_path / "api" / "rows.jsonl")
    journal.append({"ticket_id": "a", "return": 1.0})
    journal.append({"ticket_id": "b", "lost": "outage"})
    with journal.path.open("a") as file:
        file.write('{"ticket_id": "c", "retu')  # killed in the middle of a line
    again = Journal(journal.path)
    assert [entry["ticket_id"] for entry in again.entries] == ["a", "b"]
    assert [row["ticket_id"] for row in again.rows] == ["a"]
    again.append({"ticket_id": "d"})
    assert [entry["ticket_id"] for entry in Journal(journal.path).entries] == ["a", "b", "d"]


def test_missing_keys_are_named(monkeypatch):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert api_calls.missing_key("gpt-4o-mini") == "needs OPENAI_API_KEY"
    assert "GEMINI_API_KEY" in api_calls.missing_key("gemini/gemini-2.5-flash")
    assert api_calls.missing_key("tiny", "http://127.0.0.1:1/v1") == ""
    monkeypatch.setenv("GEMINI_API_KEY", " ")
    assert "GEMINI_API_KEY" in api_calls.missing_key("gemini/gemini-2.5-flash")
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert api_calls.missing_key("gemini/gemini-2.5-flash") == ""


def test_keys_reach_no_error_text_and_no_log(monkeypatch, capfd, caplog):
    """Case 11, through the client: a provider that quotes the key in its error."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    caplog.set_level(logging.DEBUG)
    with serving(lambda request: failed(401, f"Incorrect API key: {CANARY} sk-abcdef123456")) as server:
        made = ApiClient(
            "gpt-4o-mini", Budget(1.0), complete=partial(api_calls.completion(), api_base=server.url)
        )
        with pytest.raises(ApiError, match="Incorrect API key") as error:
            ask(made)
    assert server.keys == [f"Bearer {CANARY}"]
    text = io.StringIO()
    traceback.print_exception(error.value, file=text)
    assert error.value.__context__ is None
    shown = text.getvalue() + "".join(capfd.readouterr()) + caplog.text
    assert CANARY not in shown
    assert "abcdef" not in shown


def test_redaction_knows_environment_and_shapes(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "plain-looking-words")
    assert redact("a plain-looking-words b sk-abcdef123456 c") == "a [key hidden] b [key hidden] c"
