"""The expert on the desk: what it reads, the file it travels in, and runs side by side."""

import numpy as np
import pytest
import torch

from rlcas_utils import desk
from rlcas_utils.desk import features
from rlcas_utils.sac import agent as agent_module
from rlcas_utils.sac import encoder as encoder_module
from rlcas_utils.sac.agent import SacAgent, load_expert, save_expert
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.encoder import KINDS, SentenceEncoder
from rlcas_utils.sac.encoder_training import tune_encoder
from rlcas_utils.sac.networks import Actor
from rlcas_utils.sac.parallel import Job, load_actor, train_runs
from rlcas_utils.sac.probe import TwoStepProbe
from rlcas_utils.sac.text import NUM_TEXT, hashed_components, linear_probe, make_training_desk
from rlcas_utils.sac.trainer import train


@pytest.fixture(scope="module")
def encoder():
    encoder = SentenceEncoder(rank=4, seed=1)
    with torch.no_grad():  # a fresh adapter adds zero; a used one must survive its file
        for tensor in encoder.trained_tensors().values():
            tensor.add_(0.01)
    return encoder


@pytest.fixture
def agent(encoder):
    torch.manual_seed(0)
    size = features.OBSERVATION_SIZE - NUM_TEXT + len(KINDS)
    return SacAgent(Actor(size, 13, (16,)), encoder.probabilities)


QUERIES = [ticket.query for ticket in desk.load_tickets("train")[:200]]


def test_hashed_components_are_centred_orthogonal_and_ordered():
    text_NK = hashed_components(QUERIES, 8)(QUERIES)
    assert text_NK.shape == (200, 8)
    assert np.allclose(text_NK.mean(axis=0), 0.0, atol=1e-5)
    gram = text_NK.T @ text_NK
    assert np.allclose(gram, np.diag(np.diag(gram)), atol=1e-3)
    assert (np.diff(text_NK.var(axis=0)) <= 1e-3).all()  # the largest first
    assert np.linalg.norm(text_NK, axis=1).mean() == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(ValueError, match="num_components is 9 with 2 queries"):
        hashed_components(QUERIES[:2], 9)


def test_the_text_block_is_replaced_and_the_facts_stay():
    chosen = desk.load_tickets("train")[:5]
    env = make_training_desk({ticket.query: np.ones(3, np.float32) for ticket in chosen})
    observation, _ = env.reset(seed=0)
    assert set(env.unwrapped.tickets) == {ticket.ticket_id for ticket in chosen}
    assert env.observation_space.contains(observation)
    assert observation[:3].tolist() == [1, 1, 1]
    assert np.array_equal(observation[3:], features.observation(env.unwrapped.episode)[NUM_TEXT:])


def test_a_linear_probe_separates_what_a_line_can():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 150)
    points = np.eye(3, dtype=np.float32)[labels] + 0.1 * rng.normal(size=(150, 3)).astype(np.float32)
    assert (linear_probe(points[:100], labels[:100], points[100:]) == labels[100:]).all()


def test_encoder_gives_one_probability_per_kind_in_the_order_of_the_messages(encoder):
    texts = ["Where is my refund?", "hi", QUERIES[0] * 3, "The kettle leaks."]
    together = encoder.probabilities(texts)
    assert together.shape == (4, len(KINDS))
    assert np.allclose(together.sum(axis=1), 1.0, atol=1e-5)
    for text, row in zip(texts, together, strict=True):
        assert np.allclose(encoder.probabilities([text])[0], row, atol=1e-5)  # padding changes nothing


def test_encoder_learns_kinds_from_labels_and_goes_on_from_its_checkpoint(tmp_path):
    chosen = [t for t in desk.load_tickets("train") if t.intent in ("stock", "hacked")]
    tickets = chosen[:12] + chosen[-12:]
    settings = {"num_steps": 12, "learning_rate": 3e-3, "batch_size": 8, "report": lambda line: None}
    encoder = SentenceEncoder(rank=4)
    tune_encoder(encoder, tickets, tmp_path, **settings)
    guesses = encoder.probabilities([t.query for t in tickets]).argmax(axis=1)
    assert [KINDS[g] for g in guesses] == [t.intent for t in tickets]
    again = SentenceEncoder(rank=4)
    tune_encoder(again, tickets, tmp_path, **settings)  # finished before: only read back
    for name, tensor in encoder.trained_tensors().items():
        assert torch.equal(again.trained_tensors()[name], tensor)


def test_expert_survives_its_file(tmp_path, agent, encoder):
    path = tmp_path / "expert.safetensors"
    save_expert(path, agent.actor, encoder, {"seed": 3})
    loaded, facts = load_expert(path)
    assert facts == {"seed": 3}
    for ticket in desk.load_tickets("validation")[:5]:
        episode = desk.Episode(ticket)
        assert np.array_equal(loaded.log_policy(episode), agent.log_policy(episode))
        assert loaded.act(episode) == int(np.argmax(agent.log_policy(episode)))


def test_expert_of_another_observation_or_encoder_is_refused(tmp_path, agent, encoder, monkeypatch):
    path = tmp_path / "expert.safetensors"
    save_expert(path, agent.actor, encoder, {})
    with pytest.raises(ValueError, match="answers would be noise"):
        encoder.load_trained({"head.weight": torch.zeros(1)})
    monkeypatch.setattr(agent_module, "KINDS", ("other",))
    with pytest.raises(ValueError, match=r"expert\.safetensors was trained on observation .*02_sac_training"):
        load_expert(path)


def test_missing_weights_name_the_command(monkeypatch):
    monkeypatch.setattr(encoder_module, "PACKAGE", "no_such_package")
    with pytest.raises(encoder_module.EncoderMissing, match="make env"):
        encoder_module.package_folder()


def test_sampling_repeats_with_its_seed_and_argmax_needs_none(agent):
    episode = desk.Episode(desk.load_tickets("train")[0])
    draws = [[SacAgent(agent.actor, agent.text, seed).act(episode) for seed in range(20)] for _ in "ab"]
    assert draws[0] == draws[1]
    assert len(set(draws[0])) > 1


def test_agents_that_share_their_vectors_encode_a_message_once(agent):
    encoded = []

    def text(queries):
        encoded.extend(queries)
        return agent.text(queries)

    first = SacAgent(agent.actor, text)
    second = SacAgent(agent.actor, text, seed=1, vectors=first.vectors)
    for player in (first, second):
        player.prepare(QUERIES[:2])
    assert sorted(encoded) == sorted(QUERIES[:2])


def test_runs_side_by_side_equal_a_run_alone_and_are_not_repeated(tmp_path):
    config = SacConfig(
        num_episodes=30, hidden_sizes=(8,), warmup_episodes=5, batch_size=8, buffer_capacity=100
    )
    jobs = {"one": Job(config, 0, TwoStepProbe), "two": Job(config, 1, TwoStepProbe)}
    runs = train_runs(jobs, tmp_path, num_processes=2)
    alone = train(TwoStepProbe, config, 1)
    assert runs["two"]["curves"] == alone.curves != runs["one"]["curves"]
    weights = load_actor(tmp_path, "two").state_dict()
    assert all(torch.equal(weights[name], tensor) for name, tensor in alone.actor.state_dict().items())
    before = (tmp_path / "two.json").stat().st_mtime_ns
    train_runs(jobs, tmp_path, num_processes=2)
    assert (tmp_path / "two.json").stat().st_mtime_ns == before
