"""The log of GRPO's steps: one line a step, whole after a kill, and readable where a step has no value."""

import math

import pandas as pd
import pytest

from rlcas_utils.grpo import step_log


def test_a_step_without_a_value_does_not_spoil_the_mean(tmp_path):
    """Case 16: a step whose groups are all dead logs NaN; the mean over 0.5, NaN, 0.8 is 0.65."""
    for step, reward in enumerate([0.5, math.nan, 0.8], start=1):
        step_log.add_step(tmp_path, {"step": step, "reward": reward})
    assert pd.DataFrame(step_log.read_steps(tmp_path))["reward"].mean() == pytest.approx(0.65)


def test_a_resumed_run_drops_the_steps_after_its_checkpoint(tmp_path):
    for step in (1, 2, 3):
        step_log.add_step(tmp_path, {"step": step})
    step_log.keep_until(tmp_path, 2)
    assert [row["step"] for row in step_log.read_steps(tmp_path)] == [1, 2]
