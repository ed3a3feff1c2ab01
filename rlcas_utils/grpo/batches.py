"""Which batch sizes fit a group size, checked before any model is loaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Row = TypeVar("Row")


@dataclass(frozen=True)
class BatchPlan:
    """Batch sizes that fit.

    Attributes:
        per_device: Episodes in one forward and backward pass of one process.
        accumulation: Such passes per optimizer step.
        group_size: Episodes per prompt.
        num_episodes: Episodes per optimizer step over all processes.
        num_prompts: Different prompts among them.
    """

    per_device: int
    accumulation: int
    group_size: int
    num_episodes: int
    num_prompts: int


def plan_batches(
    per_device: int,
    accumulation: int,
    group_size: int,
    *,
    num_processes: int = 1,
    eval_batch: int | None = None,
) -> BatchPlan:
    """Checks the sizes by the rule of the pinned TRL: batches count episodes, and groups stay whole.

    Args:
        per_device: `per_device_train_batch_size`, in episodes.
        accumulation: `gradient_accumulation_steps`.
        group_size: `num_generations`.
        num_processes: Processes of the launch.
        eval_batch: `per_device_eval_batch_size`, when the trainer evaluates.

    Raises:
        ValueError: A size does not fit; the text lists values that do.
    """
    if group_size < 2:
        raise ValueError(
            f"group size is {group_size}; an episode needs others of the same prompt to be compared with, so "
            "every advantage would be 0. Set it to 2 or more."
        )
    episodes = per_device * accumulation * num_processes
    if episodes % group_size:
        raise ValueError(
            f"{per_device} per device x {accumulation} accumulated x {num_processes} processes = {episodes} "
            f"episodes per step, which groups of {group_size} do not fill. Allowed group sizes: "
            f"{_divisors(episodes)}; or make the product a multiple of {group_size}."
        )
    if eval_batch is not None and (eval_batch * num_processes) % group_size:
        raise ValueError(
            f"evaluation batch {eval_batch} x {num_processes} processes = {eval_batch * num_processes} "
            f"episodes, which groups of {group_size} do not fill. Use a multiple of {group_size}."
        )
    return BatchPlan(per_device, accumulation, group_size, episodes, episodes // group_size)


def _divisors(number: int) -> str:
    found = [str(n) for n in range(2, number + 1) if number % n == 0]
    return ", ".join(found) or "none"


def fill_batches(rows: Sequence[Row], num_prompts: int) -> list[Row]:
    """Repeat the first rows until they fill whole batches, so that an epoch leaves no row out.

    The sampler drops what does not fill a batch: of 74 rows in batches of 12, two would be left out of each
    epoch, other ones each time.

    Args:
        rows: Training rows, each once.
        num_prompts: Different rows per optimizer step.

    Returns:
        The rows, followed by as many of the first ones as are missing.

    Raises:
        ValueError: There are no rows.
    """
    if not rows:
        raise ValueError("there are no training rows, so no batch can be filled. Choose training tasks.")
    missing = -len(rows) % num_prompts
    return [*rows, *(rows[index % len(rows)] for index in range(missing))]
