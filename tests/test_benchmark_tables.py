"""Tables on hand-made rows: order, notes, published figures, Markdown and JSON."""

import json

import pytest
from benchmark_fixtures import desk_row, telecom_row

from rlcas_utils.benchmark import tables, views

DESK = {
    "sac": [desk_row("sac", f"B{i}", **{"return": 18.0 + i}) for i in range(4)],
    "grpo": [desk_row("grpo", f"B{i}", **{"return": 17.0 + i}) for i in range(4)],
}


def test_desk_table_has_every_agent_in_order_with_its_reason():
    table = tables.desk_table(DESK, {"gpt_4o_mini": "needs OPENAI_API_KEY"}).set_index("agent")
    assert list(table.index)[:4] == ["random", "rules", "oracle", "sac"]
    assert table.loc["sac", "return"] == 19.5
    assert table.loc["sac", "published_return"] == 19.36
    assert table.loc["gpt_4o_mini", "note"] == "needs OPENAI_API_KEY"
    assert table.loc["rules", "note"] == "not run"


def test_agent_with_missing_tickets_gets_no_headline():
    part = DESK | {"sft": [desk_row("sft", "B0")]}
    line = tables.desk_table(part).set_index("agent").loc["sft"]
    assert line["note"] == "1 of 4 tickets evaluated: no headline"
    assert line[["return"]].isna().all()


def test_differences_are_paired():
    line = tables.difference_table(DESK).set_index(["a", "b"]).loc[("grpo", "sac")]
    assert (line["return"], line["tickets"]) == (-1.0, 4)
    assert line["resolution_rate"] == 0.0
    assert line["resolution_rate_low"] < 0 < line["resolution_rate_high"]


def test_category_view_has_a_column_per_agent():
    view = views.category_view(tables.category_table(DESK))
    assert list(view.columns) == ["category", "n", "SAC", "SFT + GRPO"]
    assert view.iloc[0]["SAC"].startswith("19.5 [")


def test_telecom_table_splits_and_ends_with_the_published_line():
    rows = [telecom_row(f"T{i}", trial, float(i == 0)) for i in range(3) for trial in range(3)]
    rows += [telecom_row("T9", trial, 1.0, group="transfer", transferred=True) for trial in range(3)]
    table = tables.telecom_table({"grpo": rows})
    assert list(table["group"]) == ["all", "fixable", "transfer", "all"]
    assert list(table["avg"]) == pytest.approx([0.5, 1 / 3, 1.0, 0.308])
    assert list(table["tasks"]) == [4, 3, 1, 40]
    view = views.telecom_view(table)
    assert view.iloc[0]["solved 0..k times"] == "2 0 0 2"
    assert view.iloc[3]["agent"] == "published"
    assert view.iloc[3]["solved 0..k times"] == "25 3 2 10"


def test_partial_telecom_coverage_shows_counts_only():
    rows = [telecom_row(f"T{i}", 0, 1.0) for i in range(3)]
    rows[1]["end"] = "infrastructure_error"
    view = views.telecom_view(tables.telecom_table({"sft": rows}))
    assert view.iloc[0]["note"] == "2 of 3 evaluated: no headline"
    assert view.iloc[0]["avg@k"] == "–"


def test_files_hold_the_numbers_and_the_text(tmp_path):
    table = tables.desk_table(DESK)
    views.write_tables(tmp_path / "t.json", {"agents": table}, "n = 4")
    content = json.loads((tmp_path / "t.json").read_text())
    assert content["caption"] == "n = 4"
    assert content["agents"][3]["return"] == 19.5
    assert content["agents"][0]["return"] is None
    path = views.write_markdown(tmp_path / "t.md", {"Desk": views.desk_view(table)}, "n = 4")
    lines = path.read_text().splitlines()
    assert lines[0] == "### Desk"
    assert lines[2].count("|") == lines[3].count("|") == lines[4].count("|")
    assert "| SAC | 19.50 [" in path.read_text()
