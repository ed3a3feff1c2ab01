"""The training loop on probe environments with known values; checkpoints; the buffer at a time limit."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from rlcas_utils.sac.buffer import ReplayBuffer
from rlcas_utils.sac.checkpoint import read_safetensors
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.learner import SacLearner
from rlcas_utils.sac.networks import Actor, TwinCritic, track
from rlcas_utils.sac.probe import StepCounter, TwoStepProbe
from rlcas_utils.sac.trainer import greedy_return, train

SMALL = SacConfig(num_episodes=40, hidden_sizes=(16,), warmup_episodes=5, batch_size=16, buffer_capacity=100)
PROBE = SacConfig(
    num_episodes=600,
    hidden_sizes=(32, 32),
    gamma=0.9,
    tau=0.02,
    actor_lr=1e-3,
    critic_lr=3e-3,
    warmup_episodes=150,
    target_entropy_fraction=0.1,
)


def same_weights(one, other):
    return all(
        torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_probe_is_solved_to_its_known_value():
    result = train(TwoStepProbe, PROBE, seed=0)
    assert greedy_return(TwoStepProbe(), result.actor, 200) == TwoStepProbe.best_return
    asked = torch.zeros(1, 9)
    asked[0, [0, 4, 7]] = 1.0  # code 0, asked, reading 2: answering 2 is worth 2 and ends the episode
    q_4 = result.learner.critic(asked).amin(dim=0)[0]
    assert q_4[2].item() == pytest.approx(2.0, abs=0.2)  # a bootstrap through termination would lift it
    assert q_4[1].item() == pytest.approx(-1.0, abs=0.5)


def test_buffer_keeps_the_last_observation_at_the_limit_and_no_ending():
    result = train(StepCounter, dataclasses.replace(SMALL, num_episodes=3), seed=0)
    arrays = result.buffer.arrays
    assert arrays["observation"][:12, 0].tolist() == [0, 1, 2, 3] * 3
    assert arrays["next_observation"][:12, 0].tolist() == [1, 2, 3, 4] * 3
    assert arrays["terminated"].sum() == 0
    assert result.curves["terminated"] == [0.0, 0.0, 0.0]


def test_buffer_overwrites_the_oldest_and_samples_rows_together():
    buffer = ReplayBuffer(3, 1)
    for k in range(5):
        buffer.add(np.array([k], np.float32), k, float(k), np.array([k + 1], np.float32), k == 4)
    assert len(buffer) == 3
    batch = buffer.sample(50, np.random.default_rng(0))
    assert set(batch.action_B.tolist()) == {2, 3, 4}
    assert torch.equal(batch.next_observation_BO, batch.observation_BO + 1)
    assert torch.equal(batch.terminated_B, (batch.action_B == 4).float())


def test_same_seed_same_run_other_seed_other_run():
    first, again, other = (train(TwoStepProbe, SMALL, seed) for seed in (0, 0, 1))
    assert first.curves == again.curves
    assert same_weights(first.actor, again.actor)
    assert first.curves["return"] != other.curves["return"]


class KilledError(Exception):
    """Stands for a killed process."""


def test_resumed_run_equals_the_unbroken_one(tmp_path):
    path = tmp_path / "run.safetensors"

    def kill_at_25(num_episodes, curves):
        if num_episodes == 25:
            raise KilledError

    with pytest.raises(KilledError):
        train(TwoStepProbe, SMALL, 3, kill_at_25, checkpoint=path, checkpoint_every=10)
    resumed = train(TwoStepProbe, SMALL, 3, checkpoint=path, checkpoint_every=10)
    unbroken = train(TwoStepProbe, SMALL, 3)
    assert resumed.curves == unbroken.curves
    assert same_weights(resumed.learner.critic, unbroken.learner.critic)
    assert (resumed.num_steps, resumed.num_updates) == (unbroken.num_steps, unbroken.num_updates)


def test_checkpoint_of_other_settings_or_seed_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    train(TwoStepProbe, SMALL, 3, checkpoint=path)
    with pytest.raises(ValueError, match="other settings"):
        train(TwoStepProbe, dataclasses.replace(SMALL, gamma=0.9), 3, checkpoint=path)
    with pytest.raises(ValueError, match="belongs to seed 3, this run is seed 4"):
        train(TwoStepProbe, SMALL, 4, checkpoint=path)


def test_damaged_file_is_named(tmp_path):
    path = tmp_path / "run.safetensors"
    path.write_bytes(b"half a file")
    with pytest.raises(ValueError, match=r"run\.safetensors is not a readable safetensors file"):
        read_safetensors(path)


def test_critics_are_two_different_networks_and_equal_plain_normalised_layers():
    torch.manual_seed(0)
    critic, observation_BO = TwinCritic(5, 3, (7, 7)), torch.randn(4, 5)
    q_2BA = critic(observation_BO)
    assert not torch.allclose(q_2BA[0], q_2BA[1])
    hidden = observation_BO
    for i in range(3):
        hidden = hidden @ critic.weights[i][1] + critic.biases[i][1]
        if i < 2:
            spread = (hidden.var(dim=1, unbiased=False, keepdim=True) + 1e-5).sqrt()
            hidden = torch.relu((hidden - hidden.mean(dim=1, keepdim=True)) / spread)
    assert torch.allclose(q_2BA[1], hidden, atol=1e-6)


def test_target_moves_by_tau():
    fast, slow = Actor(2, 2, ()), Actor(2, 2, ())
    with torch.no_grad():
        for parameter, value in ((fast, 1.0), (slow, 0.0)):
            for tensor in parameter.parameters():
                tensor.fill_(value)
    track(slow, fast, 0.25)
    assert all(torch.allclose(tensor, torch.tensor(0.25)) for tensor in slow.parameters())


def test_schedule_lowers_entropy_target_and_learning_rates_in_lines():
    config = dataclasses.replace(
        SMALL, initial_entropy_fraction=0.6, target_entropy_fraction=0.1, anneal_share=0.8, final_lr_share=0.2
    )
    learner = SacLearner(4, 13, config, 0)
    seen = []
    for share in (0.0, 0.4, 0.5, 0.75, 0.8, 1.0):
        learner.schedule(share)
        rate = learner.optimisers["critic"].param_groups[0]["lr"] / config.critic_lr
        seen.append((learner.target_entropy / np.log(13), rate))
    by_hand = [(0.6, 1.0), (0.35, 1.0), (0.2875, 1.0), (0.13125, 0.6), (0.1, 0.52), (0.1, 0.2)]
    assert np.allclose(seen, by_hand)


@pytest.mark.parametrize("change", [{"gamma": 0.0}, {"batch_size": 0}, {"initial_alpha": 99.0}, {"tau": 1.5}])
def test_bad_settings_are_named(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        dataclasses.replace(SMALL, **change)


def test_senseless_entropy_target_stops_the_learner():
    with pytest.raises(ValueError, match="outside"):
        SacLearner(4, 13, dataclasses.replace(SMALL, target_entropy_fraction=1.0), 0)


def test_learner_keeps_its_temperature_inside_the_clamp():
    """A fresh policy is above its target entropy, so alpha falls; each step would halve it and more."""
    config = dataclasses.replace(SMALL, alpha_lr=1.0, alpha_range=(0.5, 2.0))
    learner, buffer = SacLearner(1, 4, config, 0), ReplayBuffer(1, 1)
    buffer.add(np.zeros(1, np.float32), 0, 0.0, np.zeros(1, np.float32), True)
    for _ in range(3):
        learner.update(buffer.sample(4, np.random.default_rng(0)))
    assert learner.alpha == pytest.approx(0.5)


def test_settings_are_json():
    assert json.loads(json.dumps(SMALL.to_json())) == SMALL.to_json()
