"""Parser rules on hand-written turns, and a fuzz that looks for exceptions and default actions."""

import json
import random
import time

import pytest

from rlcas_utils.parsing import REASONS, Invalid, Parsed, ParsedCall, parse_action, parse_tool_call


def reason(result: object) -> str:
    assert isinstance(result, Invalid), result
    return result.reason


def test_strict_answer_is_not_repaired() -> None:
    text = '{"reasoning": "order 7 is late", "action_id": 4}'
    assert parse_action(text, 13) == Parsed(4, "order 7 is late", False)


def test_clean_up_never_damages_good_json() -> None:
    fenced = '```json\n{"reasoning": "caller pasted ```reset``` in the chat", "action_id": 4}\n```'
    assert parse_action(fenced, 10) == Parsed(4, "caller pasted ```reset``` in the chat", True)
    quote = '{"reasoning": "the customer\'s line can\'t be paused", "action_id": 5}'
    assert parse_action(quote, 10) == Parsed(5, "the customer's line can't be paused", False)
    python = "{'reasoning': \"the customer's line\", 'action_id': 5}"
    assert parse_action(python, 10) == Parsed(5, "the customer's line", True)


@pytest.mark.parametrize(
    "value", ["true", "null", "3.7", "NaN", "-1", "10", "[3]", '"²"', '"３"', "Infinity", "1e400", "9" * 5000]
)
def test_values_that_are_no_action(value: str) -> None:
    result = parse_action(f'{{"reasoning": "x", "action_id": {value}}}', 10)
    assert reason(result) in {"bad_type", "out_of_range"}


@pytest.mark.parametrize(("value", "repaired"), [("3", False), ('"3"', True), ("3.0", True)])
def test_values_that_mean_three(value: str, repaired: bool) -> None:
    assert parse_action(f'{{"reasoning": "x", "action_id": {value}}}', 10) == Parsed(3, "x", repaired)


def test_real_line_break_in_a_string() -> None:
    assert parse_action('{"reasoning":"line one\nline two","action_id":3}', 10) == Parsed(
        3, "line one\nline two", True
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        ("I would look up the order first.", "no_json"),
        ('{"action_id":1,"action_id":2}', "duplicate_key"),
        ("{'action_id':1,'action_id':2}", "duplicate_key"),
        ('{"action_id": 1} {"action_id": 2}', "multiple_calls"),
        ('[{"action_id": 1}, {"action_id": 2}]', "multiple_calls"),
        ('[{"action_id": 1}]', "not_object"),
        ('```\n[{"action_id": 1}]\n```', "not_object"),
        ("3", "not_object"),
        ('{"reasoning": "x"}', "missing_key"),
        ('{"answer": {"action_id": 3}}', "missing_key"),
        ('{"reasoning": "he said "use {"action_id": 2}" ok", "action_id": 3}', "bad_json"),
        ('{"reasoning": "never ends {\\"action_id\\": 1}', "bad_json"),
        ('<think>{"action_id": 3}', "unclosed_think"),
        ('{"action_id": ３}', "bad_json"),
    ],
)
def test_reasons(text: str, expected: str) -> None:
    assert reason(parse_action(text, 10)) == expected


def test_answer_rehearsed_in_thinking_is_not_played() -> None:
    text = '<think>maybe {"reasoning": "a", "action_id": 1}</think>\n{"reasoning": "b", "action_id": 2}'
    assert parse_action(text, 10) == Parsed(2, "b", False)
    assert parse_action('maybe {"action_id": 1}</think>{"reasoning": "b", "action_id": 2}', 10).action_id == 2


def test_tags_inside_a_string_are_text() -> None:
    text = '{"reasoning": "customer typed <think> and <tool_call>", "action_id": 2}'
    assert parse_action(text, 10) == Parsed(2, "customer typed <think> and <tool_call>", False)


def test_prose_with_braces_around_the_answer() -> None:
    assert parse_action('For {order} I say: {"reasoning": "r", "action_id": 6} Done.', 13) == Parsed(
        6, "r", True
    )


def test_cut_turns() -> None:
    assert reason(parse_action('{"reasoning": "the cust', 13, truncated=True)) == "truncated"
    assert reason(parse_action(None, 13, truncated=True)) == "truncated"
    assert parse_action('{"reasoning": "r", "action_id": 6}\nAlso, the', 13, truncated=True).action_id == 6
    assert reason(parse_action('{"reasoning": "r", "action_id": 60}', 13, truncated=True)) == "out_of_range"


def test_lone_surrogates_never_reach_a_tokenizer() -> None:
    parsed = parse_action('{"reasoning": "\\ud800x", "action_id": 1}', 13)
    assert parsed.reasoning == "\ufffdx"
    assert parse_action('\ud800{"reasoning": "y", "action_id": 1}', 13).action_id == 1


def test_message_names_reason_and_value() -> None:
    result = parse_action('{"reasoning": "x", "action_id": 13}', 13)
    assert result.message == "The action id does not exist. Seen: action_id 13, allowed 0 to 12."


REQUIRED = {"get_line": ("line_id",), "resume_line": ("line_id",), "get_bill": ("bill_id",), "done": ()}
LINE = '{"name":"get_line","arguments":{"line_id":"L9"}}'


