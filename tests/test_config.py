import random

import numpy as np
import pytest
import torch

from rlcas_utils import config
from rlcas_utils.config import ConfigError, load_profile, profile_names, project_root, seed_everything


def test_the_project_is_found_from_any_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (project_root() / "pyproject.toml").is_file()


def test_the_profiles_exist():
    assert profile_names() == ["a10g", "cpu", "cpu_long", "multi_gpu", "smoke"]


def test_an_unknown_profile_lists_the_known_ones():
    with pytest.raises(
        ConfigError, match="'gpu' does not exist; choose one of a10g, cpu, cpu_long, multi_gpu, smoke"
    ):
        load_profile("gpu")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\nnotebooks: [", "not valid YAML"),
        ("name: x\n", "needs the keys"),
        ("name: y\ndescription: d\nnotebooks: {}\n", "write name: x"),
        ("name: x\ndescription: d\nthread: 2\nnotebooks: {}\n", "unknown keys \\['thread'\\]"),
    ],
)
def test_a_faulty_profile_is_refused_with_the_reason(tmp_path, monkeypatch, text, message):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "x.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(config, "project_root", lambda: tmp_path)
    with pytest.raises(ConfigError, match=message):
        load_profile("x")


def draws():
    return random.random(), float(np.random.rand()), float(torch.rand(1))


def test_one_seed_sets_all_generators():
    seed_everything(7)
    first = draws()
    seed_everything(7)
    assert draws() == first
    seed_everything(8)
    assert all(a != b for a, b in zip(draws(), first, strict=True))


def test_a_seed_out_of_range_is_refused():
    with pytest.raises(ConfigError, match="SEED is -1"):
        seed_everything(-1)
