"""Several processes: the same steps as one, rewards compared over all, episodes of any length, one writer."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import two_processes
from rollout_fixtures import make_tokenizer

from rlcas_utils.config import ConfigError, load_profile, notebook_path, project_root
from rlcas_utils.handoffs import MissingHandoff
from rlcas_utils.parameters import cell_source, cell_tags, read_notebook
from rlcas_utils.run import distributed
from rlcas_utils.run.launched import EndOfCell, LaunchedStage, split_config
from rlcas_utils.run.plan import make_plan

ROOT = project_root()
QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}


def torchrun(*arguments):
    """Start two processes on this machine, as a launch would."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nproc_per_node",
        "2",
        "--rdzv-backend",
        "c10d",
    ]
    command += ["--rdzv-endpoint", "localhost:0", *map(str, arguments)]
    done = subprocess.run(
        command,
        env=os.environ | QUIET,
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=570,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="session")
def two(tmp_path_factory):
    """What two processes found: one dictionary each, and the folder they wrote."""
    folder = tmp_path_factory.mktemp("two")
    printed = torchrun(Path(two_processes.__file__), folder)
    ranks = [json.loads((folder / f"rank{rank}.json").read_text("utf-8")) for rank in (0, 1)]
    return SimpleNamespace(ranks=ranks, folder=folder, printed=printed)


def test_two_processes_really_ran(two):
    """`accelerate launch --cpu --num_processes 2` starts one process without a word; torchrun starts two."""
    assert [rank["world"] for rank in two.ranks] == [2, 2]


def test_sft_takes_the_steps_of_one_process_with_twice_the_accumulation(two, tmp_path):
    alone = two_processes.sft(make_tokenizer(), tmp_path, 1)
    for name in ("loss", "grad_norm", "num_tokens"):
        together = [row[name] for row in two.ranks[0]["sft"]]
        assert together == pytest.approx([row[name] for row in alone], rel=1e-4), name


@pytest.mark.parametrize(("kind", "group"), [("whole_groups", 4), ("split_groups", 8)])
def test_rewards_are_compared_over_all_processes(two, kind, group):
    """Advantages by hand from the rewards of both processes, groups whole or split between them."""
    for first, second in zip(*(rank[kind]["steps"] for rank in two.ranks), strict=True):
        rewards = torch.tensor(first["rewards"] + second["rewards"]).view(-1, group)
        spread = rewards.std(dim=1, keepdim=True)
        expected = ((rewards - rewards.mean(dim=1, keepdim=True)) / (spread + 1e-4)).flatten().tolist()
        assert first["advantages"] + second["advantages"] == pytest.approx(expected, abs=1e-4)
        flat = (spread == 0).flatten().repeat_interleave(group).tolist()
        assert first["idle"] + second["idle"] == flat, "row 0 pays everybody the same"


def test_episodes_may_differ_in_length_between_processes(two):
    for step in (*two.ranks[0]["split_groups"]["steps"], *two.ranks[0]["whole_groups"]["steps"]):
        assert set(step["turns"]) == {2}
    assert set(two.ranks[1]["split_groups"]["steps"][0]["turns"]) == {5}
    first, second = (rank["split_groups"]["steps"][0]["rewards"] for rank in two.ranks)
    third, fourth = (rank["split_groups"]["steps"][1]["rewards"] for rank in two.ranks)
    assert first == second == [1.0] * 4
    assert not set(third) & set(fourth), "processes that drew the same random numbers would play copies"


def test_all_processes_end_with_the_same_weights(two):
    for kind in ("whole_groups", "split_groups"):
        first, second = (rank[kind]["weights"] for rank in two.ranks)
        assert first == second


def test_one_process_writes(two):
    """One step log, one line per step, one set of progress lines, a checkpoint that can be resumed."""
    for name in ("grpo4", "grpo8"):
        lines = (two.folder / name / "steps.jsonl").read_text("utf-8").splitlines()
        assert [json.loads(line)["step"] for line in lines] == [1, 2]
    assert two.printed.count("step 2/2") == 2
    assert all(rank["whole_groups"]["resumes_from"] for rank in two.ranks)


def test_one_process_finds_the_last_step_and_trains_no_further(two, tmp_path):
    """What a launch has trained, or a run killed after its last checkpoint: no step is added to it."""
    shutil.copytree(two.folder / "sft", tmp_path / "sft")
    shutil.copytree(two.folder / "grpo4", tmp_path / "grpo4")
    rows = two_processes.sft(make_tokenizer(), tmp_path / "sft", 1)
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    assert [row["loss"] for row in rows] == [row["loss"] for row in two.ranks[0]["sft"]]
    alone = SimpleNamespace(process_index=0, num_processes=1)
    found = two_processes.play_grpo(make_tokenizer(), tmp_path / "grpo4", alone, 4)
    assert found["steps"] == []
    assert found["weights"] == two.ranks[0]["whole_groups"]["weights"]
    assert len((tmp_path / "grpo4" / "steps.jsonl").read_text("utf-8").splitlines()) == 2


def test_split_weights_play_ragged_episodes_like_whole_ones(two):
    """FSDP: 5 turns here, 11 there; a pass that waited for the other process would never end."""
    assert [rank["fsdp"]["same"] for rank in two.ranks] == [True, True]
    assert [rank["fsdp"]["turns"] for rank in two.ranks] == [5, 11]
    assert all(rank["fsdp"]["gap"] < 1e-5 for rank in two.ranks)


# ---- the launch of a notebook ------------------------------------------------------------------------------