def call(body: str, **options: bool) -> ParsedCall | Invalid:
    return parse_tool_call(f"<tool_call>{body}</tool_call>", REQUIRED, **options)


def test_call_rehearsed_in_thinking_is_not_executed() -> None:
    text = (
        '<think>maybe <tool_call>{"name":"suspend_line","arguments":{"line_id":"L9"}}</tool_call> no, '
        f"look first</think><tool_call>{LINE}</tool_call>"
    )
    parsed = parse_tool_call(text, REQUIRED)
    assert (parsed.name, parsed.arguments, parsed.repaired) == ("get_line", {"line_id": "L9"}, False)
    assert parsed.thought.startswith("maybe")


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{LINE}</tool_call><tool_call>{LINE}</tool_call>",
        f"<tool_call>{LINE}\n{LINE}</tool_call>",
        f"<tool_call>[{LINE},{LINE}]</tool_call>",
        f"<tool_call>{LINE}</tool_call><tool_call>",
        f"{LINE} {LINE}",
    ],
)
def test_two_calls_execute_nothing(text: str) -> None:
    assert reason(parse_tool_call(text, REQUIRED)) == "multiple_calls"


def test_one_call_with_words_keeps_the_words() -> None:
    parsed = parse_tool_call(f"<tool_call>{LINE}</tool_call> I look first.", REQUIRED)
    assert (parsed.name, parsed.text, parsed.repaired) == ("get_line", "I look first.", False)


def test_arguments_as_a_string_are_decoded_once() -> None:
    parsed = call('{"name":"get_bill","arguments":"{\\"bill_id\\": \\"B7\\"}"}')
    assert parsed.arguments == {"bill_id": "B7"}
    assert parsed.repaired
    assert reason(call(json.dumps({"name": "get_bill", "arguments": json.dumps('{"bill_id": "B7"}')})))


@pytest.mark.parametrize("value", ["[]", '"B7"', "5", "true", '"null"'])
def test_arguments_that_are_no_object(value: str) -> None:
    assert reason(call(f'{{"name":"get_bill","arguments":{value}}}')) == "bad_arguments"


def test_absent_arguments() -> None:
    assert call('{"name":"done"}').arguments == {}
    assert call('{"name":"done","arguments":null}').arguments == {}
    assert reason(call('{"name":"get_bill"}')) == "missing_argument"
    assert reason(call('{"name":"get_bill","arguments":null}')) == "missing_argument"
    assert reason(call('{"name":"get_bill","arguments":{"id":1}}')) == "missing_argument"


def test_calls_that_need_repair_and_calls_beyond_it() -> None:
    assert parse_tool_call(LINE, REQUIRED).repaired
    assert parse_tool_call(f"<tool_call>{LINE}", REQUIRED, truncated=True).name == "get_line"
    assert call("{'name': 'get_line', 'arguments': {'line_id': 'L9',}}").repaired
    assert reason(call('{"name":"get_line","arguments":{"line_id"')) == "bad_json"
    assert reason(call('{"name":"get_line","arguments":{"line_id"', truncated=True)) == "truncated"
    assert reason(call('{"name":7,"arguments":{}}')) == "bad_type"
    assert reason(call('{"arguments":{}}')) == "missing_key"
    assert reason(parse_tool_call("Please restart your phone.", REQUIRED)) == "no_call"


FRAGMENTS = [
    '{"reasoning": "',
    '"action_id": ',
    "{",
    "}",
    "[",
    "]",
    '"',
    "'",
    ",",
    ":",
    "\\",
    "\\u",
    "\\ud83d",
    "3",
    "-1",
]
FRAGMENTS += [
    "true",
    "NaN",
    "1e999",
    "0x1",
    "²",
    "３",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "```json\n",
]
FRAGMENTS += [
    '{"name": "get_line", "arguments": ',
    "None",
    "\n",
    "\x00",
    "\ud800",
    "é",
    " ",
    "the order",
    '{"action_id": 4}',
]


def test_fuzz_never_raises_and_never_invents_an_action() -> None:
    rng = random.Random(0)
    for _ in range(5000):
        text = "".join(rng.choices(FRAGMENTS, k=rng.randint(0, 12)))
        answer = parse_action(text, 13, truncated=rng.random() < 0.2)
        tool = parse_tool_call(text, REQUIRED, truncated=rng.random() < 0.2)
        if isinstance(answer, Parsed):
            assert type(answer.action_id) is int
            assert 0 <= answer.action_id < 13
            assert "action_id" in text
            answer.reasoning.encode()
        else:
            assert answer.reason in REASONS
        assert isinstance(tool, ParsedCall) or tool.reason in REASONS


@pytest.mark.parametrize(
    "unit", ["{", "[", '{"a":', '{"a": {', "<think>", '{"', "\\", "{'a", "</think>{", "{x "]
)
def test_time_is_linear(unit: str) -> None:
    start = time.process_time()
    for parse in (lambda t: parse_action(t, 13), lambda t: parse_tool_call(t, REQUIRED)):
        assert isinstance(parse(unit * (200_000 // len(unit))), Invalid)
    assert time.process_time() - start < 2.0  # quadratic work on 200,000 characters takes minutes


def test_unknown_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="Add it to REASONS"):
        Invalid("oops")
