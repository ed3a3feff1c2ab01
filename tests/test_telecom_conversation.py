"""One model turn at a time: what is executed, what is refused, what is counted; and the prompt."""

import base64
import importlib.util
import json
import math
from pathlib import Path

import pytest

from rlcas_utils.telecom import prompt, tau2
from rlcas_utils.telecom.conversation import TelecomConversation
from rlcas_utils.telecom.customers import CustomerError, customer_factory, scripted_customer
from rlcas_utils.telecom.demonstrations import ContaminationError
from rlcas_utils.telecom.evaluation import evaluate, play_agent, puppet_customer

TASK = next(t for t in tau2.tasks("test") if "airplane_mode_on" in t.id)


def _conversation(**options):
    return TelecomConversation(TASK, puppet_customer(TASK, 0), **options)


def _state(conversation):
    environment = conversation.session.environment
    return environment.get_db_hash(), environment.get_user_db_hash()


def _call(name, **arguments):
    return prompt.render_call("", name, arguments)


def test_a_tool_call_is_performed_and_its_result_marked():
    conversation = _conversation()
    answer = conversation.reply(_call("get_customer_by_phone", phone_number="555-123-2002"))
    assert answer.startswith("<tool_response>{")
    assert '"customer_id": "C1001"' in answer
    assert not conversation.tool_errors


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("I will look into it.", "no_call"),
        ("", "empty"),
        ("<think>hmm</think>", "no_call"),
        ('<tool_call>{"name": "done", "arguments": </tool_call>', "bad_json"),
        (_call("done") + _call("done"), "multiple_calls"),
        (_call("suspend_line", line_id="L1002"), "missing_argument"),
        (_call("respond", content="  "), "bad_arguments"),
        (_call("respond", content=["Hello"]), "bad_arguments"),
        (_call("respond", content=None), "bad_arguments"),
        ('<tool_call>{"name": "get_details_by_id", "arguments": [1]}</tool_call>', "bad_arguments"),
        (
            '<tool_call>{"name": "refuel_data", "arguments": '
            '{"customer_id": "C1001", "line_id": "L1002", "gb_amount": NaN}}</tool_call>',
            None,
        ),
        (
            '<tool_call>{"name": "refuel_data", "arguments": '
            '{"customer_id": "C1001", "line_id": {"a": [1e999]}, "gb_amount": 2.0}}</tool_call>',
            None,
        ),
    ],
)
def test_what_cannot_be_read_changes_nothing_and_is_counted(text, kind):
    conversation = _conversation()
    before, said = _state(conversation), len(conversation.session.messages)
    answer = conversation.reply(text)
    assert answer.startswith("<tool_response>Error:")
    assert _state(conversation) == before
    assert len(conversation.session.messages) == said
    assert sum(conversation.tool_errors.values()) == conversation.session.turns == 1
    assert kind is None or conversation.tool_errors == {kind: 1}


def test_a_cut_turn_is_counted_as_such():
    conversation = _conversation()
    conversation.reply('<tool_call>{"name": "respond", "argu', truncated=True)
    assert conversation.tool_errors == {"truncated": 1}


def test_a_call_rehearsed_in_thought_is_not_executed():
    conversation = _conversation()
    rehearsed = _call("suspend_line", customer_id="C1001", line_id="L1001", reason="x")
    conversation.reply(f"<think>maybe {rehearsed} no</think>" + _call("get_details_by_id", id="L1001"))
    assert [c.name for m in conversation.session.messages for c in getattr(m, "tool_calls", None) or []] == [
        "get_details_by_id"
    ]


def test_customer_tools_are_refused_and_counted_apart_from_unknown_ones():
    """Case 29."""
    conversation = _conversation()
    before = _state(conversation)
    answer = conversation.reply(_call("toggle_airplane_mode"))
    assert "not found" in answer
    assert "Ask with respond" in answer
    answer = conversation.reply(_call("fix_everything"))
    assert "no such tool" in answer
    conversation.reply(_call("get_details_by_id", id="nobody"))
    assert _state(conversation) == before
    assert conversation.tool_errors == {
        "user_tool_called_by_agent": 1,
        "unknown_tool": 1,
        "tool_error": 1,
    }
    conversation.reply(_call("respond", content="Please run toggle_airplane_mode with {}."))
    assert _state(conversation)[1] != before[1]  # the same thing, asked of the customer


