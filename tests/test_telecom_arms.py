"""What telecom training is fed: arms of tasks and of reward, screening, the order of tasks, anchor states."""

from collections import Counter

import pytest

from rlcas_utils.telecom import agents, arms, tau2
from rlcas_utils.telecom.anchors import AnchoredConversation
from rlcas_utils.telecom.customers import scripted_customer
from rlcas_utils.telecom.demonstrations import ContaminationError
from rlcas_utils.telecom.evaluation import play_agent
from rlcas_utils.telecom.scoring import Score

TRAIN = tau2.split_ids("train")


def score(reward=0.0, partial=0.0, raw=0.0, end="user_stop"):
    return Score(reward, partial, raw, end)


def test_the_arms_of_tasks_hold_no_test_task(monkeypatch):
    strict, wide = arms.demonstration_tasks("train74"), arms.demonstration_tasks("outside_test")
    assert (len(strict), len(wide)) == (74, 2245)
    assert not {task.id for task in wide} & set(tau2.split_ids("test"))
    assert {task.id for task in strict} < {task.id for task in wide}
    monkeypatch.setattr(tau2, "tasks", lambda split: [tau2.task_by_id(i) for i in tau2.split_ids("base")])
    with pytest.raises(ContaminationError, match="40 of the training tasks belong to the test split"):
        arms.demonstration_tasks("train74")


@pytest.mark.parametrize(
    ("arm", "expected"),
    [("robust", 1.0 + 0.4 * 0.5), ("plain", 1.0), ("raw_match", 1.0 + 0.4 * 0.75)],
)
def test_reward_arms_by_hand(arm, expected):
    assert arms.training_reward(score(1.0, 0.5, 0.75), arm, 0.4) == pytest.approx(expected)
    assert arms.training_reward(score(1.0, end="infrastructure_error"), arm, 0.4) is None


def test_an_unknown_arm_is_named():
    with pytest.raises(ValueError, match="REWARD_ARM is 'raw', so it is unclear what to train on"):
        arms.training_reward(score(), "raw", 0.4)
    with pytest.raises(ValueError, match=r"TRAIN_ARM is 'all'.*train74.*outside_test"):
        arms.demonstration_tasks("all")


def test_only_the_raw_match_arm_pays_for_the_hack():
    """An agent that calls the customer's tools with {} repairs nothing and does nothing that is required."""
    task = next(t for t in tau2.tasks("train") if not tau2.is_transfer_task(t))
    hacked = agents.serve(agents.empty_user_calls, task, scripted_customer(task, 0))
    paid = {arm: arms.training_reward(hacked, arm, 0.4) for arm in arms.REWARD_ARMS}
    assert paid["robust"] == paid["plain"] == 0.0
    assert paid["raw_match"] > 0.3  # nearly every required action "matched"


def test_lost_episodes_are_no_failures_in_screening():
    lost = score(end="infrastructure_error")
    assert arms.solved_rate([score(1.0), score(), lost, lost]) == 0.5
    assert arms.solved_rate([lost, lost]) is None
    assert [arms.teaches(rate) for rate in (0.0, 0.25, 1.0, None)] == [False, True, False, True]


def steps_of(num_steps, per_step, seed=0):
    plan = arms.schedule([{"task_id": i} for i in TRAIN], num_steps, per_step, seed=seed)
    assert len(plan) == num_steps * per_step
    return [plan[k : k + per_step] for k in range(0, len(plan), per_step)]


def hands_over(row):
    return tau2.is_transfer_task(tau2.task_by_id(row["task_id"]))


def test_few_faults_come_first_and_all_later():
    """Training repairs have 2 to 9 faults; over 11 steps the limit is 2 at first and 9 from the sixth on."""
    repairs = [[arms.num_faults(row) for row in step if not hands_over(row)] for step in steps_of(11, 12)]
    assert set(repairs[0]) == {2}
    limits = [2, 3, 5, 6, 8]  # 2 + 7 * 0, 0.2, 0.4, 0.6, 0.8, rounded
    assert all(max(faults) <= limit for faults, limit in zip(repairs, limits, strict=False))
    assert max(max(faults) for faults in repairs[5:]) == 9


def test_each_step_has_its_share_of_transfers():
    """8 of 74 tasks: 12 a step makes 1.297 each, so 13 in ten steps, one or two in each."""
    counts = [sum(map(hands_over, step)) for step in steps_of(10, 12)]
    assert sum(counts) == 13
    assert set(counts) == {1, 2}


def test_the_order_repeats_with_its_seed_and_no_repair_comes_more_often_than_another():
    assert steps_of(6, 8) == steps_of(6, 8) != steps_of(6, 8, seed=1)
    late = Counter(row["task_id"] for step in steps_of(40, 12)[20:] for row in step if not hands_over(row))
    assert len(late) == 66
    assert max(late.values()) - min(late.values()) <= 2  # decks overlap at both edges
    with pytest.raises(ValueError, match="no training tasks"):
        arms.schedule([], 1, 1, seed=0)


def test_a_state_is_database_and_phone_and_not_what_was_said():
    task = next(t for t in tau2.tasks("train") if "airplane_mode_on" in t.id)
    conversation = AnchoredConversation(task, scripted_customer(task, 0), "none")
    ask = '<tool_call>{"name": "respond", "arguments": {"content": "%s"}}</tool_call>'
    conversation.reply(ask % "Good day. How are you?")
    conversation.reply(ask % "Please turn Airplane Mode off.")
    conversation.reply("nothing usable")
    first, second, third = conversation.anchors
    assert first == second != third
    whole = AnchoredConversation(task, scripted_customer(task, 0), "none")
    play_agent(agents.expert, [whole], seed=0)
    assert len(whole.anchors) == len(whole.turns)
    assert 1 < len(set(whole.anchors)) < len(whole.anchors)
