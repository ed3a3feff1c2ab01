"""Write the telecom tasks as verl's data set: train.parquet with 74 tasks, test.parquet with 40."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pandas as pd

from rlcas_utils.telecom import prompt, tau2
from rlcas_utils.telecom.demonstrations import refuse_test_tasks

SEED = 500  # of the customers, as in notebook 06


def rows(split: str) -> list[dict[str, Any]]:
    """Return one row per task.

    Args:
        split: "train" or "test".

    Raises:
        ContaminationError: A test task is among the training tasks.
    """
    tasks = tau2.tasks(split)
    if split == "train":
        refuse_test_tasks(task.id for task in tasks)
    system = {"role": "system", "content": prompt.system_prompt("compact")}
    return [
        {
            "data_source": "tau2/telecom",
            "agent_name": "telecom",
            "prompt": [system, {"role": "user", "content": task.id}],  # the loop opens the real conversation
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {"task_id": task.id, "seed": SEED, "index": number},
        }
        for number, task in enumerate(tasks)
    ]


def main(folder: Path) -> None:
    """Write both files."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "test"):
        pd.DataFrame(rows(split)).to_parquet(folder / f"{split}.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
