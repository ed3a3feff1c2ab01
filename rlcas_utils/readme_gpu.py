"""The README's block on the large profile: memory from the plan, hours and money by arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlcas_utils.architectures import CONFIGS, sizes
from rlcas_utils.config import load_profile
from rlcas_utils.memory_plan import LIMIT_GIB, Moment, plan_memory
from rlcas_utils.run.plan import make_plan

# What an A10G is assumed to do. Nobody measured these here; `make gpu-check` does.
TRAIN_FLOPS = 25e12  # per second, a third of the card's peak in bf16
PASSES_PER_S = 12.0  # forward passes of the rollout engine, each one token for every episode in flight
FLOPS_PER_WEIGHT = 8  # per token: forward, recomputation, backward through frozen weights, reference scores
# What an episode is assumed to be, from the episodes of the desk's and the telecom expert.
DESK_TOKENS, DESK_SAMPLED = 700, 130
TELECOM_TOKENS, TELECOM_SAMPLED = 6000, 1500
CHAT_TOKENS = 400
SAMPLE_CHATS = 1000  # training chats, where no record says how many


def hours(values: Mapping[str, Mapping[str, Any]], num_chats: int) -> dict[str, float]:
    """Return estimated hours by notebook, training and evaluation together.

    Args:
        values: Parameters of notebooks 04 to 06, by stem.
        num_chats: Training chats of notebook 04.
    """
    sft, desk, telecom = (values[stem] for stem in ("04_qlora_sft", "05_grpo", "06_tau2_telecom_grpo"))
    desk_episodes = desk["NUM_STEPS"] * desk["PROMPTS_PER_STEP"] * desk["GROUP_SIZE"]
    desk_waves = desk["NUM_STEPS"] * _waves(
        desk["PROMPTS_PER_STEP"] * desk["GROUP_SIZE"], desk["ROLLOUT_BATCH"]
    )
    episodes = telecom["GRPO_TASKS"] * telecom["GRPO_GROUP"]
    waves = telecom["GRPO_STEPS"] * _waves(episodes, telecom["MAX_BATCH"])
    waves += 3 * _waves(telecom["EVAL_TASKS"] * telecom["EVAL_TRIALS"], telecom["MAX_BATCH"])
    return {
        "04": _training_s(sft, num_chats * sft["EPOCHS"] * CHAT_TOKENS) / 3600,
        "05": (_training_s(desk, desk_episodes * DESK_TOKENS) + desk_waves * DESK_SAMPLED / PASSES_PER_S)
        / 3600,
        "06": (
            _training_s(telecom, telecom["GRPO_STEPS"] * episodes * TELECOM_TOKENS)
            + waves * TELECOM_SAMPLED / PASSES_PER_S
        )
        / 3600,
    }


def _waves(episodes: int, batch: int) -> int:
    return -(-episodes // batch)


def _training_s(values: Mapping[str, Any], tokens: float) -> float:
    model = sizes(CONFIGS[values["MODEL"]])
    return FLOPS_PER_WEIGHT * (model.num_linear + model.num_embedding) * tokens / TRAIN_FLOPS


def block(root: Path, records: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the block: a table of memory and hours, and a sentence on the customer's cost.

    Args:
        root: Project folder.
        records: Of the reference run; its number of training chats is used.
    """
    from rlcas_utils.telecom.customers import cost_estimate  # loads tau2

    stages = make_plan(load_profile("a10g"), root / "runs" / "a10g")
    values = {stage.stem: stage.values for stage in stages}
    filtered = records.get("03_trajectory_filtering", {}).get("metrics", {})
    num_chats = int(filtered.get("trajectories/train_rows", {"value": SAMPLE_CHATS})["value"])
    expected = hours(values, num_chats)
    moments = plan_memory(stages)
    lines = ["| notebook | memory while training | while playing | estimated hours |", "|---|---|---|---|"]
    for stem in ("04_qlora_sft", "05_grpo", "06_tau2_telecom_grpo"):
        number = stem[:2]
        cells = [stem, _peak(moments, number, "training"), _peak(moments, number, "playing")]
        lines.append("| " + " | ".join([*cells, f"{expected[number]:.1f}"]) + " |")
    telecom = values["06_tau2_telecom_grpo"]
    episodes = 3 * telecom["EVAL_TASKS"] * telecom["EVAL_TRIALS"]
    episodes += telecom["GRPO_STEPS"] * telecom["GRPO_TASKS"] * telecom["GRPO_GROUP"]
    cost = cost_estimate(telecom["CUSTOMER"], episodes, telecom["CUSTOMER_URL"])
    return "\n".join(lines) + (
        f"\n\nMemory: computed, below the {LIMIT_GIB:.0f} GiB that a 24 GB card leaves. Hours: arithmetic "
        f"from {TRAIN_FLOPS / 1e12:.0f} TFLOP/s in training and {PASSES_PER_S:.0f} forward passes a second "
        f"while playing; they may be off by a factor of three. {cost}"
    )


def _peak(moments: list[Moment], number: str, kind: str) -> str:
    return f"{max(m.total for m in moments if m.name == f'{number} {kind}'):.1f} GiB"
