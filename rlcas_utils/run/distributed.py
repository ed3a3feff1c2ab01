"""Train a stage on several processes: `accelerate launch -m rlcas_utils.run.distributed 05`.

The notebook's own cells are run, those tagged `launch`: data, model, settings, reward. So there is no second
copy of a recipe that could differ. Three things change. Batches are split over the processes, so that an
optimizer step sees what it sees on one. Only the first process writes. And training ends with a checkpoint in
the stage's folder, which the notebook finds: `make course` then goes on with evaluation, figures and record,
as after a break.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlcas_utils import stage as stage_module
from rlcas_utils.checkpoints import last_checkpoint
from rlcas_utils.config import ConfigError, load_profile, project_root, seed_everything
from rlcas_utils.handoffs import MissingHandoff
from rlcas_utils.run.launched import LaunchedStage, run_cells, share, split_config
from rlcas_utils.run.plan import find_stem, make_plan

FOLDERS = {"04_qlora_sft": "checkpoints", "05_grpo": "training", "06_tau2_telecom_grpo": "grpo"}
SHARDED = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED")
ENGINES = ("transformers", "vllm", "vllm-server")


def train_sft(names: dict[str, Any], processes: int, is_main: bool) -> None:
    """Train notebook 04's adapter; its settings are split already."""
    wanted = ("model", "tokenizer", "config", "train_rows", "validation_rows")
    progress = print if is_main else (lambda line: None)
    trainer = names["language"].make_sft_trainer(*(names[name] for name in wanted), progress=progress)
    names["language"].train_or_resume(trainer)


def train_grpo(names: dict[str, Any], processes: int, is_main: bool) -> None:
    """Train notebook 05's policy; its settings are split already."""
    names["language"].train_or_resume(names["trainer"])


def train_telecom(names: dict[str, Any], processes: int, is_main: bool) -> None:
    """Train notebook 06's policy: on demonstrations where asked for, then by GRPO."""
    settings, on_episodes = names["settings"], names["train_on_episodes"]
    names["settings"] = lambda: split_config(settings(), processes)
    names["train_on_episodes"] = lambda *args, episodes_per_step, **kwargs: on_episodes(
        *args, episodes_per_step=share(episodes_per_step, processes), **kwargs
    )
    names["save_file"] = lambda *args: None  # the notebook saves what it loads from the checkpoint
    names["imitate"]()
    names["improve"]()


TRAIN = {"04_qlora_sft": train_sft, "05_grpo": train_grpo, "06_tau2_telecom_grpo": train_telecom}


def check_values(values: dict[str, Any], sharded: bool) -> None:
    """Refuse values that several processes cannot train with.

    Args:
        values: All parameters of the notebook.
        sharded: FSDP or ZeRO-3 splits the weights.

    Raises:
        ConfigError: With the value to change.
    """
    if sharded and values.get("QUANTIZE"):
        raise ConfigError(
            "QUANTIZE is true, but FSDP and ZeRO-3 split 16-bit weights; 4-bit ones cannot be. "
            "Use --set QUANTIZE=false, or the DDP configuration: there each GPU holds them whole."
        )
    for name in ("SCREEN_EPISODES", "CURRICULUM"):
        if values.get(name):
            raise ConfigError(
                f"{name} is {values[name]}, but several processes neither screen nor order tasks. Use "
                f"--set {name}={'0' if name == 'SCREEN_EPISODES' else 'false'}, or run the notebook."
            )


def launch(stem: str, profile: str, settings: Sequence[str], runs_dir: Path | None, engine: str) -> None:
    """Train one stage in this process, one of those that accelerate or torchrun started.

    Args:
        stem: Such as "05" or "05_grpo".
        profile: Name of the profile.
        settings: `KEY=VALUE` changes, as for the runner.
        runs_dir: Where run folders lie; None for `runs/`.
        engine: One of `ENGINES`: who samples the episodes.
    """
    import torch
    from accelerate import PartialState

    run_dir = (runs_dir or project_root() / "runs").resolve() / profile
    plan = make_plan(load_profile(profile), run_dir, settings)
    stem = find_stem(stem, list(TRAIN))
    planned = next(stage for stage in plan if stage.stem == stem)
    sharded = any(os.environ.get(name) == "true" for name in SHARDED)
    check_values(planned.values, sharded)
    state = PartialState(cpu=not torch.cuda.is_available())
    with contextlib.ExitStack() as stack:
        if not state.is_main_process:
            silence = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
            stack.enter_context(contextlib.redirect_stdout(silence))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if state.is_main_process:
            stage_module.open_stage(stem, dict(planned.values))
            last_checkpoint(run_dir / stem / FOLDERS[stem])  # takes away a damaged one before others look
        state.wait_for_everyone()
        seed_everything(planned.values["SEED"])
        _place(sharded, state, engine)
        names = run_cells(planned, LaunchedStage(planned, run_dir, scratch), state.num_processes)
        TRAIN[stem](names, state.num_processes, state.is_main_process)
        state.wait_for_everyone()
        print(f"Trained by {state.num_processes} processes. Go on: make course PROFILE={profile} ONLY={stem}")


def _place(sharded: bool, state: Any, engine: str) -> None:
    """Change what depends on the launch: where weights are loaded, who samples, and each process's money."""
    from rlcas_utils import grpo, language
    from rlcas_utils.telecom import customers

    if sharded:
        language.load_model = functools.partial(language.load_model, device="launcher")
    if engine != "transformers":
        from rlcas_utils.rollouts.vllm_engine import make_engine

        grpo.make_grpo_trainer = functools.partial(grpo.make_grpo_trainer, engine=make_engine(engine))
    factory = customers.customer_factory

    def own_purse(*args: Any, max_usd: float, path: Path, **kwargs: Any) -> Any:
        own = path.with_stem(f"{path.stem}_{state.process_index}")
        return factory(*args, max_usd=max_usd / state.num_processes, path=own, **kwargs)

    customers.customer_factory = own_purse


def main(arguments: Sequence[str] | None = None) -> int:
    """Train a stage; the exit status is 2 when it was refused before any compute."""
    parser = argparse.ArgumentParser(prog="rlcas_utils.run.distributed", description=__doc__.split("\n")[0])
    parser.add_argument("stage", help="04, 05 or 06")
    parser.add_argument("--profile", default="multi_gpu")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="[NB.]KEY=VALUE")
    parser.add_argument("--runs-dir", type=Path)
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0], help="who samples the episodes")
    options = parser.parse_args(arguments)
    try:
        launch(options.stage, options.profile, options.settings, options.runs_dir, options.engine)
    except (ConfigError, MissingHandoff) as error:
        print(f"Nothing was run. {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
