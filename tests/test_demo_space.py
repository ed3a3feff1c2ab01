"""The folder for a Hugging Face Space: complete, pinned, and nothing of somebody else's is deleted."""

import os
import subprocess
import sys
import tomllib

import pytest
import yaml

from rlcas_utils import reference
from rlcas_utils.config import project_root
from rlcas_utils.demo import space
from rlcas_utils.demo.source import Source
from rlcas_utils.records import sha256_tree, write_json
from rlcas_utils.stages import SAC


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An export of the samples, without the 90 MB of the encoder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(space, "ENCODER", "no_such_package")
        target = tmp_path_factory.mktemp("export") / "space"
        space.export(Source(None), target)
    return target


def test_requirements_are_the_projects_pins(folder):
    project = tomllib.loads((project_root() / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = {*project["dependencies"], *project["optional-dependencies"]["demo"]}
    wanted = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert set(wanted) <= pins
    assert {line.split("==")[0] for line in wanted} == {"gradio", *space.NEEDED}


def test_the_card_is_what_a_space_reads(folder):
    _, head, body = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    card = yaml.safe_load(head)
    assert card["sdk"] == "gradio"
    assert f"gradio=={card['sdk_version']}\n" in (folder / "requirements.txt").read_text(encoding="utf-8")
    assert (folder / card["app_file"]).is_file()
    assert len(card["title"]) <= 100
    assert "committed samples" in body


def test_the_folder_stands_on_its_own(folder):
    """Its package finds its own data and samples."""
    code = (
        "from rlcas_utils.config import project_root; from rlcas_utils.demo import desk_game, source;"
        "s = source.newest_run(project_root() / 'runs');"
        "print(project_root().name, len(desk_game.benchmark_choices()), len(s.recorded('grpo')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "space 100 100\n"


def test_a_run_takes_along_only_what_plays(tmp_path, monkeypatch):
    monkeypatch.setattr(space, "ENCODER", "no_such_package")
    run = tmp_path / "runs" / "cpu"
    record = (project_root() / "results" / reference.PROFILE / f"{SAC}.json").read_bytes()
    (run / "records").mkdir(parents=True)
    (run / "records" / f"{SAC}.json").write_bytes(record)
    (run / SAC / "checkpoints").mkdir(parents=True)
    (run / SAC / "expert.safetensors").write_bytes(b"weights")
    (run / SAC / "checkpoints" / "big.safetensors").write_bytes(b"not needed")
    space.export(Source(run), tmp_path / "out")
    copied = {
        p.relative_to(tmp_path / "out" / "runs").as_posix() for p in (tmp_path / "out/runs").rglob("*.*")
    }
    assert copied == {f"cpu/records/{SAC}.json", f"cpu/{SAC}/expert.safetensors"}


def test_an_export_replaces_an_export_and_nothing_else(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(space, "ENCODER", "no_such_package")
    before = sha256_tree(folder)
    space.export(Source(None), folder)
    assert sha256_tree(folder) == before
    write_json(tmp_path / "mine.json", {})
    assert space.main(["--to", str(tmp_path)]) == 1
    assert "holds other things" in capsys.readouterr().err
    assert (tmp_path / "mine.json").is_file()
