"""The partial score by hand, and the agents that try to cheat it."""

import pytest

from rlcas_utils.telecom import agents, tau2
from rlcas_utils.telecom.customers import scripted_customer
from rlcas_utils.telecom.evaluation import puppet_customer
from rlcas_utils.telecom.scoring import Call, Score, action_done, partial_score, required_db_hash, score
from rlcas_utils.telecom.session import DONE, RESPOND, Session

TEST = tau2.tasks("test")


def _action(name, requestor="user", **arguments):
    return tau2.Action(action_id="x", name=name, arguments=arguments, requestor=requestor)


def _call(name, requestor="user", error=False, **arguments):
    return Call(requestor, name, arguments, error)


def test_an_action_counts_only_with_caller_arguments_success_and_without_undoing():
    toggle = _action("toggle_data")
    assert action_done(toggle, [_call("toggle_data")])
    assert not action_done(toggle, [])
    assert not action_done(toggle, [_call("toggle_data", requestor="assistant")])
    assert not action_done(toggle, [_call("toggle_data", error=True)])
    assert not action_done(toggle, [_call("toggle_data"), _call("toggle_data")])
    assert action_done(toggle, [_call("toggle_data")] * 3)

    refuel = _action("refuel_data", "assistant", line_id="L1002", gb_amount=2.0)
    assert action_done(refuel, [_call("refuel_data", "assistant", line_id="L1002", gb_amount=2.0)])
    assert not action_done(refuel, [_call("refuel_data", "assistant", line_id="L1002", gb_amount=1.0)])
    assert not action_done(refuel, [_call("refuel_data", "assistant")])

    roaming = _action("enable_roaming", "assistant", line_id="L1002")
    on = _call("enable_roaming", "assistant", line_id="L1002")
    off = _call("disable_roaming", "assistant", line_id="L1002")
    assert not action_done(roaming, [on, off])
    assert action_done(roaming, [on, off, on])


def _task_with_two_toggles():
    for task in tau2.tasks("small") + tau2.tasks("train"):
        names = [action.name for action in task.evaluation_criteria.actions]
        if sorted(names) == ["toggle_airplane_mode", "toggle_data"]:
            return task
    names = ["toggle_airplane_mode", "toggle_data_saver_mode"]
    return next(
        t for t in tau2.tasks("full") if sorted(a.name for a in t.evaluation_criteria.actions) == names
    )


def _after(task, *orders):
    session = Session(task, puppet_customer(task, 0))
    for order in orders:
        session.step(RESPOND, {"content": f"Please run {order} with {{}}."})
    session.step(DONE)
    return score(session)


def test_partial_score_of_a_two_step_repair():
    task = _task_with_two_toggles()
    first, second = (action.name for action in task.evaluation_criteria.actions)
    assert _after(task).partial == 0.0
    half = _after(task, first)
    assert half.partial == pytest.approx(0.25)  # one of two actions, none of the open assertions
    assert half.shaped == pytest.approx(0.1)
    undone = _after(task, first, first)
    assert (undone.partial, undone.raw_action_match) == (0.0, 0.5)  # the raw match still pays for it
    whole = _after(task, first, second)
    assert (whole.reward, whole.partial, whole.shaped) == (1.0, 1.0, 1.4)


def test_what_holds_at_the_start_earns_nothing():
    task = next(t for t in TEST if tau2.is_transfer_task(t))
    assert partial_score(task, [], [True], [True]) == 0.0
    assert partial_score(task, [], [True, False], [True, True]) == 0.5  # no action, the one open assertion


def test_a_solved_task_outranks_any_progress():
    assert Score(1.0, 0.0, 0.0, "user_stop").shaped > Score(0.0, 1.0, 1.0, "user_stop").shaped


@pytest.mark.parametrize("task", TEST[::8], ids=lambda task: task.id[:40])
def test_gold_replay_scores_one(task):
    result = agents.serve(agents.gold, task, puppet_customer(task, 0))
    assert (result.reward, result.partial) == (1.0, 1.0)


