"""Navigation, course map and Colab cell: equal in all notebooks to what one command writes."""

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig

import pytest

from rlcas_utils import openings
from rlcas_utils.config import ConfigError, project_root
from rlcas_utils.course_map import HANDED_ON, judged, map_name
from rlcas_utils.stages import STAGES

ROOT = project_root()
URL = "https://example.org/course.git"
TITLES = {"01_a": "01 Desk", "02_b": "02 SAC", "03_c": "03 Filter"}


@pytest.mark.parametrize("path", [ROOT / "notebooks" / f"{stem}.ipynb" for stem in STAGES], ids=list(STAGES))
def test_every_notebook_opens_as_the_command_would_write_it(path):
    written = openings.openings(ROOT)[path]
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(written), "run `make readme`"


def test_navigation_of_the_first_a_middle_and_the_last_notebook():
    first, middle, last = (openings.navigation(stem, TITLES, "") for stem in TITLES)
    assert first == "[contents](../README.md) · [glossary](../docs/glossary.md) · [next: 02 SAC](02_b.ipynb)"
    assert middle.startswith("[previous: 01 Desk](01_a.ipynb) · [contents]")
    assert (
        last == "[previous: 02 SAC](02_b.ipynb) · [contents](../README.md) · [glossary](../docs/glossary.md)"
    )


def test_a_github_address_adds_the_badge_above():
    text = openings.navigation("02_b", TITLES, "https://github.com/owner/course")
    badge, links = text.split("\n\n")
    assert "colab.research.google.com/github/owner/course/blob/main/notebooks/02_b.ipynb" in badge
    assert links.startswith("[previous")


def notebook():
    def cell(kind, source, **metadata):
        return {"cell_type": kind, "metadata": metadata, "source": source.splitlines(keepends=True)}

    return {
        "cells": [
            cell("markdown", "old links\n\n# 02 SAC: an expert\n\nA promise."),
            cell("code", "import old", tags=["kept"]),
            cell("markdown", "## Where we are\n\n![Course map: old](x.png)\n\nNotation."),
            cell("code", "1 + 1"),
        ]
    }


def test_the_rest_of_a_notebook_is_kept_and_a_second_pass_changes_nothing():
    before = notebook()
    once = openings.opened(before, "02_b", TITLES, URL)
    text = ["".join(cell["source"]) for cell in once["cells"]]
    assert text[0].endswith("(03_c.ipynb)\n\n# 02 SAC: an expert\n\nA promise.")
    assert once["cells"][1]["metadata"]["tags"] == ["kept", "colab"]
    assert text[1] == openings.colab_cell(URL)
    assert text[2] == (
        "## Where we are\n\n![Course map: you are in notebook 02](../figures/map_02.png)\n\nNotation."
    )
    assert text[3] == "1 + 1"
    assert openings.opened(once, "02_b", TITLES, URL) == once
    assert before == notebook()


def test_a_notebook_without_a_title_is_refused():
    with pytest.raises(ConfigError, match="has no title"):
        openings.title({"cells": [{"source": "no title"}]})


def test_the_course_map_says_what_the_stages_read():
    reads = {(name.split("/")[0], stem) for stem, files in STAGES.items() for name in files.reads}
    drawn = set(HANDED_ON) | {(stem, list(STAGES)[-1]) for stem in judged()}
    assert reads <= drawn
    # The first notebook hands on no file to the second, but the desk, which lives in the package.
    assert drawn - reads == {tuple(list(STAGES)[:2])}
    for stem in STAGES:
        sidecar = json.loads((ROOT / "figures" / f"{map_name(stem)}.json").read_text(encoding="utf-8"))
        assert f"notebook {stem[:2]} marked" in sidecar["alt"]


def test_the_colab_cell_imports_only_the_standard_library_and_does_nothing_elsewhere(monkeypatch):
    code = openings.colab_cell(URL)
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
        assert not isinstance(node, ast.ImportFrom)
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)
    monkeypatch.setattr(subprocess, "run", None)
    exec(code, {})


def test_without_an_address_the_colab_cell_asks_for_it(monkeypatch):
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="REPOSITORY is empty"):
        exec(openings.colab_cell(""), {})


def installed(name):
    try:
        return bool(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    """A fresh environment that sees this one's libraries but not the course, and runs code as Colab would.

    The clone comes from this checkout and pip may not reach an index: what it asks for must be what the lock
    says, and be there. So this proves the guard, the clone, the choice and the versions of the libraries, and
    the installation of the course; it does not prove that Colab's own packages bear these versions.
    """
    weights = (ROOT / "requirements-weights.txt").read_text(encoding="utf-8")
    missing = [name for name in re.findall(r"^([\w-]+)==", weights, re.MULTILINE) if not installed(name)]
    if missing and "PIP_FIND_LINKS" not in os.environ:
        pytest.skip(f"{missing} is not installed here, and this test may not fetch it: make env")
    folder = tmp_path_factory.mktemp("colab")
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    python = folder / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    # A setuptools of its own, where there is one, would hide the version that the lock asks for.
    subprocess.run([python, "-m", "pip", "uninstall", "--quiet", "--yes", "setuptools"], check=True)
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    # A plain line adds the folder to sys.path; the .pth files in it, such as the course's own, stay unread.
    with open(os.path.join(site, "libraries.pth"), "w", encoding="utf-8") as file:
        file.write(sysconfig.get_path("purelib") + "\n")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "COLAB_RELEASE_TAG": "forced",
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this as: no isolation
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{ROOT.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": URL,
    }

    def run(code):
        return subprocess.run(
            [python, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    return run


@pytest.mark.slow
def test_the_colab_cell_installs_the_course_in_a_fresh_environment(colab):
    cell = openings.colab_cell(URL)
    tail = "\nimport rlcas_utils.config\nprint(rlcas_utils.config.project_root())"
    before = colab("import rlcas_utils")
    assert "ModuleNotFoundError" in before.stderr
    loaded = colab("import numpy\n" + cell)
    assert "Colab had loaded its own ['numpy']: restart the session" in loaded.stderr
    again = colab(cell + tail)
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip().endswith("course")
