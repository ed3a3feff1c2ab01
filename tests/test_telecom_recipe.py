"""The model card's GRPO recipe is what the a10g profile runs: its values, and a step with a tiny model.

The cells of notebook 06 are executed, not copied: what is checked here is what the notebook does.
"""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from rlcas_utils import grpo, rollouts
from rlcas_utils.config import load_profile, notebook_path
from rlcas_utils.parameters import cell_source, read_notebook, read_parameters
from rlcas_utils.telecom import agents, anchors, arms, customers, demonstrations, small_model, tau2
from rlcas_utils.telecom.conversation import TelecomConversation
from rlcas_utils.telecom.scoring import Score
from rlcas_utils.telecom.training import has_fast_bf16, last_checkpoint, run_settings

STEM = "06_tau2_telecom_grpo"
CELLS = [cell_source(c) for c in read_notebook(notebook_path(STEM))["cells"] if c["cell_type"] == "code"]
CARD = {  # written down from the published model card
    "MODEL": "Qwen/Qwen3-4B-Instruct-2507",
    "CUSTOMER": "gpt-4.1-mini-2025-04-14",
    "SFT_STEPS": 0,
    "GRPO_STEPS": 14,
    "GRPO_TASKS": 12,
    "GRPO_GROUP": 8,
    "GRPO_LR": 1e-6,
    "GRPO_KL": 0.01,
    "PARTIAL_WEIGHT": 0.4,
    "MAX_TURNS": 100,
    "EVAL_TASKS": 40,
    "EVAL_TRIALS": 3,
    "EVAL_TEMPERATURE": 0.4,
    "POLICY_ARM": "compact",
}


def parameters(profile):
    """The values that a profile runs notebook 06 with."""
    defaults = {name: p.default for name, p in read_parameters(notebook_path(STEM)).items()}
    return defaults | dict(load_profile(profile).notebooks[STEM])


def cell(text):
    found = [source for source in CELLS if text in source]
    assert len(found) == 1, text
    return found[0]


def names_for(values, folder):
    """What the notebook's cells before training have defined, with these parameter values."""
    return values | {
        "grpo": grpo,
        "torch": torch,
        "np": np,
        "Counter": Counter,
        "rollouts": rollouts,
        "tau2": tau2,
        "anchors": anchors,
        "arms": arms,
        "customers": customers,
        "demonstrations": demonstrations,
        "TelecomConversation": TelecomConversation,
        "has_fast_bf16": has_fast_bf16,
        "run_settings": run_settings,
        "stage": SimpleNamespace(folder=folder, cached=lambda name, make: make()),
        "train_tasks": tau2.tasks("train"),
        "make_customer": customers.scripted_customer,
        "LIMITS": {
            "max_turn_tokens": values["MAX_TURN_TOKENS"],
            "max_episode_tokens": values["MAX_EPISODE_TOKENS"],
            "max_batch": values["MAX_BATCH"],
        },
    }


def run_cells(values, folder):
    """Executes the cells that choose rows and make TRL's settings; returns everything they define."""
    names = names_for(values, folder)
    for text in ("def reward(", "def screen()", "def settings()", "def describe("):
        exec(cell(text), names)
    return names


@pytest.mark.parametrize("profile", ["a10g", "multi_gpu"])
def test_the_gpu_profiles_hold_the_cards_values(profile):
    values = parameters(profile)
    assert {name: values[name] for name in CARD} == CARD


def test_the_cards_values_reach_trl(tmp_path):
    names = run_cells(parameters("a10g"), tmp_path)
    settings = names["settings"]()
    assert settings.max_steps == 14
    assert settings.per_device_train_batch_size * settings.gradient_accumulation_steps == 96
    assert settings.num_generations == 8
    assert (settings.learning_rate, settings.beta) == (1e-6, 0.01)
    assert settings.lr_scheduler_type == "constant"
    assert (names["plan"].num_episodes, names["plan"].num_prompts) == (96, 12)
    done = SimpleNamespace(score=Score(1.0, 0.5, 0.75, "user_stop"))
    assert names["reward"](done) == pytest.approx(1.2)  # 1 + 0.4 * 0.5


