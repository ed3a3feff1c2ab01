"""The session against tau2's own loop, its named ends, and the shared-state bug."""

import pytest

from rlcas_utils.telecom import agents, tau2
from rlcas_utils.telecom.customers import scripted_customer
from rlcas_utils.telecom.endings import ENDINGS, check_ending
from rlcas_utils.telecom.evaluation import puppet_customer
from rlcas_utils.telecom.scoring import score
from rlcas_utils.telecom.session import DONE, RESPOND, CustomerFailure, Session

TRAIN = tau2.tasks("train")
LONGEST = max(TRAIN, key=lambda task: len(task.evaluation_criteria.actions))


class Wrapped(tau2.LocalAgent):
    """A scripted agent in the form that tau2's orchestrator calls."""

    def __init__(self, act):
        super().__init__(tools=[], domain_policy="")
        self.act = act
        self.calls = 0

    def get_init_state(self, message_history=None):
        return {}

    def generate_next_message(self, message, state):
        _, name, arguments = self.act(message.content)
        if name == RESPOND:
            return tau2.AssistantMessage(role="assistant", content=arguments["content"], cost=0.0), state
        if name == DONE:
            return tau2.AssistantMessage(role="assistant", content="###STOP###", cost=0.0), state
        self.calls += 1
        call = tau2.ToolCall(id=f"a{self.calls}", name=name, arguments=arguments, requestor="assistant")
        return tau2.AssistantMessage(role="assistant", tool_calls=[call], cost=0.0), state

    @classmethod
    def is_stop(cls, message):
        return message.content == "###STOP###"


def _plain(messages):
    return [
        (
            m.role,
            m.content,
            [(c.name, c.arguments, c.requestor) for c in getattr(m, "tool_calls", None) or []],
        )
        for m in messages
    ]


def _own_run(task, make_agent, **limits):
    """The episode that tau2's own loop makes."""
    return tau2.Orchestrator(
        domain="telecom",
        agent=Wrapped(make_agent(task, 0)),
        user=scripted_customer(task, 7),
        environment=tau2.registry.get_env_constructor("telecom")(),
        task=task,
        **{"max_steps": 200, **limits},
    ).run()


def _stepped(task, make_agent, **limits):
    stepped = Session(task, scripted_customer(task, 7), **limits)
    act = make_agent(task, 0)
    while not stepped.done:
        _, name, arguments = act(stepped.observation.text)
        stepped.step(name, arguments)
    return stepped


def _assert_equal(stepped, reference):
    assert _plain(stepped.simulation().messages) == _plain(reference.messages)
    assert stepped.end == tau2.TerminationReason(reference.termination_reason).value


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_stepped_session_equals_tau2s_own_run_on_all_114_tasks(split):
    for task in tau2.tasks(split):
        _assert_equal(_stepped(task, agents.expert), _own_run(task, agents.expert))


@pytest.mark.parametrize("max_steps", range(1, 40))
def test_the_message_limit_falls_where_tau2s_own_loop_lets_it_fall(max_steps):
    limits = {"max_steps": max_steps}
    task = next(task for task in TRAIN if "lock_sim_card_pin" in task.id)
    _assert_equal(_stepped(task, agents.expert, **limits), _own_run(task, agents.expert, **limits))


def _stubborn(task, seed):
    """Calls what it does not have, now and then something it has."""
    calls = iter(range(100))
    return lambda seen: (
        "",
        "reboot_device" if next(calls) % 3 else "get_customer_by_id",
        {"customer_id": "C1001"},
    )


@pytest.mark.parametrize("max_errors", [1, 2, 5, 10])
def test_the_error_limit_falls_where_tau2s_own_loop_lets_it_fall(max_errors):
    limits = {"max_errors": max_errors}
    stepped = _stepped(TRAIN[0], _stubborn, **limits)
    assert stepped.end == "too_many_errors"
    _assert_equal(stepped, _own_run(TRAIN[0], _stubborn, **limits))


def _waiting(task, **limits):
    return Session(task, puppet_customer(task, 0), **limits)


