"""Group-relative policy optimisation over whole episodes: advantages, batch rules, trainer, step log.

``import rlcas_utils.grpo`` is light; the trainer loads TRL when it is first used.
"""

from typing import TYPE_CHECKING, Any

from rlcas_utils.grpo.advantages import (
    clipped_objective,
    dead_group_probability,
    dead_group_rate,
    group_advantages,
)
from rlcas_utils.grpo.batches import BatchPlan, fill_batches, plan_batches
from rlcas_utils.grpo.step_log import read_steps
from rlcas_utils.grpo.steps import StepCredit, step_advantages

if TYPE_CHECKING:
    from rlcas_utils.grpo.trainer import EpisodicGRPOTrainer, make_grpo_trainer

__all__ = [
    "BatchPlan",
    "EpisodicGRPOTrainer",
    "StepCredit",
    "clipped_objective",
    "dead_group_probability",
    "dead_group_rate",
    "fill_batches",
    "group_advantages",
    "make_grpo_trainer",
    "plan_batches",
    "read_steps",
    "step_advantages",
]


def __getattr__(name: str) -> Any:
    """Imports the trainer on first use."""
    if name not in ("EpisodicGRPOTrainer", "make_grpo_trainer"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rlcas_utils.grpo import trainer

    return getattr(trainer, name)
