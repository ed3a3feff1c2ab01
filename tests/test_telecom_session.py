"""The session against tau2's own loop, its named ends, and the shared-state bug."""

import pytest

from rlcas_utils.telecom import agents, tau2
from rlcas_utils.telecom.customers import scripted_customer
from rlcas_utils.telecom.evaluation import puppet_customer
from rlcas_utils.telecom.session import DONE, RESPOND, Session

TRAIN = tau2.tasks("train")
LONGEST = sorted(TRAIN, key=lambda task: -len(task.evaluation_criteria.actions))[:2]
SAMPLE = (*LONGEST, *TRAIN[:74:15])


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


@pytest.mark.parametrize("task", SAMPLE, ids=lambda task: str(len(task.evaluation_criteria.actions)))
def test_a_stepped_session_equals_tau2s_own_run(task):
    reference = tau2.Orchestrator(
        domain="telecom",
        agent=Wrapped(agents.expert(task, 0)),
        user=scripted_customer(task, 7),
        environment=tau2.registry.get_env_constructor("telecom")(),
        task=task,
        max_steps=200,
    ).run()
    session = Session(task, scripted_customer(task, 7))
    act = agents.expert(task, 0)
    while not session.done:
        _, name, arguments = act(session.observation.text)
        session.step(name, arguments)
    assert _plain(session.simulation().messages) == _plain(reference.messages)
    assert session.end == tau2.TerminationReason(reference.termination_reason).value


def _customer_who_waits(task):
    return puppet_customer(task, 0)


def test_every_end_has_a_name():
    task = TRAIN[0]
    session = Session(task, _customer_who_waits(task))
    session.step(DONE)
    assert session.end == "agent_stop"

    session = Session(task, _customer_who_waits(task), max_turns=2)
    session.step("get_customer_by_id", {"customer_id": "C1001"})
    session.spend_turn()
    assert (session.end, session.turns) == ("max_turns", 2)

    session = Session(task, _customer_who_waits(task), max_errors=3)
    while not session.done:
        session.step("no_such_tool")
    assert (session.end, session.turns) == ("too_many_errors", 3)

    session = Session(task, _customer_who_waits(task), max_steps=6)
    while not session.done:
        session.step("get_customer_by_id", {"customer_id": "C1001"})
    assert session.end == "max_steps"

    session = Session(task, _customer_who_waits(task))
    session.step(RESPOND, {"content": "Goodbye."})
    assert session.end == "user_stop"
    with pytest.raises(RuntimeError, match="user_stop"):
        session.step(DONE)


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
