"""Trackers and the hub: off unless asked for, refused with one sentence, and no token in what is written."""

import json
from types import SimpleNamespace

import huggingface_hub
import pytest

from rlcas_utils import trackers
from rlcas_utils.config import ConfigError, notebook_path
from rlcas_utils.parameters import read_parameters
from rlcas_utils.records import sha256_tree
from rlcas_utils.run import hub

CANARY = "hf_CANARY7f3a9d21"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("HF_TOKEN", "WANDB_API_KEY", "WANDB_MODE", "TRACKIO_SPACE_ID"):
        monkeypatch.delenv(name, raising=False)


# ---- trackers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", ["04_qlora_sft", "05_grpo", "06_tau2_telecom_grpo"])
def test_nothing_is_tracked_unless_asked_for(stem):
    trackers.require_tracker(read_parameters(notebook_path(stem))["REPORT_TO"].default)


def test_an_unknown_tracker_is_refused():
    with pytest.raises(
        ConfigError, match="REPORT_TO is 'mlflow', which is no tracker; choose one of none, tens"
    ):
        trackers.require_tracker("mlflow")


def test_a_tracker_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ConfigError, match=r"wandb is not installed.*Run pip install wandb, or set REPORT_TO to"
    ):
        trackers.require_tracker("wandb")


@pytest.mark.parametrize(
    ("name", "environment", "missing"),
    [
        ("wandb", {}, "WANDB_API_KEY"),
        ("wandb", {"WANDB_MODE": "offline"}, ""),
        ("wandb", {"WANDB_API_KEY": CANARY}, ""),
        ("trackio", {}, ""),
        ("trackio", {"TRACKIO_SPACE_ID": "me/space"}, "HF_TOKEN"),
        ("tensorboard", {}, ""),
    ],
)
def test_a_missing_key_is_named_and_none_is_shown(monkeypatch, name, environment, missing):
    monkeypatch.setattr(trackers.importlib.util, "find_spec", lambda name: object())
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    if not missing:
        trackers.require_tracker(name)
        return
    with pytest.raises(ConfigError, match=f"{missing} is not set") as caught:
        trackers.require_tracker(name)
    assert CANARY not in str(caught.value)


# ---- the hub -----------------------------------------------------------------------------------------------


@pytest.fixture
def finished(tmp_path):
    """A run folder in which stage 05 is finished."""
    model = tmp_path / "a10g" / "05_grpo" / "adapter"
    model.mkdir(parents=True)
    (model / "adapter_config.json").write_text("{}", encoding="utf-8")
    (model / "README.md").write_text("[More Information Needed]", encoding="utf-8")
    metric = {"value": 9.0812, "n": 100, "seeds": [0], "ci95": [6.81, 11.29], "unit": ""}
    record = {
        "notebook": "05_grpo",
        "profile": "a10g",
        "seed": 0,
        "parameters": {"MODEL": "Qwen/Qwen2.5-3B-Instruct", "NUM_STEPS": 482},
        "versions": {},
        "git": {},
        "hardware": {},
        "time_s": 1.0,
        "inputs": {},
        "outputs": {"05_grpo/adapter": sha256_tree(model)},
        "metrics": {"desk/grpo/return": metric},
        "fingerprint": "0",
        "figures": {},
        "peak_rss_gib": 1.0,
        "finished": "2026-11-30T00:00:00+00:00",
    }
    (tmp_path / "a10g" / "records").mkdir()
    (tmp_path / "a10g" / "records" / "05_grpo.json").write_text(json.dumps(record), encoding="utf-8")
    return tmp_path / "a10g"


@pytest.fixture
def api(monkeypatch):
    """A stand-in of the hub that keeps what it was sent."""
    seen = SimpleNamespace(files={}, made=[], token=None)

    class Api:
        def __init__(self, token):
            seen.token = token

        def create_repo(self, name, private, exist_ok):
            seen.made.append((name, private, exist_ok))

        def upload_folder(self, repo_id, folder_path, commit_message):
            from pathlib import Path

            root = Path(folder_path)
            seen.files = {
                p.relative_to(root).as_posix(): p.read_text("utf-8") for p in root.rglob("*") if p.is_file()
            }
            return SimpleNamespace(commit_url=f"https://hub/{repo_id}/commit/1")

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    return seen


def push(finished, *more):
    return hub.main(["05", "--repo", "me/agent", "--runs-dir", str(finished.parent), *more])


def test_model_card_and_records_are_pushed_privately(finished, api, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", CANARY)
    assert push(finished) == 0
    assert api.made == [("me/agent", True, True)]
    assert set(api.files) == {"README.md", "adapter_config.json", "records/05_grpo.json"}
    card = api.files["README.md"]
    assert "| desk/grpo/return | 9.081  | 6.81 to 11.3 | 100 |" in card
    assert "base_model: Qwen/Qwen2.5-3B-Instruct" in card
    assert "- NUM_STEPS: 482" in card
    printed = capsys.readouterr()
    assert "https://hub/me/agent/commit/1" in printed.out
    assert CANARY not in printed.out + printed.err + "".join(api.files.values())
    assert push(finished, "--public") == 0
    assert api.made[-1] == ("me/agent", False, True)


def test_without_a_token_nothing_is_pushed(finished, api, capsys):
    assert push(finished) == 2
    assert "HF_TOKEN is not set, so the hub would refuse the push" in capsys.readouterr().err
    assert api.made == []


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda run: (run / "records" / "05_grpo.json").unlink(), "has no finished run in a10g"),
        (
            lambda run: (run / "05_grpo/adapter/adapter_config.json").write_text("x"),
            "is not what its record says",
        ),
    ],
)
def test_what_is_not_finished_or_was_changed_is_not_published(
    finished, api, monkeypatch, capsys, spoil, sentence
):
    monkeypatch.setenv("HF_TOKEN", CANARY)
    spoil(finished)
    assert push(finished) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert "make course PROFILE=a10g ONLY=05_grpo" in said
    assert api.files == {}


def test_a_name_that_is_no_repository_is_refused(finished, api, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", CANARY)
    assert hub.main(["05", "--repo", "agent", "--runs-dir", str(finished.parent)]) == 2
    assert "'agent' is no repository; write --repo OWNER/NAME" in capsys.readouterr().err
