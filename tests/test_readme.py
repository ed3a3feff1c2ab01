"""README.md holds what the records say, and its generated blocks are made from records only."""

import json
import re
import shutil

import pytest

from rlcas_utils import readme, readme_blocks, readme_gpu, reference
from rlcas_utils.config import load_profile, project_root
from rlcas_utils.records import METRIC_KEYS
from rlcas_utils.run.plan import make_plan

ROOT = project_root()


def metric(value, n=100, ci95=(0.0, 1.0)):
    return dict(zip(sorted(METRIC_KEYS), (list(ci95), n, [0], "", value), strict=True))


def record(stem, **metrics):
    return {
        "notebook": stem,
        "profile": "cpu",
        "seed": 0,
        "time_s": 120.4,
        "peak_rss_gib": 2.5,
        "git": {"commit": "0123456789abcdef", "dirty": False},
        "hardware": {"cores": 2, "processor": "Test CPU", "memory_gib": 8.0},
        "metrics": metrics,
    }


RECORDS = {
    "02_sac_training": record("02_sac_training", **{"desk/sac/return": metric(18.26, ci95=(17.1, 19.2))}),
    "07_benchmark": record(
        "07_benchmark",
        **{
            "desk/sac/return": metric(18.25, ci95=(17.1, 19.2)),
            "desk/oracle/return": metric(20.0),
            "desk/grpo/return": metric(12.5, ci95=(11.0, 14.0)),
            "telecom/grpo/avg@3": metric(0.5, n=40),
            "telecom/grpo/fixable/avg@3": metric(0.4, n=28, ci95=(0.2, 0.6)),
        },
    ),
}


def test_readme_blocks_equal_the_records():
    assert readme.render(ROOT) == (ROOT / "README.md").read_text(encoding="utf-8"), "run `make readme`"


def test_pipeline_figure_shows_the_numbers_of_the_records():
    sidecar = json.loads((ROOT / "figures" / "pipeline.json").read_text(encoding="utf-8"))
    assert sidecar["numbers"] == readme_blocks.headlines(reference.reference_records(ROOT)), (
        "run `make readme`"
    )


def test_a_changed_number_in_a_block_is_noticed():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    changed = readme.replace_block(text, "desk", "| SAC | 99.9 |")
    assert changed != text
    assert readme.replace_block(changed, "desk", readme.blocks(ROOT)["desk"]) == readme.render(ROOT)


def test_without_records_every_block_says_so():
    for block in (readme_blocks.headline, readme_blocks.desk, readme_blocks.telecom, readme_blocks.run):
        assert block({}) == readme_blocks.NO_RUN
    assert "no reference run yet" in readme_blocks.picture({})


def test_blocks_show_value_interval_n_and_source():
    desk = readme_blocks.desk(RECORDS)
    assert "| SAC | 18.25 [17.10, 19.20] |" in desk
    assert "| GPT-4o-mini | – | – | – | – | 19.43, 100% |" in desk
    assert "n = 100 tickets" in desk
    telecom = readme_blocks.telecom(RECORDS)
    assert "| SFT + GRPO | 3 | 0.50 [0.00, 1.00] | – | – | 0.40 [0.20, 0.60] | – | – |" in telecom
    assert "| published | 3 | 0.308 | 0.375 | 0.250 |" in telecom
    assert "12.50 [11.00, 14.00]" in readme_blocks.headline(RECORDS)
    assert "GRPO minus SFT, all" not in readme_blocks.headline(RECORDS)
    gain = {"telecom/grpo_minus_sft": metric(0.125, n=40, ci95=(-0.025, 0.275))}
    stage = "06_tau2_telecom_grpo"
    headline = readme_blocks.headline(RECORDS | {stage: record(stage, **gain)})
    assert "test tasks (GRPO minus SFT, all 40 tasks: +0.12 [-0.03, +0.28]). Brackets" in headline
    assert "Test CPU" in readme_blocks.run(RECORDS)
    assert "4 min for 2 notebooks" in readme_blocks.run(RECORDS)


def test_a_policy_that_was_put_back_to_sft_is_not_called_trained_by_grpo():
    assert "trained by SFT and GRPO earns" in readme_blocks.headline(RECORDS)
    lost = {"grpo/validation_gain": metric(-3.4, n=48, ci95=(-6.1, -1.1))}
    records = RECORDS | {"05_grpo": record("05_grpo", **lost)}
    assert "trained by SFT alone earns" in readme_blocks.headline(records)
    assert "on 48 validation tickets by -3.40 [-6.10, -1.10], so notebook 05 handed on" in readme_blocks.desk(
        records
    )
    assert "validation tickets" not in readme_blocks.desk(RECORDS)


def test_notebook_table_takes_the_card_and_shows_badges_only_with_an_address():
    plain = readme_blocks.notebooks(ROOT, RECORDS, "")
    assert plain.count("\n") == 8
    assert "colab" not in plain
    assert "| SAC 18.3 reward | 2 min |" in plain
    assert "[07 Benchmark: how good are they, and how sure are we?](notebooks/07_benchmark.ipynb)" in plain
    badges = readme_blocks.notebooks(ROOT, RECORDS, "https://github.com/owner/course")
    assert badges.count("colab.research.google.com/github/owner/course/blob/main/notebooks/") == 7


def test_damaged_markers_are_named(tmp_path):
    with pytest.raises(readme.ReadmeError, match="begin:desk"):
        readme.replace_block("<!-- begin:desk -->", "desk", "x")


def test_check_mode_reports_and_writes_nothing(tmp_path, monkeypatch, capsys):
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    path = tmp_path / "README.md"
    path.write_text(
        readme.replace_block(path.read_text(encoding="utf-8"), "run", "typed by hand"), encoding="utf-8"
    )
    monkeypatch.setattr(readme, "project_root", lambda: tmp_path)
    assert readme.main(["--check"]) == 1
    assert "make readme" in capsys.readouterr().err
    assert "typed by hand" in path.read_text(encoding="utf-8")


def test_links_on_the_page_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?://)([^)#]+)\)", text):
        assert (ROOT / target).exists(), target


def test_the_hours_of_the_large_profile_are_worked_out_from_its_values():
    """SFT by hand: 1000 chats x 3 epochs x 400 tokens x 8 operations x 3.0857e9 weights at 25e12 a second."""
    stages = make_plan(load_profile("a10g"), ROOT / "runs" / "a10g")
    values = {stage.stem: dict(stage.values) for stage in stages}
    found = readme_gpu.hours(values, 1000)
    assert found["04"] == pytest.approx(1000 * 3 * 400 * 8 * 3.0857 / 25e3 / 3600, rel=1e-3)
    values["05_grpo"]["NUM_STEPS"] *= 2
    assert readme_gpu.hours(values, 1000)["05"] == pytest.approx(2 * found["05"])
    values["06_tau2_telecom_grpo"]["MAX_BATCH"] *= 2
    assert readme_gpu.hours(values, 1000)["06"] < found["06"]
