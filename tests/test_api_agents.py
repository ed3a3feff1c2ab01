"""Hosted models with a fake completion function: endings, one retry, cost, caps, hidden keys."""

import json
import traceback
from types import SimpleNamespace as Object

import pytest
from benchmark_fixtures import desk_row

from rlcas_utils import api_agents as api
from rlcas_utils import benchmark, desk
from rlcas_utils.api_usage import Usage, total_usage
from rlcas_utils.desk.conversation import DeskConversation

GOOD = '{"reasoning": "look up the order", "action_id": 0}'


def reply(text, reason="stop", prompt=100, completion=20):
    message = Object(content=text)
    usage = Object(prompt_tokens=prompt, completion_tokens=completion)
    return Object(choices=[Object(message=message, finish_reason=reason)], usage=usage)


class Conversation:
    """Ends after a given number of turns and remembers what it was told."""

    def __init__(self, turns=1):
        self.messages = [{"role": "system", "content": "desk"}, {"role": "user", "content": "hello"}]
        self.turns, self.seen = turns, []

    def reply(self, text, *, truncated=False):
        self.seen.append((text, truncated))
        return None if len(self.seen) == self.turns else "next"


def player(replies, costs=(), **changes):
    settings = {"agent": "gpt_4o_mini", "model": "fake", "max_tokens": 50, "retry_max_tokens": 400} | changes
    calls, replies, costs = [], iter(replies), iter(costs)

    def complete(**options):
        calls.append(options | {"messages": [dict(m) for m in options["messages"]]})
        answer = next(replies)
        if isinstance(answer, Exception):
            raise answer
        return answer

    ticks = iter(range(1000))
    made = api.ApiPlayer(api.ApiModel(**settings), complete, lambda _: next(costs, 0.01), lambda: next(ticks))
    return made, calls


def test_a_plain_episode_counts_tokens_cost_and_seconds():
    conversation = Conversation(turns=2)
    made, calls = player([reply(GOOD), reply(GOOD, prompt=150)], thinking="disable")
    block = made.play(conversation)
    assert conversation.seen == [(GOOD, False)] * 2
    assert (block["calls"], block["prompt_tokens"], block["completion_tokens"]) == (2, 250, 40)
    assert (block["cost_usd"], block["latency_s"], block["labels"]) == (0.02, 2, {"answered": 2})
    assert (block["model"], block["max_tokens"], block["thinking"]) == ("fake", 50, "disable")
    assert [m["role"] for m in calls[1]["messages"]] == ["system", "user", "assistant", "user"]
    assert calls[0]["reasoning_effort"] == "disable"


@pytest.mark.parametrize("text", [None, "", '{"reasoning": "the cust'])
def test_truncated_reply_is_asked_once_more_with_a_larger_cap(text):
    conversation = Conversation()
    made, calls = player([reply(text, "MAX_TOKENS"), reply(GOOD)])
    block = made.play(conversation)
    assert [call["max_tokens"] for call in calls] == [50, 400]
    assert (block["retries"], block["labels"]) == (1, {"answered": 1})
    assert conversation.seen == [(GOOD, False)]


@pytest.mark.parametrize(
    ("text", "reason", "label", "calls"),
    [
        (None, "length", "api_truncated", 2),
        ('{"reasoning": "the cust', "MAX_TOKENS", "api_truncated", 2),
        (None, "content_filter", "api_blocked", 1),
        ("", "SAFETY", "api_blocked", 1),
        (None, "stop", "api_empty", 1),
    ],
)
def test_each_bad_ending_has_its_own_label(text, reason, label, calls):
    conversation = Conversation()
    made, seen = player([reply(text, reason)] * 2)
    assert made.play(conversation)["labels"] == {label: 1}
    assert len(seen) == calls
    assert conversation.seen == [(text or "", label == "api_truncated")]


def test_reply_without_choices_is_empty_not_an_error():
    assert api.read_answer(Object(choices=[])) == ("", "api_empty")


