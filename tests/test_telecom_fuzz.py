"""Thousands of agent messages nobody would send on purpose raise nothing, and every episode gets a score."""

import math
from collections import Counter

import pytest
from telecom_fuzz import messages

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.conversation import MAX_UNUSABLE, TelecomConversation
from rlcas_utils.telecom.customers import scripted_customer
from rlcas_utils.telecom.endings import ENDINGS

BASE = tau2.tasks("base")


def _play(count, seed):
    """Sends the messages to one customer after the other; returns how episodes ended, and the mistakes."""
    ends, mistakes, conversation, opened = Counter(), Counter(), None, 0
    for number, text in enumerate(messages(count, seed)):
        if conversation is None or conversation.done:
            task = BASE[opened % len(BASE)]
            conversation = TelecomConversation(task, scripted_customer(task, opened), max_turns=60)
            opened += 1
        answer = conversation.reply(text, truncated=number % 10 == 0)
        assert (answer is None) == conversation.done
        assert answer is None or answer.strip()
        if conversation.done:
            score = conversation.score
            assert math.isfinite(score.shaped)
            assert 0 <= score.partial <= 1
            ends[score.end] += 1
            mistakes += conversation.tool_errors
    return ends, mistakes


@pytest.mark.parametrize(
    ("count", "seed"), [(1_000, 0), pytest.param(10_000, 1, marks=pytest.mark.slow)], ids=["short", "long"]
)
def test_random_agent_messages_raise_nothing(count, seed):
    ends, mistakes = _play(count, seed)
    assert set(ends) <= set(ENDINGS) - {"infrastructure_error"}
    assert set(ends) >= {"agent_stop", "user_stop", "too_many_errors", "unusable_output"}
    kinds = {"bad_json", "no_call", "multiple_calls", "missing_argument", "bad_arguments", "unclosed_think"}
    assert set(mistakes) >= kinds | {"unknown_tool", "tool_error", "user_tool_called_by_agent", "truncated"}
    assert sum(mistakes.values()) > count / 3
    assert mistakes["neutral_sentence"] <= ends.total() * MAX_UNUSABLE


def test_the_messages_are_the_same_for_the_same_seed():
    assert list(messages(50, 3)) == list(messages(50, 3))
    assert list(messages(50, 3)) != list(messages(50, 4))
