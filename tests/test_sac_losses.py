"""SAC-Discrete's equations against numbers worked by hand (four actions, values 1 to 4)."""

import math
import warnings

import numpy as np
import pytest
import torch

from rlcas_utils.sac.losses import (
    actor_loss,
    alpha_loss,
    check_target_entropy,
    clamp_log_alpha,
    critic_loss,
    entropy_target,
    policy_entropy,
    soft_target,
    soft_value,
)

UNIFORM_14 = torch.log_softmax(torch.zeros(1, 4), dim=-1)
Q_14 = torch.tensor([[1.0, 2.0, 3.0, 4.0]])


@pytest.mark.parametrize(("alpha", "value"), [(0.0, 2.5), (0.2, 2.7773)])
def test_soft_value_sums_over_actions(alpha, value):
    # 2.5 + 0.2 * ln 4; the mean over actions would give 0.625.
    assert soft_value(Q_14, UNIFORM_14, alpha).item() == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize(("alpha", "value"), [(0.0, 2.5), (0.2, 2.7773)])
def test_actor_loss_is_minus_the_soft_value(alpha, value):
    assert actor_loss(UNIFORM_14, Q_14, alpha).item() == pytest.approx(-value, abs=5e-5)


def test_actor_loss_averages_over_the_batch_only():
    two = actor_loss(UNIFORM_14.repeat(2, 1), torch.cat([Q_14, Q_14 + 1]), 0.0)
    assert two.item() == pytest.approx(-3.0)


@pytest.mark.parametrize(
    ("terminated", "target"), [(1.0, 1.0), (0.0, 3.7495)], ids=["terminated", "truncated-or-running"]
)
def test_target_bootstraps_unless_terminated(terminated, target):
    got = soft_target(torch.tensor([1.0]), torch.tensor([terminated]), torch.tensor([2.7773]), gamma=0.99)
    assert got.item() == pytest.approx(target, abs=5e-5)


def test_critic_loss_reads_the_actions_taken():
    q_2BA = torch.stack([Q_14, Q_14 + 1])  # at action 2: 3 and 4
    loss = critic_loss(q_2BA, torch.tensor([2]), torch.tensor([5.0]))
    assert loss.item() == pytest.approx(0.5 * 4.0 + 0.5 * 1.0)


def test_probabilities_of_zero_stay_finite():
    log_pi = torch.log_softmax(torch.tensor([[500.0, 0.0, 0.0, 0.0]]), dim=-1).requires_grad_(True)
    loss = actor_loss(log_pi, Q_14, 0.2)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(log_pi.grad).all()
    assert policy_entropy(log_pi.detach()).item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("target", [-1.0, 0.0, math.log(10), 3.0])
def test_senseless_target_entropies_are_refused(target):
    with pytest.raises(ValueError, match=r"outside \(0, ln 10 = 2\.3026\).*TARGET_ENTROPY_FRACTION"):
        check_target_entropy(target, 10)


def test_target_entropy_near_uniform_warns_and_a_modest_one_does_not():
    with pytest.warns(UserWarning, match="near uniform"):
        assert check_target_entropy(2.2565, 10) == 2.2565
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_target_entropy(1.6118, 10) == 1.6118
        assert entropy_target(0.5, 13) == pytest.approx(1.28247, abs=1e-5)


@pytest.mark.parametrize(("entropy", "direction"), [(2.30, -1), (0.0, 1)])
def test_temperature_falls_above_the_target_and_rises_below(entropy, direction):
    log_alpha = torch.tensor(0.0, requires_grad=True)
    alpha_loss(log_alpha, torch.tensor([entropy]), 1.6118).backward()
    # d loss / d log_alpha = alpha * (H - target), at alpha = 1.
    assert log_alpha.grad.item() == pytest.approx(entropy - 1.6118, abs=1e-4)
    with torch.no_grad():
        log_alpha -= 0.1 * log_alpha.grad
    assert np.sign(log_alpha.item()) == direction


def test_temperature_stays_inside_its_clamp_when_entropy_is_stuck():
    log_alpha = torch.tensor(math.log(0.2), requires_grad=True)
    optimiser = torch.optim.Adam([log_alpha], lr=0.01)
    for _ in range(5000):
        optimiser.zero_grad()
        alpha_loss(log_alpha, torch.tensor([0.3]), 1.6118).backward()
        optimiser.step()
        clamp_log_alpha(log_alpha, (1e-3, 10.0))
    assert log_alpha.exp().item() == pytest.approx(10.0, rel=1e-5)
