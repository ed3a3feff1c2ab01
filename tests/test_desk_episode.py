"""Rewards, endings, adviser and hacking policies of one episode."""

import json

import numpy as np
import pytest

from rlcas_utils import desk
from rlcas_utils.desk import hacks
from rlcas_utils.desk.rewards import SIGNAL_NAMES, VALUES, fire


@pytest.fixture(scope="module")
def tickets():
    return {ticket.ticket_id: ticket for ticket in desk.load_tickets("benchmark")}


def by_scenario(tickets, scenario):
    return next(ticket for ticket in tickets.values() if ticket.scenario == scenario)


def test_reward_table_has_fourteen_signals():
    assert len(desk.SIGNALS) == len(set(SIGNAL_NAMES)) == 14
    assert fire(step_cost=6.0)["step_cost"] == pytest.approx(-0.6)
    with pytest.raises(KeyError):
        fire(kindness=1.0)


def test_over_limit_refund_by_hand(tickets):
    """1.65 for the order, 3.65 for the refund (it completes the evidence), 14.9 for the ending."""
    episode = desk.Episode(by_scenario(tickets, "refund_request/over_limit"))
    rewards = [episode.step(action).reward for action in (0, 1, 9)]
    assert rewards == pytest.approx([1.65, 3.65, 14.9])
    assert episode.history[-1].resolved
    assert episode.total_reward == pytest.approx(20.2)


def test_right_ending_without_evidence_is_premature(tickets):
    episode = desk.Episode(by_scenario(tickets, "refund_request/over_limit"))
    episode.step(0)
    last = episode.step(9)
    assert (last.resolved, last.outcome, last.terminated) == (False, "premature", True)
    assert last.reward == pytest.approx(2.0 - 6.0 - 0.1)


def test_naive_ending_is_wrong(tickets):
    episode = desk.Episode(by_scenario(tickets, "refund_request/fraud_flag"))
    for action in (0, 1):
        episode.step(action)
    assert episode.step(7).outcome == "wrong_ending"


def test_unneeded_escalation_costs_extra(tickets):
    last = desk.Episode(by_scenario(tickets, "order_status/in_preparation")).step(11)
    assert last.signals["unneeded_escalation"] == -2.0
    assert last.reward == pytest.approx(-8.1)


def test_missing_number_is_evidence_not_a_fault(tickets):
    episode = desk.Episode(by_scenario(tickets, "order_status/no_order_number"))
    first = episode.step(0)
    assert first.result["error"] == "missing_order_number"
    assert first.signals["failed_call"] == 0.0
    assert first.signals["evidence_complete"] == 2.0
    assert episode.step(8).resolved


def test_calling_too_early_fails_and_can_be_repaired(tickets):
    episode = desk.Episode(by_scenario(tickets, "refund_request/over_limit"))
    early = episode.step(1)
    assert early.reward == pytest.approx(-0.1 - 0.75)
    episode.step(0)
    assert episode.step(1).signals["relevant_tool"] == 1.0
    assert episode.step(9).resolved


def test_repeats_and_irrelevant_calls(tickets):
    episode = desk.Episode(by_scenario(tickets, "order_status/in_preparation"))
    episode.step(0)
    assert episode.step(0).reward == pytest.approx(-1.1)
    assert episode.step(6).reward == pytest.approx(0.5 - 1.5 - 0.1)
    assert episode.step(5).signals["irrelevant_tool"] == -1.5


def test_signals_are_complete_and_sum_to_the_reward(tickets):
    rng = np.random.default_rng(0)
    for ticket in list(tickets.values())[:20]:
        episode = desk.Episode(ticket)
        while not episode.done:
            step = episode.step(rng.integers(13))
            assert tuple(step.signals) == SIGNAL_NAMES
            assert sum(step.signals.values()) == pytest.approx(step.reward)
        assert sum(step.reward for step in episode.history) == pytest.approx(episode.total_reward)
        json.dumps([step.result for step in episode.history])


def test_consulting_costs_hints_and_does_not_end(tickets):
    episode = desk.Episode(by_scenario(tickets, "refund_request/over_limit"))
    first = episode.step(12)
    assert first.reward == pytest.approx(-0.6)
    assert first.result["hint"] == "invoke_order_service"
    assert episode.step(12).reward == pytest.approx(-1.6)
    assert not episode.done


def test_step_limit_truncates(tickets):
    episode = desk.Episode(by_scenario(tickets, "refund_request/over_limit"), max_steps=2)
    episode.step(0)
    last = episode.step(0)
    assert (last.terminated, last.truncated, last.outcome) == (False, True, "timeout")
    assert last.signals["timeout"] == VALUES["timeout"]
    with pytest.raises(RuntimeError, match="over"):
        episode.step(7)


def test_three_unusable_outputs_in_a_row_end_the_episode(tickets):
    episode = desk.Episode(by_scenario(tickets, "refund_request/over_limit"))
    first = episode.invalid("no_json")
    assert first.reward == pytest.approx(-0.1 - 1.5)
    assert first.action is None
    episode.step(0)
    results = [episode.invalid("no_json") for _ in range(3)]
    assert [result.truncated for result in results] == [False, False, True]
    assert results[-1].outcome == "invalid_output"


@pytest.mark.parametrize("bad", [True, np.bool_(False), "3", 3.0, None])
def test_action_types_that_are_refused(tickets, bad):
    with pytest.raises(TypeError, match="expected an integer"):
        desk.Episode(tickets["bench-001"]).step(bad)


@pytest.mark.parametrize("bad", [13, -1, np.int64(99)])
def test_action_ids_out_of_range_are_refused(tickets, bad):
    with pytest.raises(ValueError, match="outside"):
        desk.Episode(tickets["bench-001"]).step(bad)


def test_oracle_mean_on_the_benchmark_is_on_the_published_scale(tickets):
    rows = desk.evaluate(desk.OracleAgent(), tickets.values())
    assert all(row["resolved"] for row in rows)
    assert 19.5 <= sum(row["return"] for row in rows) / len(rows) <= 20.5


def test_oracle_follows_the_optimal_plan(tickets):
    for row in desk.evaluate(desk.OracleAgent(), tickets.values()):
        assert tuple(row["actions"]) == tickets[row["ticket_id"]].optimal_actions


def test_agents_are_ordered(tickets):
    def mean(agent):
        rows = desk.evaluate(agent, tickets.values())
        return sum(row["return"] for row in rows) / len(rows)

    assert mean(desk.RandomAgent(0)) < 0 < mean(desk.KeywordAgent()) < mean(desk.OracleAgent()) - 5


def test_no_hacking_policy_pays(tickets):
    oracle = hacks.mean_return(desk.OracleAgent(), tuple(tickets.values()))
    name, value = hacks.worst_hack(tuple(tickets.values()))
    assert value <= 0.4 * oracle, name


def test_evaluation_row_is_json_and_complete(tickets):
    row = desk.evaluate(desk.KeywordAgent(), [tickets["bench-001"]], name="rules", seed=3)[0]
    assert set(row) == {
        "agent",
        "ticket_id",
        "category",
        "seed",
        "return",
        "resolved",
        "steps",
        "parse_failures",
        "outcome",
        "actions",
        "signals",
    }
    assert json.loads(json.dumps(row)) == row