def test_the_turn_cap_counts_unusable_turns_and_scores_nothing():
    conversation = _conversation(max_turns=2)
    assert conversation.reply("hm") is not None
    assert conversation.reply("hm") is None
    assert (conversation.score.end, conversation.score.reward) == ("max_turns", 0.0)


def test_five_unusable_turns_in_a_row_end_the_episode():
    conversation = _conversation()
    for text in ("hm", "hm", _call("get_details_by_id", id="L1002"), "hm", "hm", "hm", "hm"):
        assert conversation.reply(text) is not None
    assert conversation.reply("hm") is None
    assert (conversation.score.end, conversation.tool_errors["no_call"]) == ("unusable_output", 7)


def test_done_and_abandon_end_the_episode():
    conversation = _conversation()
    assert conversation.reply(_call("done")) is None
    assert conversation.score.end == "agent_stop"
    conversation = _conversation()
    conversation.abandon("token_budget")
    assert (conversation.score.end, conversation.score.reward) == ("token_budget", 0.0)


def test_transfer_is_noted_with_its_turn():
    conversation = _conversation()
    conversation.reply(_call("get_details_by_id", id="L1002"))
    conversation.reply(_call("transfer_to_human_agents", summary="x"))
    assert conversation.first_transfer_turn == 2


@pytest.mark.parametrize("silence", ["", "<think>hmm</think>", "<think>hm"])
def test_a_second_silent_turn_gets_a_neutral_sentence(silence):
    """Case 30, last part: asked again once, then a sentence is said for it; both are in the log."""
    conversation = TelecomConversation(TASK, scripted_customer(TASK, 3))
    assert conversation.reply(silence).startswith("<tool_response>Error:")
    answer = conversation.reply(silence)
    assert not answer.startswith("<tool_response>")  # the customer's words
    assert [m.content for m in conversation.session.messages if m.role == "assistant"][
        -1
    ] == "One moment, please."
    assert conversation.tool_errors["neutral_sentence"] == 1
    assert sum(conversation.tool_errors.values()) == 3
    assert conversation.session.turns == 2
    for _ in range(2):
        assert conversation.reply(silence) is not None
    assert conversation.reply(silence) is None  # silence does not go on for ever
    assert (conversation.score.end, conversation.session.turns) == ("unusable_output", 5)


def test_babble_between_silences_is_no_silence():
    conversation = TelecomConversation(TASK, scripted_customer(TASK, 3))
    for text in ("", "hm", ""):
        assert conversation.reply(text).startswith("<tool_response>Error:")
    assert conversation.tool_errors == {"empty": 2, "no_call": 1}


class _BrokenCustomer(type(puppet_customer(TASK, 0))):
    """A customer whose server fails, at the first word or at the second."""

    def __init__(self, greets):
        super().__init__(TASK.user_scenario)
        self.greets = greets

    def generate_next_message(self, message, state):
        if state["greeted"] or not self.greets:
            error = type("APIConnectionError", (Exception,), {"__module__": "litellm.exceptions"})
            raise error("no key")
        return super().generate_next_message(message, state)


@pytest.mark.parametrize("greets", [True, False])
def test_a_failing_customer_is_not_the_agents_fault(greets):
    conversation = TelecomConversation(TASK, _BrokenCustomer(greets))
    assert conversation.reply(_call("respond", content="Hello")) is None
    assert conversation.score.end == "infrastructure_error"
    assert conversation.session.failure == "APIConnectionError: no key"


def test_rows_have_one_entry_per_attempt_and_refuse_training_tasks():
    def play(conversations):
        play_agent(lambda task, seed: lambda seen: ("", "done", {}), conversations, 0)

    rows = evaluate("base", tau2.tasks("test")[:2], play, num_trials=3)
    assert [(r["trial"], r["task_id"]) for r in rows][::2] == [(k, TEST_IDS[0]) for k in range(3)]
    assert {r["end"] for r in rows} == {"agent_stop"}
    assert all(json.dumps(r) and math.isfinite(r["partial"]) for r in rows)
    with pytest.raises(ContaminationError, match="contaminated 74/114"):
        evaluate("sft", tau2.tasks("base"), play, num_trials=1)


