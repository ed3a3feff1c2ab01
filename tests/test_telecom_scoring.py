"""The partial score by hand, and the agents that try to cheat it."""

import pytest

from rlcas_utils.telecom import agents, tau2
from rlcas_utils.telecom.customers import scripted_customer
from rlcas_utils.telecom.evaluation import puppet_customer
from rlcas_utils.telecom.scoring import Call, Score, action_done, partial_score, score
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


def test_transferring_every_call_scores_three_tenths_without_helping_anyone():
    scores = {t.id: agents.serve(agents.always_transfer, t, scripted_customer(t, 0)) for t in TEST}
    assert sum(s.reward for s in scores.values()) == 12
    fixable = [scores[t.id] for t in TEST if not tau2.is_transfer_task(t)]
    assert all(s.reward == s.partial == 0.0 for s in fixable)


def test_empty_calls_of_customer_tools_fool_the_raw_match_only():
    tasks = [t for t in TEST if not tau2.is_transfer_task(t)][::4]
    scores = [agents.serve(agents.empty_user_calls, t, scripted_customer(t, 0)) for t in tasks]
    assert sum(s.raw_action_match for s in scores) / len(scores) > 0.9
    assert all(s.reward == s.partial == 0.0 for s in scores)


@pytest.mark.parametrize("task", TEST[::8], ids=lambda task: task.id[:40])
def test_gold_replay_scores_one(task):
    result = agents.serve(agents.gold, task, puppet_customer(task, 0))
    assert (result.reward, result.partial) == (1.0, 1.0)


def test_damage_that_the_reward_does_not_see_is_flagged():
    task = next(t for t in TEST if "overdue_bill_suspension" not in t.id and not tau2.is_transfer_task(t))
    session = Session(task, puppet_customer(task, 0))
    act = agents.gold(task, 0)
    session.step("suspend_line", {"customer_id": "C1001", "line_id": "L1001", "reason": "none"})
    while not session.done:
        _, name, arguments = act(session.observation.text)
        session.step(name, arguments)
    result = score(session)
    assert (result.reward, result.flags) == (1.0, ("write_outside_gold",))


def test_an_unfinished_episode_has_no_score():
    session = Session(TEST[0], puppet_customer(TEST[0], 0))
    with pytest.raises(RuntimeError, match="not over"):
        score(session)
