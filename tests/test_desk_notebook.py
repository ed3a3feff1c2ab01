"""The exercises of notebooks 01 to 03: the reference answers, worked by hand."""

import math

import pytest
import torch

from rlcas_utils.exercises import environment, sac, trajectories


@pytest.mark.parametrize(
    ("resolved", "shortest", "steps", "bonus"), [(True, 2, 2, 3.0), (True, 2, 4, 1.5), (False, 2, 2, 0.0)]
)
def test_the_efficiency_bonus_is_three_points_times_shortest_over_taken(resolved, shortest, steps, bonus):
    assert environment.efficiency_bonus.reference(resolved, shortest, steps) == bonus


def test_returns_to_go_halve_with_each_step_of_waiting():
    # 1 + 2/2 + 4/4 = 3; 2 + 4/2 = 4; 4.
    assert environment.returns_to_go.reference([1.0, 2.0, 4.0], 0.5) == [3.0, 4.0, 4.0]


def test_a_label_is_worth_its_commonest_ending():
    labels = ["order"] * 3 + ["refund"] * 2
    endings = ["resolve", "resolve", "ask", "billing", "ask"]
    assert environment.share_when_told.reference(labels, endings) == 3 / 5  # 2 of the orders, 1 refund


def test_a_target_keeps_the_next_value_through_the_clock_and_drops_it_at_the_end():
    ended, clock = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    two = torch.tensor([2.0, 2.0])
    target_B = sac.critic_target.reference(two / 2, ended, clock, two, two, 0.5, 0.5)
    assert target_B.tolist() == [1.0, 1.0 + 0.5 * (2.0 + 0.5 * 2.0)]


def test_the_gradient_of_log_alpha_is_alpha_times_the_surplus_of_entropy():
    gradient = sac.log_alpha_gradient.reference(torch.zeros(3, 4), math.log(0.5), 1.0)
    assert gradient.item() == pytest.approx(0.5 * (math.log(4) - 1.0))


def test_choices_left_count_the_equal_options():
    log_pi_BA = torch.tensor([[0.5, 0.5, 0.0001, 0.0001], [0.25, 0.25, 0.25, 0.25]]).log()
    assert sac.choices_left.reference(log_pi_BA).tolist() == pytest.approx([2.0, 4.0], abs=0.01)


def test_templates_take_turns_under_the_cap():
    rows = [("order", "a", "1"), ("order", "a", "2"), ("order", "b", "3"), ("refund", "c", "4")]
    assert trajectories.take_in_turn.reference(rows, 2) == ["1", "3", "4"]


def test_a_leak_is_counted_in_rows_of_the_validation_file():
    assert trajectories.count_leaked.reference(["a", "b"], ["a", "a", "c"]) == 2


def test_a_reason_may_name_what_an_earlier_answer_showed_and_nothing_later():
    shown = [{"delivered"}, {"over limit"}, set()]
    assert trajectories.early_turns.reference([set(), {"delivered"}, {"delivered"}], shown) == []
    assert trajectories.early_turns.reference([{"delivered"}, {"over limit"}, set()], shown) == [0, 1]