def test_74_tasks_are_padded_to_84_rows_so_that_two_epochs_are_14_steps(tmp_path):
    names = run_cells(parameters("a10g"), tmp_path)
    rows = grpo.fill_batches(names["chosen"], names["GRPO_TASKS"])
    assert len(rows) == 84
    assert [row["task_id"] for row in rows[:74]] == list(tau2.split_ids("train"))
    assert rows[74:] == rows[:10]
    assert 2 * len(rows) // names["GRPO_TASKS"] == names["GRPO_STEPS"]
    assert grpo.fill_batches(rows, 12) == rows
    assert grpo.fill_batches([1, 2], 7) == [1, 2, 1, 2, 1, 2, 1]
    with pytest.raises(ValueError, match="no training rows"):
        grpo.fill_batches([], 12)


def tiny_policy(tasks):
    """A model of one layer with random weights, and its vocabulary."""
    demos, _ = demonstrations.collect(
        tasks[::20], [0], lambda seed: agents.expert(tasks[0], seed), customers.scripted_customer
    )
    tokenizer = small_model.train_tokenizer([demonstrations.chatml(d, "none") for d in demos], 600)
    sizes = {"hidden_size": 32, "num_layers": 1, "num_heads": 1, "num_kv_heads": 1}
    return small_model.build_model(tokenizer, **sizes, seed=0), tokenizer


def test_one_step_of_the_recipe_runs_with_a_tiny_model(tmp_path):
    """All of a step's 96 episodes; only the model, its lengths and the number of steps are cut."""
    cut = {"GRPO_STEPS": 1, "MAX_TURNS": 2, "MAX_TURN_TOKENS": 6, "MAX_EPISODE_TOKENS": 400, "MAX_BATCH": 96}
    names = run_cells(parameters("a10g") | cut | {"POLICY_ARM": "none", "GRPO_BATCH": 8}, tmp_path)
    model, tokenizer = tiny_policy(names["train_tasks"])
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    played = []
    trainer = grpo.make_grpo_trainer(
        model,
        tokenizer,
        grpo.fill_batches(names["chosen"], names["GRPO_TASKS"]),
        names["open_training"],
        lambda conversation: float(len(played.append(conversation) or played) % 2),  # so that groups teach
        names["settings"](),
        names["rollout_sampling"],
        metrics=names["describe"],
        redraws=names["GRPO_REDRAWS"],
    )
    assert len(trainer.train_dataset) == 84
    trainer.train()
    assert trainer.state.global_step == 1
    assert len(played) == 96
    tasks = [conversation.task.id for conversation in played]
    assert all(len(set(tasks[k : k + 8])) == 1 for k in range(0, 96, 8))  # twelve groups of one task each
    moved = max(float((p.detach() - before[n]).abs().max()) for n, p in trainer.model.named_parameters())
    assert 0 < moved <= 1.1e-6  # AdamW's first step is the learning rate
    (step,) = grpo.read_steps(tmp_path / "grpo")
    assert step["tau2_reward"] == 0.0
    assert step["dead_group_rate"] == 0.0


def test_credit_for_turns_and_few_faults_first_run_through_the_notebooks_cells(tmp_path):
    values = {"GRPO_STEPS": 2, "GRPO_TASKS": 2, "GRPO_GROUP": 4, "GRPO_BATCH": 4, "POLICY_ARM": "none"}
    values |= {"MAX_TURNS": 3, "MAX_TURN_TOKENS": 6, "MAX_EPISODE_TOKENS": 600}
    arms_on = {"STEP_CREDIT": 1.0, "CURRICULUM": True, "REWARD_ARM": "raw_match"}
    names = run_cells(parameters("a10g") | values | arms_on, tmp_path)
    names["policy"], names["tokenizer"] = tiny_policy(names["train_tasks"])
    names["stage"].output = lambda name: tmp_path / name
    names |= {"last_checkpoint": last_checkpoint, "save_file": save_file, "trained_weights": lambda: {}}
    played = []
    names["reward"] = lambda conversation: float(len(played.append(conversation) or played) % 2)
    steps = names["improve"]()["steps"]
    assert [step["rows"] for step in steps] == [[0, 1], [2, 3]]  # in the order of the plan
    assert all(step["turns_with_credit"] > 0 for step in steps)
    assert all(len(c.anchors) == len(c.turns) for c in played)
    first = [name["task_id"] for name in names["ordered"][:2]]
    assert [c.task.id for c in played[:8:4]] == first
    assert all(len(tau2.parse_task_id(task_id).faults) == 2 for task_id in first)
