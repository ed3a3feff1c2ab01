"""The expert on the desk: compressed text, the file it travels in, and runs side by side."""

import numpy as np
import pytest
import torch

from rlcas_utils import desk
from rlcas_utils.desk import features
from rlcas_utils.sac import agent as agent_module
from rlcas_utils.sac.agent import SacAgent, load_expert, save_expert
from rlcas_utils.sac.compression import NUM_TEXT, TextCompression, fit_compression, make_training_desk
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.networks import Actor
from rlcas_utils.sac.parallel import Job, load_actor, train_runs
from rlcas_utils.sac.probe import TwoStepProbe
from rlcas_utils.sac.trainer import train


@pytest.fixture(scope="module")
def compression():
    return fit_compression(desk.load_tickets("train")[:200], 8)


@pytest.fixture
def agent(compression):
    torch.manual_seed(0)
    return SacAgent(Actor(compression.observation_size, 13, (16,)), compression)


def test_compression_keeps_the_facts_and_centres_the_text(compression):
    observations = [features.observation(desk.Episode(t)) for t in desk.load_tickets("train")[:200]]
    compressed = np.array([compression(observation) for observation in observations])
    assert compressed.shape == (200, features.OBSERVATION_SIZE - NUM_TEXT + 8)
    assert np.array_equal(compressed[:, 8:], np.array(observations)[:, NUM_TEXT:])
    gram = compression.basis_TK.T @ compression.basis_TK
    assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-4)  # directions are orthogonal
    variances = compressed[:, :8].var(axis=0)
    assert (np.diff(variances) <= 1e-3).all()  # the largest first


def test_compression_of_too_few_queries_or_another_text_block_is_refused(compression):
    with pytest.raises(ValueError, match="num_components is 9 with 2 queries"):
        fit_compression(desk.load_tickets("train")[:2], 9)
    with pytest.raises(ValueError, match="the policy would read noise"):
        TextCompression(compression.mean_T[:-1], compression.basis_TK)


def test_training_desk_gives_what_its_space_promises(compression):
    env = make_training_desk(compression)
    observation, _ = env.reset(seed=0)
    assert observation.dtype == np.float32
    assert env.observation_space.contains(observation)


def test_expert_survives_its_file(tmp_path, agent):
    path = tmp_path / "expert.safetensors"
    save_expert(path, agent, {"seed": 3})
    loaded, facts = load_expert(path)
    assert facts == {"seed": 3}
    for ticket in desk.load_tickets("validation")[:5]:
        episode = desk.Episode(ticket)
        assert np.array_equal(loaded.log_policy(episode), agent.log_policy(episode))
        assert loaded.act(episode) == int(np.argmax(agent.log_policy(episode)))


def test_expert_of_another_observation_is_refused(tmp_path, agent, monkeypatch):
    path = tmp_path / "expert.safetensors"
    save_expert(path, agent, {})
    monkeypatch.setattr(agent_module, "REFERENCE_TEXT", "other words")
    with pytest.raises(ValueError, match=r"expert\.safetensors was trained on observation .*02_sac_training"):
        load_expert(path)


def test_sampling_repeats_with_its_seed_and_argmax_needs_none(agent):
    episode = desk.Episode(desk.load_tickets("train")[0])
    draws = [
        [SacAgent(agent.actor, agent.compression, seed).act(episode) for seed in range(20)] for _ in "ab"
    ]
    assert draws[0] == draws[1]
    assert len(set(draws[0])) > 1


def test_runs_side_by_side_equal_a_run_alone_and_are_not_repeated(tmp_path):
    config = SacConfig(
        num_episodes=30, hidden_sizes=(8,), warmup_episodes=5, batch_size=8, buffer_capacity=100
    )
    jobs = {"one": Job(config, 0), "two": Job(config, 1)}
    runs = train_runs(TwoStepProbe, jobs, tmp_path, num_processes=2)
    alone = train(TwoStepProbe, config, 1)
    assert runs["two"]["curves"] == alone.curves != runs["one"]["curves"]
    weights = load_actor(tmp_path, "two").state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in alone.actor.state_dict().items())
    before = (tmp_path / "two.json").stat().st_mtime_ns
    train_runs(TwoStepProbe, jobs, tmp_path, num_processes=2)
    assert (tmp_path / "two.json").stat().st_mtime_ns == before
