"""Executed notebooks: they open anywhere, hold no secret, and no output that nobody could read (case 14)."""

import json

import nbformat
import pytest
from nbformat import v4

from rlcas_utils.run import executed
from rlcas_utils.run.executed import WIDGET_VIEW, clean, write_html

CANARY = "CANARY-7f3a9d21"


def cleaned(tmp_path, *outputs, **metadata):
    cell = v4.new_code_cell("x", outputs=list(outputs))
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps(v4.new_notebook(cells=[cell], metadata=metadata)), encoding="utf-8")
    clean(path, "notebooks/a.ipynb")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def stream(text):
    return v4.new_output("stream", name="stdout", text=text)


def test_widget_data_without_a_state_is_taken_out(tmp_path):
    """Case 14: progress widgets leave metadata without `state`, and viewers then refuse the whole file."""
    display = v4.new_output("display_data", {WIDGET_VIEW: {"model_id": "1"}, "text/plain": "50%"})
    broken = {"application/vnd.jupyter.widget-state+json": {"version_major": 2}}
    notebook = cleaned(tmp_path, display, widgets=broken, papermill={"input_path": str(tmp_path / "a.ipynb")})
    assert "widgets" not in notebook.metadata
    assert notebook.cells[0].outputs[0].data == {"text/plain": "50%"}
    assert tmp_path.name not in json.dumps(notebook)


@pytest.mark.parametrize(
    ("text", "lines", "note"),
    [
        ("".join(f"step {i}\n" for i in range(5000)), 2_003, "3,000 lines left out"),
        ("x" * 3_000_000, 3, "2,000,000 characters left out"),
    ],
)
def test_endless_output_loses_its_middle_and_says_so(tmp_path, text, lines, note):
    (output,) = cleaned(tmp_path, stream(text)).cells[0].outputs
    assert note in output.text
    assert len(output.text.splitlines()) <= lines
    assert len(output.text) < 1_001_000
    assert output.text.startswith(text[:40])
    assert output.text.endswith(text[-40:])


def test_a_huge_display_is_left_out_and_ordinary_output_is_untouched(tmp_path):
    huge = v4.new_output("display_data", {"text/html": "<p>" * 400_000, "text/plain": "table"})
    small = stream("a\nb\n")
    first, second = cleaned(tmp_path, huge, small).cells[0].outputs
    assert first.data == {
        "text/html": "[text/html of 1,200,002 characters left out]",
        "text/plain": "table",
    }
    assert second.text == "a\nb\n"


def test_a_key_in_an_output_becomes_its_name(tmp_path, monkeypatch):
    """Case 11: an error text of an API client may quote the key it was called with."""
    monkeypatch.setenv("SOME_API_KEY", CANARY)
    (output,) = cleaned(tmp_path, stream(f"refused: {CANARY}")).cells[0].outputs
    assert output.text == "refused: <SOME_API_KEY>"


def test_a_notebook_cut_short_is_left_as_it_is(tmp_path):
    path = tmp_path / "a.ipynb"
    path.write_text('{"cells": [', encoding="utf-8")
    clean(path, "notebooks/a.ipynb")
    assert path.read_text(encoding="utf-8") == '{"cells": ['


def test_the_page_holds_its_pictures_the_runs_own_before_the_projects(tmp_path, monkeypatch):
    """The three letters of each picture are b25l, dHdv and dGhy in base64."""
    run, project = tmp_path / "run", tmp_path / "project"
    for folder, name, content in ((run, "a", b"one"), (project, "a", b"two"), (project, "b", b"thr")):
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        (folder / "figures" / f"{name}.png").write_bytes(content)
    monkeypatch.setattr(executed, "project_root", lambda: project)
    text = "![A](../figures/a.png) ![B](../../figures/b.png) ![C](../figures/c.png)"
    (run / "notebooks").mkdir()
    nbformat.write(v4.new_notebook(cells=[v4.new_markdown_cell(text)]), run / "notebooks" / "n.ipynb")
    write_html(run / "notebooks" / "n.ipynb", run / "n.html")
    page = (run / "n.html").read_text(encoding="utf-8")
    assert "data:image/png;base64,b25l" in page
    assert "data:image/png;base64,dGhy" in page
    assert "dHdv" not in page
    assert "../figures/c.png" in page
    assert "<title>n</title>" in page
