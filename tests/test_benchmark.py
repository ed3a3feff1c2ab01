"""Rows, metrics and tables of the benchmark on small hand-made rows."""

import json

import pytest
from benchmark_fixtures import desk_row, telecom_row

from rlcas_utils import benchmark


class Sink:
    def __init__(self):
        self.metrics = {}

    def metric(self, name, value, *, n, seeds, ci95, unit):
        self.metrics[name] = {"value": value, "n": n, "seeds": seeds, "ci95": ci95, "unit": unit}


def test_rows_survive_writing_and_reading(tmp_path):
    rows = [desk_row(ticket="B001"), desk_row(ticket="B002", outcome="größer")]
    path = benchmark.write_rows(tmp_path / "desk_sac.jsonl", rows)
    assert benchmark.read_rows(path) == rows
    assert path.read_bytes().count(b"\n") == 2


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("return", float("nan"), "finite number"),
        ("return", True, "finite number"),
        ("steps", 0, "from 1"),
        ("resolved", 1, "true or false"),
        ("seed", -1, "from 0"),
        ("actions", [0, True], "action ids"),
        ("signals", {"a": "x"}, "finite numbers"),
        ("category", "", "non-empty"),
        ("parse_failures", 4, "4 in 3 steps"),
    ],
)
def test_wrong_desk_field_is_named(tmp_path, field, value, wanted):
    path = tmp_path / "desk_sac.jsonl"
    lines = [desk_row(), desk_row(ticket="B002", **{field: value})]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(benchmark.RowError, match=wanted) as error:
        benchmark.read_rows(path)
    assert "desk_sac.jsonl, line 2" in str(error.value)
    assert repr(field) in str(error.value)


@pytest.mark.parametrize("field", ["reward", "group", "first_transfer_turn", "tool_errors", "trial"])
def test_missing_or_wrong_telecom_field_is_named(tmp_path, field):
    row = telecom_row()
    row[field] = "wrong"
    with pytest.raises(benchmark.RowError, match=f"line 1: field '{field}' is 'wrong'"):
        benchmark.check_rows([row], "telecom_grpo.jsonl")
    del row[field]
    with pytest.raises(benchmark.RowError, match=f"field '{field}' is missing"):
        benchmark.check_rows([row], "telecom_grpo.jsonl")


def test_cut_line_names_file_and_line(tmp_path):
    path = tmp_path / "desk_sac.jsonl"
    whole = json.dumps(desk_row())
    path.write_text(f"{whole}\n{whole[:40]}")
    with pytest.raises(benchmark.RowError, match=r"desk_sac.jsonl, line 2: not JSON"):
        benchmark.read_rows(path)
    path.write_text("")
    with pytest.raises(benchmark.RowError, match="no rows"):
        benchmark.read_rows(path)


def test_an_episode_twice_is_refused_and_nothing_is_written(tmp_path):
    path = tmp_path / "desk_sac.jsonl"
    with pytest.raises(benchmark.RowError, match="on line 1 already"):
        benchmark.write_rows(path, [desk_row(), desk_row()])
    assert not path.exists()


def test_desk_metrics_by_hand():
    rows = [
        desk_row(ticket="B1", steps=2, **{"return": 18.0}),
        desk_row(ticket="B2", steps=4, resolved=False, parse_failures=3, **{"return": 2.0}),
    ]
    metrics = benchmark.desk_metrics(rows)
    assert set(metrics) == {
        "desk/sac/return",
        "desk/sac/resolution_rate",
        "desk/sac/steps",
        "desk/sac/parse_failure_rate",
    }
    assert metrics["desk/sac/return"]["value"] == 10.0
    assert metrics["desk/sac/resolution_rate"]["value"] == 0.5
    assert metrics["desk/sac/steps"]["value"] == 3.0
    assert metrics["desk/sac/parse_failure_rate"]["value"] == 3 / 6
    assert metrics["desk/sac/return"]["n"] == 2


def test_seeds_of_one_ticket_do_not_count_as_tickets():
    rows = [desk_row(ticket=f"B{t}", seed=s, **{"return": float(t)}) for t in range(5) for s in range(4)]
    metrics = benchmark.desk_metrics(rows)["desk/sac/return"]
    assert (metrics["n"], metrics["seeds"]) == (5, [0, 1, 2, 3])


def test_perfect_resolution_keeps_a_width():
    metric = benchmark.desk_metrics([desk_row(ticket=f"B{i}") for i in range(10)])["desk/sac/resolution_rate"]
    assert metric["value"] == 1.0
    assert metric["ci95"][0] < 0.8