def test_unknown_price_is_shown_as_unknown():
    made, _ = player([reply(GOOD)] * 3, costs=[0.01, 0.02, None])
    usage = total_usage([{"api": made.play(Conversation(turns=3))}])
    assert usage.cost_text() == "$0.0300 plus 1 unpriced calls"
    made, _ = player([reply(GOOD)], costs=[None])
    assert total_usage([{"api": made.play(Conversation())}]).cost_text() == "cost unknown (1 calls unpriced)"


def test_litellm_has_no_price_for_an_unknown_model(monkeypatch):
    litellm = Object(completion_cost=lambda **_: (_ for _ in ()).throw(Exception("not mapped")))
    monkeypatch.setitem(__import__("sys").modules, "litellm", litellm)
    assert api.price(reply(GOOD)) is None
    litellm.completion_cost = lambda **_: 0.0
    assert api.price(reply(GOOD)) is None
    litellm.completion_cost = lambda **_: 0.25
    assert api.price(reply(GOOD)) == 0.25


def test_keys_never_reach_an_error_text(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "CANARY-7f3a")
    failure = RuntimeError("401 for CANARY-7f3a and sk-abcdef123456")
    made, _ = player([failure])
    with pytest.raises(api.ApiError, match="RuntimeError: 401") as error:
        made.play(Conversation())
    text = "".join(traceback.format_exception(error.value))
    assert "CANARY" not in text
    assert "abcdef" not in text


def test_missing_key_is_named():
    assert api.missing_key("gpt_4o_mini", {}) == "needs OPENAI_API_KEY"
    assert api.missing_key("gemini_2_5_flash", {"GEMINI_API_KEY": " "}) == "needs GEMINI_API_KEY"
    assert api.missing_key("gemini_2_5_flash", {"GEMINI_API_KEY": "x"}) == ""


def test_spend_cap_stops_and_keeps_what_is_finished():
    said = []
    block = vars(Usage(calls=1, cost_usd=0.4)) | {"labels": {"answered": 1}}
    rows = api.play_all(range(9), lambda t: desk_row(ticket=f"B{t}") | {"api": block}, 1.0, said.append)
    assert len(rows) == 3
    assert "spend cap of $1.0: 3 episodes" in said[0]


def test_provider_failure_keeps_what_is_finished():
    said = []

    def play(ticket):
        if ticket == 2:
            raise api.ApiError("quota")
        return {"api": vars(Usage()) | {"labels": {}}}

    assert len(api.play_all(range(5), play, 1.0, said.append)) == 2
    assert "2 episodes are kept: quota" in said[0]


def test_a_retry_that_cannot_help_is_refused():
    with pytest.raises(ValueError, match="not above"):
        player([], retry_max_tokens=50)


def test_at_the_real_desk_a_hosted_model_gives_a_valid_row():
    ticket = desk.load_tickets("validation")[0]
    conversation, oracle = DeskConversation(ticket), desk.OracleAgent()

    def complete(**options):
        assert options["messages"][1]["content"].find(ticket.query[:20]) >= 0
        return reply(json.dumps({"reasoning": "known", "action_id": int(oracle.act(conversation.episode))}))

    model = api.ApiModel("gpt_4o_mini", "fake", 50, 400)
    usage = api.ApiPlayer(model, complete, lambda _: 0.01).play(conversation)
    row = conversation.row("gpt_4o_mini") | {"api": usage}
    assert benchmark.check_rows([row], "desk rows") == [row]
    assert row["resolved"]
    assert usage["labels"] == {"answered": row["steps"]}


def test_at_the_real_desk_a_blocked_model_fails_without_an_action():
    conversation = DeskConversation(desk.load_tickets("validation")[0])
    made, _ = player([reply(None, "content_filter")] * 10)
    usage = made.play(conversation)
    row = conversation.row("gpt_4o_mini")
    assert not row["resolved"]
    assert row["parse_failures"] == row["steps"] == usage["labels"]["api_blocked"]