def test_settings_are_split_so_that_a_step_stays_the_same():
    config = SimpleNamespace(
        gradient_accumulation_steps=8,
        steps_per_generation=8,
        generation_batch_size=64,
        per_device_train_batch_size=4,
    )
    split_config(config, 2)
    assert (config.gradient_accumulation_steps, config.steps_per_generation) == (4, 4)
    assert config.generation_batch_size == 32, "episodes of a step over both processes, as on one"
    with pytest.raises(ConfigError, match="4 passes per optimizer step do not divide by 3 processes"):
        split_config(config, 3)


@pytest.mark.parametrize(
    ("values", "sharded", "text"),
    [
        ({"QUANTIZE": True}, True, "Use --set QUANTIZE=false, or the DDP configuration"),
        ({"SCREEN_EPISODES": 2}, False, "SCREEN_EPISODES is 2.*--set SCREEN_EPISODES=0"),
        ({"CURRICULUM": True}, False, "CURRICULUM is True.*--set CURRICULUM=false"),
    ],
)
def test_what_several_processes_cannot_do_is_refused(values, sharded, text):
    with pytest.raises(ConfigError, match=text):
        distributed.check_values(values, sharded)


def test_the_large_profile_is_accepted():
    for stage in make_plan(load_profile("multi_gpu"), ROOT / "runs" / "multi_gpu"):
        distributed.check_values(stage.values, sharded=False)


def test_evaluations_are_left_to_the_notebook(tmp_path):
    (planned,) = [s for s in make_plan(load_profile("smoke"), tmp_path) if s.stem == "05_grpo"]
    stage = LaunchedStage(planned, tmp_path / "run", tmp_path / "scratch")
    with pytest.raises(EndOfCell):
        stage.cached("rows_base", list)
    assert stage.cached("screen", list) == []
    assert stage.output("model").parent == tmp_path / "scratch"
    assert stage.folder == tmp_path / "run" / "05_grpo"


NEEDED = {
    "04_qlora_sft": ["model, tokenizer|tokenizer = ", "train_rows = ", "config = SFTConfig(", "attach_lora("],
    "05_grpo": ["config = GRPOConfig(", "trainer = grpo.make_grpo_trainer("],
    "06_tau2_telecom_grpo": [
        "def settings()",
        "def imitate()",
        "def improve()",
        "def reward(",
        "def open_training(",
    ],
}


@pytest.mark.parametrize("stem", NEEDED)
def test_the_tagged_cells_hold_what_training_needs_and_no_evaluation(stem):
    tagged = [
        cell_source(cell)
        for cell in read_notebook(notebook_path(stem))["cells"]
        if "launch" in cell_tags(cell)
    ]
    for choices in NEEDED[stem]:
        assert any(choice in source for choice in choices.split("|") for source in tagged), choices
    assert not any("stage.finish(" in source or "stage.figure(" in source for source in tagged)


@pytest.mark.parametrize("name", ["ddp", "fsdp", "zero3"])
def test_accelerate_reads_the_configurations(name):
    from accelerate.commands.config.config_args import load_config_from_file

    config = load_config_from_file(str(ROOT / "recipes" / "accelerate" / f"{name}.yaml"))
    assert config.num_processes == 2
    assert config.mixed_precision == "bf16"
    assert config.distributed_type == {"ddp": "MULTI_GPU", "fsdp": "FSDP", "zero3": "DEEPSPEED"}[name]


SMALL_RUN = {
    "04_qlora_sft": ["NUM_STEPS=4", "ACCUMULATION=2", "NUM_QUERIES=4"],
    "05_grpo": ["NUM_STEPS=2", "NUM_VALIDATION=2", "NUM_QUERIES=4"],
    "06_tau2_telecom_grpo": ["SFT_STEPS=2", "EVAL_TRIALS=1"],
}


@pytest.mark.slow
@pytest.mark.parametrize("stems", [("04_qlora_sft", "05_grpo"), ("06_tau2_telecom_grpo",)])
def test_two_processes_train_and_the_notebook_goes_on(stems, tmp_path):
    """Launched training, then the notebook itself: it finds the last step and trains no further."""
    for stem in stems:
        arguments = ["--profile", "smoke", "--runs-dir", tmp_path]
        arguments += [word for value in SMALL_RUN[stem] for word in ("--set", f"{stem}.{value}")]
        assert "Trained by 2 processes" in torchrun("-m", "rlcas_utils.run.distributed", stem, *arguments)
        folder = tmp_path / "smoke" / stem / distributed.FOLDERS[stem]
        (checkpoint,) = folder.glob("checkpoint-*")
        before = (checkpoint / "trainer_state.json").stat().st_mtime_ns
        command = [sys.executable, "-m", "rlcas_utils.run", "--only", stem[:2], *map(str, arguments)]
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | QUIET, capture_output=True, text=True, encoding="utf-8"
        )
        assert done.returncode == 0, done.stdout[-3000:]
        assert [path.name for path in folder.glob("checkpoint-*")] == [checkpoint.name]
        assert (checkpoint / "trainer_state.json").stat().st_mtime_ns == before
        assert (tmp_path / "smoke" / "records" / f"{stem}.json").is_file()


def test_a_launch_without_its_inputs_says_what_makes_them(tmp_path, capsys):
    arguments = ["05", "--profile", "smoke", "--runs-dir", str(tmp_path)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            distributed, "launch", lambda *_: (_ for _ in ()).throw(MissingHandoff("Run notebook 04."))
        )
        assert distributed.main(arguments) == 2
    assert capsys.readouterr().err == "Nothing was run. Run notebook 04.\n"


def test_a_launcher_that_splits_weights_gets_them_unplaced():
    """FSDP and ZeRO-3 place the weights themselves; a device map would be refused or undone by them."""
    from rlcas_utils import language

    model = language.load_model("tiny", device="launcher", dtype="bfloat16")
    assert not hasattr(model, "hf_device_map")
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