def test_difference_is_paired_by_ticket():
    a = [desk_row(ticket=f"B{i}", **{"return": float(i) + 1}) for i in range(9)]
    b = [desk_row("sft", f"B{i}", seed=7, **{"return": float(i)}) for i in range(9)]
    difference = benchmark.desk_difference(a, b)
    assert (difference.value, difference.low, difference.high) == (1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="1 are only in a"):
        benchmark.desk_difference(a, b[1:])


def test_telecom_metrics_by_hand():
    """Three trials each: solved 3, 1 and 0 times; the last task is a transfer task."""
    rewards = {"T1": [1, 1, 1], "T2": [0, 1, 0], "T3": [0, 0, 0]}
    rows = [
        telecom_row(task, trial, float(reward), group="transfer" if task == "T3" else "fixable")
        for task, own in rewards.items()
        for trial, reward in enumerate(own)
    ]
    rows[-1] |= {"transferred": True, "first_transfer_turn": 4}
    metrics = benchmark.telecom_metrics(rows)
    value = {name.removeprefix("telecom/grpo/"): entry["value"] for name, entry in metrics.items()}
    assert value["avg@3"] == pytest.approx(4 / 9)
    assert value["pass@3"] == pytest.approx(2 / 3)
    assert value["pass^3"] == pytest.approx(1 / 3)
    assert value["fixable/avg@3"] == pytest.approx(4 / 6)
    assert value["transfer/pass@3"] == 0.0
    assert value["transfer_rate"] == pytest.approx(1 / 9)
    assert value["first_transfer_turn_median"] == 4
    assert metrics["telecom/grpo/avg@3"]["n"] == 3
    assert benchmark.histogram(rows) == {"0/3": 1, "1/3": 1, "2/3": 0, "3/3": 1}


def test_one_finished_trial_of_forty_is_no_headline():
    rows = [telecom_row(f"T{t}", k, 0.0, end="infrastructure_error") for t in range(10) for k in range(4)]
    rows[0] |= {"reward": 1.0, "end": "user_stop"}
    metrics = benchmark.telecom_metrics(rows)
    assert benchmark.coverage(rows) == (1, 40)
    assert set(metrics) == {"telecom/grpo/coverage", "telecom/grpo/avg_if_lost_trials_failed"}
    assert metrics["telecom/grpo/avg_if_lost_trials_failed"]["value"] == 0.025


def test_endings_that_are_the_agents_fault_count_as_zero():
    ends = ["max_steps"] * 4 + ["too_many_errors"] * 4 + ["user_stop"] * 2
    rows = [telecom_row(f"T{i}", 0, float(end == "user_stop"), end=end) for i, end in enumerate(ends)]
    assert benchmark.coverage(rows) == (10, 10)
    assert benchmark.telecom_metrics(rows)["telecom/grpo/avg@1"]["value"] == 0.2


def test_recording_hands_each_metric_to_the_stage():
    sink = Sink()
    benchmark.record_desk(sink, [desk_row(ticket="B1"), desk_row(ticket="B2")])
    benchmark.record_telecom(sink, [telecom_row("T1"), telecom_row("T2", 0, 0.0)])
    assert sink.metrics["desk/sac/return"]["value"] == 20.0
    assert sink.metrics["telecom/grpo/avg@1"]["value"] == 0.5


def test_the_published_histogram_gives_the_published_figures():
    """25, 3, 2 and 10 tasks solved 0 to 3 times are 37 of 120 trials, 15 tasks at least once, 10 always."""
    card = benchmark.published("telecom")["agents"]["grpo"]
    tasks = benchmark.expand_histogram(card["histogram"])
    assert sum(map(sum, tasks)) / 120 == pytest.approx(card["avg@3"], abs=5e-4)
    assert sum(any(task) for task in tasks) / 40 == card["pass@3"]
    assert sum(all(task) for task in tasks) / 40 == card["pass^3"]
    interval = benchmark.published_interval(card["histogram"])
    assert (interval.high - interval.low) / 3.92 > 1.5 * card["stated_error_avg@3"]


def test_only_shared_units_are_kept():
    rows = {
        "sac": [desk_row(ticket="B1"), desk_row(ticket="B2")],
        "sft": [desk_row("sft", "B2"), desk_row("sft", "B3"), desk_row("sft", "B2", seed=1)],
    }
    kept, dropped = benchmark.shared_rows(rows, "ticket_id")
    assert [row["ticket_id"] for row in kept["sac"]] == ["B2"]
    assert len(kept["sft"]) == 2
    assert dropped == 2
    with pytest.raises(ValueError, match="No ticket_id was played by all of sac, sft"):
        benchmark.shared_rows({"sac": rows["sac"][:1], "sft": rows["sft"][1:2]}, "ticket_id")