def test_the_hack_table_by_hand():
    """12 of the 40 tasks want a transfer as their only action; one of them is met by transferring at once.

    The empty calls match every required action raw, and the transfer among them even earns tau2's reward
    although the call failed for want of a summary.
    """
    hacks = (agents.do_nothing, agents.always_transfer, agents.empty_user_calls)
    nothing, transfer, empty = (
        [agents.serve(hack, task, scripted_customer(task, 0)) for task in TEST] for hack in hacks
    )

    def mean(scores, name):
        return sum(getattr(s, name) for s in scores) / len(scores)

    names = ("raw_action_match", "robust_match", "reward")
    assert [mean(nothing, n) for n in names] == [0.0, 0.0, 0.0]
    assert [mean(transfer, n) for n in names] == pytest.approx([0.3, 0.3, 0.3])
    assert mean(empty, "raw_action_match") > 0.98
    assert [mean(empty, n) for n in names[1:]] == pytest.approx([0.0, 0.3])
    assert mean(empty, "partial") == 0.0
    for task, score_of_task in zip(TEST, transfer, strict=True):  # handing over helps no customer
        if not tau2.is_transfer_task(task):
            assert score_of_task.reward == score_of_task.partial == 0.0


def test_the_required_actions_leave_the_database_as_the_expert_does():
    for task in TEST:
        session = Session(task, scripted_customer(task, 3))
        act = agents.expert(task, 0)
        while not session.done:
            _, name, arguments = act(session.observation.text)
            session.step(name, arguments)
        assert session.environment.get_db_hash() == required_db_hash(task.id), task.id
        assert score(session).flags == ()


@pytest.mark.parametrize(
    "damage",
    [
        ("suspend_line", {"customer_id": "C1002", "line_id": "L1004", "reason": "none"}),
        ("suspend_line", {"customer_id": "C1001", "line_id": "L1001", "reason": "none"}),
        ("enable_roaming", {"customer_id": "C1001", "line_id": "L1003"}),
    ],
    ids=["a stranger's line", "another line", "another line's roaming"],
)
def test_damage_that_the_reward_does_not_see_is_flagged(damage):
    """Case 32: gold replay plus one write on somebody else's line has reward 1, and the report says so."""
    task = next(t for t in TEST if "overdue_bill_suspension" not in t.id and not tau2.is_transfer_task(t))
    session = Session(task, puppet_customer(task, 0))
    act = agents.gold(task, 0)
    assert not session.step(*damage).is_error
    while not session.done:
        _, name, arguments = act(session.observation.text)
        session.step(name, arguments)
    result = score(session)
    assert (result.reward, result.flags) == (1.0, ("db_mismatch_but_reward_1",))


class _HangsUp(type(puppet_customer(TEST[0], 0))):
    """Says one thing, then another."""

    def __init__(self, last):
        super().__init__(TEST[0].user_scenario)
        self.words = iter(["My phone does not work.", last])

    def generate_next_message(self, message, state):
        return self._say(next(self.words)), state


@pytest.mark.parametrize(
    ("question", "answer", "flags"),
    [
        ("Shall I refuel 2 GB?", "Yes, please go ahead. ###STOP###", ("stopped_before_write",)),
        ("May I enable roaming? ", "###STOP### Sure.", ("stopped_before_write",)),
        ("May I enable roaming?", "That's fine with me! ###STOP###", ("stopped_before_write",)),
        ("Is it working now?", "It works, thank you. ###STOP###", ()),
        ("I enabled roaming.", "Okay. ###STOP###", ()),
        ("Shall I transfer you?", "No. ###STOP###", ()),
    ],
)
def test_a_customer_who_agrees_and_hangs_up_is_flagged(question, answer, flags):
    """Case 32: the write that was agreed to never happens; the official reward stays as it is."""
    session = Session(TEST[0], _HangsUp(answer))
    session.step(RESPOND, {"content": question})
    result = score(session)
    assert (result.end, result.flags) == ("user_stop", flags)


def test_an_unfinished_episode_has_no_score():
    session = Session(TEST[0], puppet_customer(TEST[0], 0))
    with pytest.raises(RuntimeError, match="not over"):
        score(session)
