"""`make gpu-check`: what it says, when it stops, and that it runs, scaled down where there is no GPU."""

import json
import time
from types import SimpleNamespace

import pytest

from rlcas_utils.memory_plan import Moment
from rlcas_utils.run import gpu_check, gpu_phases
from rlcas_utils.run.gpu_parts import Endless, Phase, StopAt

MOMENT = Moment("06 playing", 2.5, 0.4, 0.2, 1.8, 10.0, 0.1, {"cache": "Lower MAX_BATCH."})


def phase(name, peak):
    return Phase(f"{name}", name, 2, peak, 1234.0, 60.0)


def test_the_table_puts_the_plan_beside_what_was_measured():
    heads, line = gpu_check.table([phase("06 playing", 15.2)], [MOMENT], on_gpu=True)
    assert heads.split() == ["phase", "steps", "peak", "GiB", "plan", "GiB", "tokens/s", "seconds"]
    assert line.split() == ["06", "playing", "2", "15.20", "16.0", "1234", "60.0"]
    (_, line) = gpu_check.table([phase("06 playing", 0.5)], [MOMENT], on_gpu=False)
    assert line.split()[4] == "-", "main memory of a CPU is not compared with a plan for a GPU"


def test_the_verdict_names_the_phase_that_takes_too_much():
    good, bad = phase("04 training", 6.0), phase("06 playing", 22.5)
    assert gpu_check.verdict([good], on_gpu=True) == "ok: at most 6.0 GiB of 22, in 04 training."
    assert gpu_check.verdict([good, bad], on_gpu=True).startswith("NO: 06 playing took 22.5 GiB")
    assert "scaled-down" in gpu_check.verdict([good, bad], on_gpu=False)


def test_a_profile_without_a_large_model_has_nothing_to_check(capsys):
    assert gpu_check.main(["--profile", "cpu"]) == 2
    assert "Use a10g or multi_gpu" in capsys.readouterr().out


def test_training_stops_after_the_step_in_which_time_is_up():
    for deadline, stops in ((time.monotonic() + 60, False), (time.monotonic() - 1, True)):
        control = SimpleNamespace(should_training_stop=False)
        StopAt(deadline).on_step_end(None, None, control)
        assert control.should_training_stop is stops


def test_the_conversation_goes_on_until_the_budget_is_used_up():
    talk = Endless("opening", "reply")
    assert [talk.reply("ab"), talk.reply("bc", truncated=True)] == ["reply", "reply"]
    assert talk.heard == {"a", "b", "c"}


@pytest.mark.slow
def test_every_phase_runs_and_the_record_says_that_it_was_scaled_down(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert gpu_check.main(["--record", str(tmp_path / "check.json")]) == 0
    printed = capsys.readouterr().out
    assert printed.count(gpu_check.SCALED) == 2
    record = json.loads((tmp_path / "check.json").read_text("utf-8"))
    assert record["scaled_down"]
    by_name = {row["name"]: row for row in record["phases"]}
    assert {"04 SFT", "05 GRPO, playing", "05 GRPO, update", "06 GRPO, playing", "06 GRPO, update"} <= set(
        by_name
    )
    assert all(
        row["steps"] == gpu_phases.STEPS for name, row in by_name.items() if not name.startswith("load")
    )
    assert record["plan"]["06 playing"] > 10
