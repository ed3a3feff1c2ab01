import json

import pytest
from toy_course import add_notebook, make_project

from rlcas_utils import config, figures, fingerprint, handoffs, records, stage, stages
from rlcas_utils.config import ConfigError
from rlcas_utils.stage import MissingHandoff, open_stage
from rlcas_utils.statistics import Estimate


@pytest.fixture
def project(tmp_path, monkeypatch):
    made = make_project(tmp_path / "course")
    add_notebook(made, "01_first", "x = 1")
    for module in (config, fingerprint, handoffs, stage):
        monkeypatch.setattr(module, "project_root", lambda: made)
    return made


def values(**changes):
    return {
        "PROFILE": "cpu",
        "SEED": 0,
        "RUN_DIR": "",
        "LEARNING_RATE": 1e-5,
        "WIDTHS": [8, 8],
    } | changes


def test_a_notebook_run_by_hand_gets_the_profiles_values(project, capsys):
    namespace = values()
    opened = open_stage("01_first", namespace)
    assert namespace["SEED"] == opened.seed == 3
    assert opened.folder == project / "runs" / "cpu" / "01_first"
    assert "SEED  0 -> 3" in capsys.readouterr().out


def test_the_runners_values_are_left_alone(project):
    opened = open_stage("01_first", values(RUN_DIR="elsewhere", SEED=7))
    assert opened.seed == 7
    assert opened.folder == project / "elsewhere" / "01_first"


def test_wrong_values_are_refused(project):
    with pytest.raises(ConfigError, match="LEARNING_RATE is '1e-5'"):
        open_stage("01_first", values(LEARNING_RATE="1e-5"))
    with pytest.raises(ConfigError, match="run the parameters cell"):
        open_stage("01_first", {"PROFILE": "cpu"})


def test_a_finished_piece_is_not_computed_again_until_a_parameter_changes(project):
    calls = []

    def compute():
        calls.append(1)
        return (1, 2)

    assert open_stage("01_first", values()).cached("piece", compute) == [1, 2]
    assert open_stage("01_first", values()).cached("piece", compute) == [1, 2]
    assert len(calls) == 1
    open_stage("01_first", values(LEARNING_RATE=2e-5)).cached("piece", compute)
    assert len(calls) == 2


def test_the_record_holds_what_the_specification_asks_for(project):
    opened = open_stage("01_first", values())
    opened.output("model/weights.bin").write_bytes(b"abc")
    opened.estimate("desk/sac/return", Estimate(19.5, 19.0, 20.0, 100, "bootstrap"), seeds=(3,))
    fig, axes = figures.new_figure()
    axes.plot([1, 2])
    opened.figure(fig, "01_line", caption="A line, n = 2.", alt="A rising line.")
    record = opened.finish()
    assert records.read_record(opened.record_path) == record
    assert record["outputs"] == {
        "01_first/model/weights.bin": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    }
    assert record["metrics"]["desk/sac/return"]["ci95"] == [19.0, 20.0]
    assert "RUN_DIR" not in record["parameters"]
    sidecar = json.loads((opened.run_dir / "figures" / "01_line.json").read_text())
    assert sidecar["caption"] == "A line, n = 2."
    assert sidecar["run_id"] == opened.run_id


def test_an_output_that_was_never_written_is_an_error(project):
    opened = open_stage("01_first", values())
    opened.output("model.bin")
    with pytest.raises(MissingHandoff, match="never wrote it"):
        opened.finish()


def test_time_of_a_killed_run_is_added_up(project, monkeypatch):
    open_stage("01_first", values())
    state = project / "runs" / "cpu" / "01_first" / ".stage.json"
    content = json.loads(state.read_text())
    state.write_text(json.dumps(content | {"elapsed_s": 100.0}))
    assert 100.0 <= open_stage("01_first", values()).finish()["time_s"] < 130.0


def test_a_changed_parameter_empties_the_folder_and_withdraws_the_record(project):
    first = open_stage("01_first", values())
    first.output("a.txt").write_text("a")
    first.finish()
    second = open_stage("01_first", values(WIDTHS=[16]))
    assert not (second.folder / "a.txt").exists()
    assert not second.record_path.exists()


def test_a_missing_hand_off_names_the_command_or_takes_the_sample_loudly(project, capsys):
    opened = open_stage("01_first", values())
    with pytest.raises(MissingHandoff, match="make course PROFILE=cpu ONLY=00_zero"):
        opened.input("00_zero/rows.jsonl")
    sample = project / "data" / "samples" / "rows.jsonl"
    records.write_atomic(sample, "{}\n")
    assert opened.input("00_zero/rows.jsonl", sample="rows.jsonl") == sample
    assert "stands in for it" in capsys.readouterr().out
    real = records.write_atomic(project / "runs" / "cpu" / "00_zero" / "rows.jsonl", "{}\n")
    assert opened.input("00_zero/rows.jsonl", sample="rows.jsonl") == real


def test_what_the_fingerprint_sees(project, monkeypatch):
    notebook = project / "notebooks" / "01_first.ipynb"
    run_dir = project / "runs" / "cpu"
    monkeypatch.setitem(stages.STAGES, "01_first", stages.StageFiles(reads=("00/x",), data=("data/desk",)))
    package = project / "rlcas_utils"

    def now(**changes):
        return fingerprint.stage_fingerprint(notebook, values(**changes), run_dir)

    add_notebook(project, "01_first", "def f():\n    from rlcas_utils import figures")
    base = now()
    assert now(PROFILE="smoke", RUN_DIR="x") == base
    seen = {base, now(SEED=1)}
    (package / "figures.py").write_text("# a comment\n" + (package / "figures.py").read_text())
    (package / "stage.py").write_text("x = 1\n")
    (package / "parsing_of_others.py").write_text("x = 1\n")
    assert now() == base
    (package / "figures.py").write_text("from .deeper import y\n")
    seen.add(now())
    (package / "deeper.py").write_text("y = 1\n")
    seen.add(now())
    (package / "deeper.py").write_text("y = 2\n")
    seen.add(now())
    records.write_atomic(run_dir / "00" / "x", "1")
    seen.add(now())
    records.write_atomic(project / "data" / "desk" / "queries.json", "1")
    seen.add(now())
    add_notebook(project, "01_first", "def f():\n    from rlcas_utils import figures\n\n\nf()")
    seen.add(now())
    assert len(seen) == 8


def test_what_a_learner_writes_into_an_exercise_is_not_in_the_fingerprint(project):
    path = add_notebook(project, "01_first", "1 + 1", "def f(): ...")
    plain, seen = json.loads(path.read_text(encoding="utf-8")), set()
    for tags, source in (([], "f = 1"), (["exercise:f"], "f = 1"), (["exercise:f"], "f = 2")):
        plain["cells"][-1] |= {"source": source, "metadata": {"tags": tags}}
        path.write_text(json.dumps(plain), encoding="utf-8")
        seen.add(fingerprint.stage_fingerprint(path, values(), project / "runs" / "cpu"))
    assert len(seen) == 2


def test_declared_data_is_in_the_project():
    for files in stages.STAGES.values():
        for name in files.data:
            assert (config.project_root() / name).exists(), name


def test_declared_reads_are_written_by_an_earlier_stage():
    written = set()
    for files in stages.STAGES.values():
        assert set(files.reads) <= written
        written |= set(files.writes)
