"""The comparison with Tianshou: what it takes from the course, and its arithmetic; it needs no Tianshou."""

import dataclasses
import importlib.util
import math
import sys

import numpy as np
import pytest
import torch

from rlcas_utils.config import project_root
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.probe import TwoStepProbe


@pytest.fixture(scope="module")
def script():
    path = project_root() / "benchmarks" / "sac_against_tianshou.py"
    spec = importlib.util.spec_from_file_location("sac_against_tianshou", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_settings_are_those_of_the_notebook(script):
    course = script.course_config(70)
    given = script.read_parameters(script.NOTEBOOK)
    assert course.num_episodes == 70
    assert (course.gamma, course.tau) == (given["GAMMA"].default, given["TAU"].default)
    assert course.hidden_sizes == tuple(given["HIDDEN_SIZES"].default)
    assert course.return_share == given["RETURN_SHARE"].default != SacConfig(return_share=0.0).return_share


def test_plain_differs_from_the_course_only_in_what_it_takes_away(script):
    course = script.course_config(70)
    plain = script.plain_config(course, 0.3)
    taken = {"return_share", "initial_entropy_fraction", "target_entropy_fraction", "final_lr_share"}
    values = [(name, plain.to_json()[name], course.to_json()[name]) for name in course.to_json()]
    assert {name for name, one, other in values if one != other} == taken
    assert (plain.return_share, plain.final_lr_share) == (0.0, 1.0)
    assert plain.initial_entropy_fraction == plain.target_entropy_fraction == 0.3


def test_our_arm_counts_its_steps_and_updates(script):
    config = SacConfig(num_episodes=12, hidden_sizes=(8,), warmup_episodes=10, updates_per_step=2.0)
    trained = script.train_ours(TwoStepProbe, config, seed=0)
    again = script.train_ours(TwoStepProbe, dataclasses.replace(config, num_episodes=10), seed=0)
    assert again.updates == 0  # random episodes only
    assert trained.updates == 2 * (trained.steps - again.steps) > 0
    assert trained.clock.wall_s > 0
    assert trained.policy(torch.zeros(3, TwoStepProbe().observation_space.shape[0])).shape[0] == 3


def test_the_environment_without_info_is_otherwise_the_same(script):
    ours, bare = TwoStepProbe(), script.WithoutInfo(TwoStepProbe())
    observation, info = bare.reset(seed=3)
    assert np.array_equal(observation, ours.reset(seed=3)[0])
    assert info == {}
    left, right = bare.step(1), ours.step(1)
    assert np.array_equal(left[0], right[0])
    assert left[1:] == (*right[1:4], {})


def run(arm, seed, steps, wall_s, cpu_s, value):
    scores = {split: {"return": value, "resolved": 1.0} for split in ("validation", "benchmark")}
    return {"arm": arm, "seed": seed, "steps": steps, "wall_s": wall_s, "cpu_s": cpu_s, **scores}


def rows(*values_by_seed):
    """Episodes of two tickets for each seed."""
    own = [
        {"ticket_id": f"t{i}", "seed": seed, "return": value}
        for seed, values in enumerate(values_by_seed)
        for i, value in enumerate(values)
    ]
    return {"validation": own, "benchmark": own}


def test_returns_are_paired_and_seconds_are_per_step(script):
    """Seed 0: 10 s for 100 steps beside 40 s for 200, half; seed 1: 5 s beside 40 s for 100, an eighth."""
    runs = [run("plain", 0, 100, 10.0, 8.0, 3.0), run("tianshou", 0, 200, 40.0, 16.0, 1.0)]
    runs += [run("plain", 1, 100, 5.0, 2.0, 5.0), run("tianshou", 1, 100, 40.0, 8.0, 5.5)]
    own = {"plain": rows([2.0, 4.0], [4.0, 6.0]), "tianshou": rows([0.0, 2.0], [5.0, 6.0])}
    found = script.compare(runs, own, "plain")
    assert found["wall_s_per_step_ratio"] == {"geometric_mean": 0.25, "by_seed": [0.5, 0.125]}
    assert found["cpu_s_per_step_ratio"]["by_seed"] == [1.0, 0.25]
    # Tickets: (2 - 1) / 2 = 0.5 and (2 + 0) / 2 = 1; Student's t with one degree of freedom.
    assert found["benchmark"]["difference"] == 0.75
    assert found["benchmark"]["tickets"] == 2
    half = 12.7062 * math.sqrt(0.125) / math.sqrt(2)
    assert found["benchmark"]["ci95"] == pytest.approx((0.75 - half, 0.75 + half), abs=1e-3)
    assert found["validation"]["by_seed"] == [2.0, -0.5]


def test_without_tianshou_the_command_is_named(script, monkeypatch, capsys):
    monkeypatch.setattr(script.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["sac_against_tianshou.py"])
    with pytest.raises(SystemExit):
        script.main()
    assert "make benchmark" in capsys.readouterr().err