def test_every_end_has_a_name_in_the_table():
    """Case 30, first half: which endings are scored, and which say nothing about the agent."""
    task, seen = TRAIN[0], set()

    def ended(stepped, end, turns):
        assert (stepped.end, stepped.turns) == (end, turns)
        seen.add(end)

    stepped = _waiting(task)
    stepped.step(DONE)
    ended(stepped, "agent_stop", 1)

    stepped = _waiting(task, max_turns=2)
    stepped.step("get_customer_by_id", {"customer_id": "C1001"})
    stepped.spend_turn()
    ended(stepped, "max_turns", 2)

    stepped = _waiting(task, max_errors=3)
    while not stepped.done:
        stepped.step("no_such_tool")
    ended(stepped, "too_many_errors", 3)

    stepped = _waiting(task, max_steps=6)
    while not stepped.done:
        stepped.step("get_customer_by_id", {"customer_id": "C1001"})
    ended(stepped, "max_steps", 3)

    stepped = _waiting(task)
    stepped.step(RESPOND, {"content": "Goodbye."})
    ended(stepped, "user_stop", 1)
    with pytest.raises(RuntimeError, match="user_stop"):
        stepped.step(DONE)

    for reason in ("token_budget", "unusable_output"):
        stepped = _waiting(task)
        stepped.abandon(reason)
        ended(stepped, reason, 0)

    stepped = Session(task, _Failing(CustomerFailure("quota used up")))
    ended(stepped, "infrastructure_error", 0)

    assert seen == set(ENDINGS)
    assert [name for name, ending in ENDINGS.items() if ending.scored] == ["agent_stop", "user_stop"]
    assert [name for name, e in ENDINGS.items() if e.blame == "nobody"] == ["infrastructure_error"]
    with pytest.raises(ValueError, match="'bored', which no table counts"):
        stepped.abandon("bored")
    assert all(check_ending(name) == name for name in ENDINGS)


class _Failing(type(puppet_customer(TRAIN[0], 0))):
    """A customer that raises something whenever it is asked."""

    def __init__(self, error):
        super().__init__(TRAIN[0].user_scenario)
        self.error = error

    def generate_next_message(self, message, state):
        raise self.error


def test_a_customers_server_failure_ends_the_episode_and_a_bug_is_raised():
    timeout = type("Timeout", (Exception,), {"__module__": "litellm.exceptions"})("slow")
    stepped = Session(TRAIN[0], _Failing(timeout))
    assert (stepped.end, stepped.failure) == ("infrastructure_error", "Timeout: slow")
    assert score(stepped).reward == 0.0
    with pytest.raises(KeyError):
        Session(TRAIN[0], _Failing(KeyError("a bug")))


def test_an_empty_answer_of_a_model_customer_is_not_the_agents_fault():
    task = TRAIN[0]
    customer = tau2.UserSimulator(
        tools=[], instructions=str(task.user_scenario), llm="gpt-4.1-mini", llm_args={"mock_response": ""}
    )
    stepped = Session(task, customer)
    assert stepped.end == "infrastructure_error"
    assert stepped.failure.startswith("ValueError: ")


def test_a_clock_that_is_set_back_does_not_shuffle_the_record():
    task = next(task for task in TRAIN if not tau2.is_transfer_task(task))
    stepped = _stepped(task, agents.expert)
    for minute, message in enumerate(reversed(stepped.messages)):
        message.timestamp = f"2026-01-01T00:{minute:02d}:00"
    assert [m.content for m in stepped.simulation().messages] == [m.content for m in stepped.messages]
    assert score(stepped).reward == 1.0


def test_a_spoiled_vpn_stays_in_its_own_episode():
    spoiled, fresh = tau2.make_environment(), tau2.make_environment()
    spoiled.user_tools.break_vpn()
    fresh.user_tools.connect_vpn()
    assert spoiled.user_tools.device.vpn_details.server_performance.value == "poor"
    assert fresh.user_tools.device.vpn_details.server_performance.value == "excellent"


def test_environments_share_nothing():
    first, second = tau2.make_environment(), tau2.make_environment()
    first.user_tools.turn_airplane_mode_on()
    first.tools.suspend_line("C1001", "L1002", "lost phone")
    assert first.get_user_db_hash() != second.get_user_db_hash()
    assert first.get_db_hash() != second.get_db_hash()


def test_splits():
    train, test = set(tau2.split_ids("train")), set(tau2.split_ids("test"))
    assert (len(train), len(test), len(train & test)) == (74, 40, 0)
    assert sum(map(tau2.is_transfer_task, tau2.tasks("test"))) == 12
    name = tau2.parse_task_id("[mms_issue]airplane_mode_on|unseat_sim_card[PERSONA:Hard]")
    assert name == ("mms_issue", ("airplane_mode_on", "unseat_sim_card"), "Hard")
    with pytest.raises(ValueError, match="'tset' is unknown"):
        tau2.split_ids("tset")
