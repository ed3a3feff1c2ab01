import pytest

from rlcas_utils import figures

RUN = {"run_id": "cpu/02/abc", "profile": "cpu", "notebook": "02", "seed": 0}


def line():
    fig, axes = figures.new_figure()
    axes.plot([1, 2], color=figures.color("sac"))
    return fig


def test_equal_figures_are_equal_files_and_smoke_figures_say_so(tmp_path):
    first = figures.save_figure(line(), tmp_path / "a", caption="c", alt="a", run=RUN)
    second = figures.save_figure(line(), tmp_path / "b", caption="c", alt="a", run=RUN)
    assert first.read_bytes() == second.read_bytes()
    fig = line()
    figures.save_figure(fig, tmp_path / "c", caption="c", alt="a", run=RUN | {"profile": "smoke"})
    assert [text.get_text() for text in fig.texts] == ["smoke run: toy sizes, no result"]


def test_a_figure_needs_words(tmp_path):
    with pytest.raises(ValueError, match="no caption or no alt text"):
        figures.save_figure(line(), tmp_path / "a", caption="c", alt=" ", run=RUN)


def test_every_agent_has_a_colour_and_a_name():
    assert set(figures.PALETTE) == set(figures.LABELS)
    assert figures.label("rules") == "keyword rules"
    assert figures.color("nobody") == "#000000"
