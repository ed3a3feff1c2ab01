"""The seven stages of the course: what each reads from earlier ones and hands on, below the run folder."""

from __future__ import annotations

from dataclasses import dataclass

DESK = "01_environment_design"
SAC = "02_sac_training"
FILTER = "03_trajectory_filtering"
SFT = "04_qlora_sft"
GRPO = "05_grpo"
TELECOM = "06_tau2_telecom_grpo"
BENCHMARK = "07_benchmark"

TELECOM_AGENTS = ("always_transfer", "gold", "expert", "base", "sft", "grpo")


@dataclass(frozen=True)
class StageFiles:
    """The files of one stage.

    Attributes:
        reads: Files or folders that earlier stages wrote.
        writes: Files or folders that this stage must leave behind.
        data: Folders or files of the project that this stage reads, besides the package and the notebook.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    data: tuple[str, ...] = ()


def _in(stage: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{stage}/{name}" for name in names)


_DESK_ROWS = (
    *_in(DESK, "desk_random.jsonl", "desk_rules.jsonl", "desk_oracle.jsonl"),
    *_in(SAC, "desk_sac.jsonl"),
    *_in(SFT, "desk_base.jsonl", "desk_sft.jsonl"),
    *_in(GRPO, "desk_grpo.jsonl"),
)
_TELECOM_ROWS = _in(TELECOM, *(f"telecom_{agent}.jsonl" for agent in TELECOM_AGENTS))

STAGES: dict[str, StageFiles] = {
    DESK: StageFiles(writes=_DESK_ROWS[:3], data=("data/desk",)),
    SAC: StageFiles(writes=_in(SAC, "expert.safetensors", "desk_sac.jsonl"), data=("data/desk",)),
    FILTER: StageFiles(
        reads=_in(SAC, "expert.safetensors"),
        writes=_in(FILTER, "train.jsonl", "validation.jsonl"),
        data=("data/desk",),
    ),
    SFT: StageFiles(
        reads=_in(FILTER, "train.jsonl", "validation.jsonl"),
        writes=_in(SFT, "adapter", "merged", "desk_base.jsonl", "desk_sft.jsonl"),
        data=("data/desk",),
    ),
    GRPO: StageFiles(
        reads=_in(SFT, "adapter", "desk_sft.jsonl"),
        writes=_in(GRPO, "adapter", "desk_grpo.jsonl"),
        data=("data/desk",),
    ),
    TELECOM: StageFiles(writes=(*_TELECOM_ROWS, *_in(TELECOM, "model")), data=("data/telecom",)),
    BENCHMARK: StageFiles(
        reads=(*_DESK_ROWS, *_TELECOM_ROWS),
        writes=_in(BENCHMARK, "desk_table.json", "desk_table.md", "telecom_table.json", "telecom_table.md"),
        data=("data/desk", "data/published.json"),
    ),
}


def stage_files(stem: str) -> StageFiles:
    """Return the files of a stage; a notebook outside the course declares none."""
    return STAGES.get(stem, StageFiles())
