"""The Gymnasium contract, the vector observation and its speed."""

import json
import time
import warnings
from itertools import pairwise, zip_longest

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rlcas_utils import desk
from rlcas_utils.desk import features


def make(split="train"):
    return gymnasium.make("RLCAS-v0", split=split)


def played(env, actions, seed=None):
    """Play a list of actions, resetting at every end; yield all observations and ids."""
    observation, info = env.reset(seed=seed)
    yield observation.tobytes(), info["ticket_id"]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        yield observation.tobytes(), reward, info["outcome"]
        if terminated or truncated:
            observation, info = env.reset()
            yield observation.tobytes(), info["ticket_id"]


def test_check_env_has_no_complaint():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make().unwrapped)


def test_integer_types_are_equal():
    results = []
    for action in (3, np.int64(3), np.array(3)):
        env = make()
        env.reset(seed=5)
        observation, reward, *_ = env.step(action)
        results.append((observation.tobytes(), reward))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    "bad", [True, np.True_, np.array(True), 13, -1, np.int64(-1), 3.0, np.float32(3), "3", None]
)
def test_bad_actions_raise(bad):
    env = make()
    env.reset(seed=5)
    with pytest.raises((TypeError, ValueError), match=r"desk\.ACTIONS"):
        env.step(bad)


def test_same_seed_same_trajectory_and_no_interference():
    actions = np.random.default_rng(1).integers(0, 13, 50).tolist()
    alone = {seed: list(played(make(), actions, seed)) for seed in (5, 6)}
    assert list(played(make(), actions, 5)) == alone[5] != alone[6]
    in_turn = list(zip_longest(played(make(), actions, 5), played(make(), actions, 6)))
    for seed, seen in zip((5, 6), zip(*in_turn, strict=True), strict=True):
        assert [step for step in seen if step is not None] == alone[seed]


def test_a_sampled_action_is_kept_as_a_python_int():
    env = make()
    env.reset(seed=0)
    action = env.action_space.sample()
    assert not isinstance(action, int)  # a NumPy integer, which JSON does not know
    env.step(action)
    row = desk.episode_row(env.unwrapped.episode, "random")
    assert json.loads(json.dumps(row))["actions"] == [int(action)]


def test_resets_without_seed_go_on_and_repeat_over_runs():
    def ids():
        env = make()
        return [env.reset(seed=5)[1]["ticket_id"], *(env.reset()[1]["ticket_id"] for _ in range(3))]

    assert ids() == ids()
    assert len(set(ids())) == 4


def test_every_ticket_comes_once_per_pass():
    env = make("benchmark")
    ids = [env.reset(seed=0)[1]["ticket_id"], *(env.reset()[1]["ticket_id"] for _ in range(99))]
    assert len(set(ids)) == 100


def test_options_pick_a_ticket_and_refuse_unknown_ones():
    env = make("benchmark")
    assert env.reset(options={"ticket_id": "bench-007"})[1]["ticket_id"] == "bench-007"
    with pytest.raises(KeyError, match="bench-001"):
        env.reset(options={"ticket_id": "train-0001"})


def test_step_needs_reset_first():
    with pytest.raises(RuntimeError, match="reset"):
        make().unwrapped.step(0)


def test_info_holds_all_signals_and_is_json():
    env = make()
    env.reset(seed=0)
    observation, reward, _, _, info = env.step(env.action_space.sample())
    assert len(info["reward_signals"]) == 14
    assert sum(info["reward_signals"].values()) == pytest.approx(reward)
    assert observation.dtype == np.float32
    json.dumps(info)


def test_termination_and_truncation_are_apart():
    env = gymnasium.make("RLCAS-v0", split="train", max_steps=3)
    env.reset(seed=0)
    assert env.step(7)[2:4] == (True, False)
    env.reset()
    flags = [env.step(12)[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]


def test_vector_environments_work():
    envs = gymnasium.make_vec("RLCAS-v0", num_envs=3, vectorization_mode="sync")
    observations, _ = envs.reset(seed=0)
    assert observations.shape == (3, features.OBSERVATION_SIZE)
    assert envs.step(np.array([0, 3, 7]))[1].shape == (3,)


def test_slices_cover_the_vector_without_overlap():
    stops = [(block.start, block.stop) for block in features.SLICES.values()]
    assert stops[0][0] == 0
    assert all(left[1] == right[0] for left, right in pairwise(stops))
    assert stops[-1][1] == features.OBSERVATION_SIZE


def test_text_features_are_stable_and_masked():
    first = features.text_features("Where is order 104233, ada.vos@mail.example?")
    other = features.text_features("Where is order 150999, tess.doyle@inbox.example?")
    assert np.array_equal(first, other)
    assert np.linalg.norm(first[: features.NUM_WORD]) == pytest.approx(1.0, abs=1e-6)
    assert not np.any(features.text_features(""))
    assert not np.array_equal(first, features.text_features("Cancel order 104233, ada.vos@mail.example?"))


def test_category_and_hidden_truth_do_not_reach_the_vector():
    ticket = desk.load_tickets("benchmark")[0]
    copy = type(ticket)(
        "x",
        "billing",
        "charge",
        "charge/y",
        ticket.query,
        None,
        ticket.written,
        ticket.attached,
        (3, 9),
        "billing",
    )
    left, right = desk.Episode(ticket), desk.Episode(copy)
    assert np.array_equal(features.observation(left), features.observation(right))
    left.step(0)
    right.step(0)
    assert np.array_equal(features.observation(left), features.observation(right))


def test_facts_and_last_action_are_flagged():
    episode = desk.Episode(desk.load_tickets("benchmark")[0])
    episode.step(0)
    vector = features.observation(episode)
    assert vector[features.SLICES["facts"]].sum() == 2
    assert vector[features.SLICES["called"]].tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert vector[features.SLICES["last_action"]].argmax() == 0
    assert vector[-1] == pytest.approx(0.1)


def test_speed_of_the_environment():
    env = make().unwrapped
    actions = np.random.default_rng(0).integers(0, 13, 4000).tolist()
    env.reset(seed=0)
    best = 0.0
    for _ in range(3):
        env.reset(seed=0)
        start = time.process_time()
        for action in actions:
            if any(env.step(action)[2:4]):
                env.reset()
        best = max(best, len(actions) / (time.process_time() - start))
    assert best > 8000, f"{best:.0f} steps/s; 20,000 is the aim on a quiet core"