TEST_IDS = tau2.split_ids("test")


def test_equal_seeds_give_equal_conversations():
    def transcript():
        conversation = TelecomConversation(TASK, scripted_customer(TASK, 3))
        for text in (
            _call("respond", content="What is your phone number?"),
            _call("respond", content="Please check the status bar."),
        ):
            conversation.reply(text)
        return [m.content for m in conversation.session.messages]

    assert transcript() == transcript()


def test_the_prompt_lists_15_tools_and_names_30_apart():
    tools = {tool["name"] for tool in prompt.agent_tools()}
    assert len(tools) == 15
    assert {"respond", "done", "transfer_to_human_agents"} <= tools
    assert len(prompt.customer_tools()) == 30
    assert not tools & set(prompt.customer_tools())
    text = prompt.system_prompt("compact")
    schemas = [json.loads(line) for line in text.splitlines() if line.startswith('{"name"')]
    assert {schema["name"] for schema in schemas} == tools
    assert prompt.required_arguments()["refuel_data"] == ("customer_id", "line_id", "gb_amount")
    assert prompt.system_prompt("none") == ""
    with pytest.raises(ValueError, match="'short' is unknown"):
        prompt.system_prompt("short")


OMITTED = {  # fault in a task's id: what the compact policy says nothing about
    "bad_vpn": ("vpn",),
    "data_saver_mode_on": ("data saver",),
    "bad_network_preference": ("network mode", "4g_5g_preferred"),
    "bad_wifi_calling": ("wi-fi calling",),
    "break_app_storage_permission": ("permission", "storage"),
    "break_app_sms_permission": ("permission", "sms"),
    "break_app_both_permissions": ("permission", "storage", "sms"),
}


def test_the_compact_arm_leaves_out_what_the_full_arm_adds():
    compact, full = prompt.policy_text("compact").lower(), prompt.policy_text("full").lower()
    assert full.startswith(compact)
    for words in OMITTED.values():
        assert words[0] not in compact
        assert all(word in full for word in words)


def test_24_of_the_28_fixable_test_tasks_need_what_the_compact_arm_leaves_out():
    faults = [
        set(tau2.parse_task_id(t.id).faults) for t in tau2.tasks("test") if not tau2.is_transfer_task(t)
    ]
    assert len(faults) == 28
    assert sum(bool(names & set(OMITTED)) for names in faults) == 24


def qwen_tokens(texts):
    """Numbers of Qwen tokens, by the vocabulary that dashscope ships and Qwen's published splitting."""
    import tiktoken

    spec = importlib.util.find_spec("dashscope")
    if spec is None:
        pytest.skip("dashscope ships the Qwen vocabulary: make env installs it (requirements-weights.txt)")
    path = Path(spec.origin).parent / "resources" / "qwen.tiktoken"
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    qwen = tiktoken.Encoding("qwen", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    assert len(ranks) == 151_643
    return [len(qwen.encode(text)) for text in texts]


def test_the_compact_policy_is_at_most_505_qwen_tokens():
    compact, full, manual = qwen_tokens(
        [prompt.policy_text("compact"), prompt.policy_text("full"), tau2.make_environment().get_policy()]
    )
    assert compact <= 505
    assert compact < full <= 700
    assert manual == 5204  # tau2's own text, counted independently before: the vocabulary is the right one


def test_a_model_customer_needs_a_key_or_a_server(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(CustomerError, match="OPENAI_API_KEY"):
        customer_factory("gpt-4.1-mini-2025-04-14")
    assert customer_factory("scripted") is scripted_customer
    customer = customer_factory("openai/anything", "http://127.0.0.1:1")(TASK, 0)
    customer.llm_args["mock_response"] = "It does not work. ###STOP###"
    conversation = TelecomConversation(TASK, customer)
    assert conversation.session.end == "user_stop"
