"""The report: one file that needs nothing else, says what the records say, and what it leaves out."""

import re
import shutil
from html.parser import HTMLParser

import pytest

from rlcas_utils import readme_blocks, reference
from rlcas_utils.config import project_root
from rlcas_utils.records import read_record, write_json
from rlcas_utils.run import report
from rlcas_utils.run.markup import from_markdown
from rlcas_utils.run.report_source import NoRun, read_reference, read_run
from rlcas_utils.stages import STAGES

ROOT = project_root()


class Page(HTMLParser):
    """Tags with their attributes, and whether every tag is closed in order."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def source():
    return read_reference(reference.PROFILE)


@pytest.fixture(scope="module")
def page(source):
    return report.render(source)


@pytest.fixture
def run_dir(tmp_path):
    """A run folder made of the committed reference run."""
    shutil.copytree(ROOT / "results" / reference.PROFILE, tmp_path / "cpu" / "records")
    shutil.copytree(ROOT / "figures", tmp_path / "cpu" / "figures")
    return tmp_path / "cpu"


def test_the_page_is_complete_in_itself(page):
    parsed = Page(page)
    assert parsed.open == []
    assert not {tag for tag, _ in parsed.tags} & {"script", "link", "iframe", "object", "base"}
    for tag, attributes in parsed.tags:
        assert attributes.get("src", "data:").startswith("data:"), (tag, attributes["src"][:80])
    assert "url(" not in page
    assert "@import" not in page
    assert str(ROOT) not in page


def test_every_figure_has_its_picture_caption_and_alternative_text(page, source):
    images = [attributes for tag, attributes in Page(page).tags if tag == "img"]
    pictures = [picture for shown in source.pictures.values() for picture in shown]
    assert len(images) == len(pictures) >= 8
    assert [image["alt"] for image in images] == [picture.alt for picture in pictures]
    assert page.count("<figcaption>") == len(pictures)
    assert all(400 <= picture.width_px <= 1300 for picture in pictures)


def test_the_numbers_are_those_of_the_records(page, source):
    said = re.sub(r"<[^>]+>", "", page)
    metric = source.records["07_benchmark"]["metrics"]["desk/grpo/return"]
    assert readme_blocks.interval_text(metric) in said
    for text in readme_blocks.headlines(source.records).values():
        assert text in said
    assert page.count("<details><summary>") == 2 * len(STAGES)


def test_a_run_folder_links_its_notebooks_and_episodes(run_dir):
    for name in ("html/02_sac_training.html", "01_environment_design/desk_oracle.jsonl"):
        (run_dir / name).parent.mkdir(exist_ok=True)
    (run_dir / "html/02_sac_training.html").write_text("x")
    shutil.copy(ROOT / "data/samples/desk_oracle.jsonl", run_dir / "01_environment_design")
    path = report.build("cpu", run_dir.parent)
    page = path.read_text(encoding="utf-8")
    assert path == run_dir / "report.html"
    assert '<a href="html/02_sac_training.html">' in page
    assert '<a href="episodes/desk_refund.html">desk refund</a>' in page
    assert "Right: the right ending" in (run_dir / "episodes/desk_refund.html").read_text(encoding="utf-8")
    assert "html/03_trajectory_filtering.html" not in page


def test_what_is_missing_or_changed_is_said_and_not_shown(run_dir):
    (run_dir / "records" / "05_grpo.json").unlink()
    (run_dir / "figures" / "02_return_curve.png").write_bytes(b"another picture")
    page = report.render(read_run(run_dir))
    assert "6 of 7 notebooks" in page
    assert "05_grpo is not in this report: 05_grpo.json does not exist" in page
    assert "Figure 02_return_curve is left out: it is missing or not what its record says." in page
    assert 'id="02_return_curve"' not in page
    assert page.count("not run") == 1


def test_a_smoke_run_or_uncommitted_sources_are_announced(run_dir):
    path = run_dir / "records" / "01_environment_design.json"
    record = read_record(path)
    write_json(path, record | {"profile": "smoke", "git": {"commit": "abc", "dirty": True}})
    page = report.render(read_run(run_dir))
    assert "Its numbers are no results" in page
    assert "nobody can repeat it exactly" in page
    assert 'class="lead"' not in page


def test_without_any_run_the_command_is_named(tmp_path, capsys):
    (tmp_path / "cpu" / "records").mkdir(parents=True)
    with pytest.raises(NoRun, match="run `make course` first"):
        report.build("cpu", tmp_path)
    assert report.main(["multi_gpu", "--runs-dir", str(tmp_path)]) == 1
    assert "holds no run record" in capsys.readouterr().err


def test_foreign_text_cannot_become_markup():
    made = from_markdown(
        "### a <b>\n\n| n | x |\n| --- | --- |\n| <i> | 1.0 [0, 2] |\n\nsee [y](https://a.b) **c**"
    )
    assert "<b>" not in made
    assert "<i>" not in made
    assert '<td class="number">1.0 <span class="ci">[0, 2]</span></td>' in made
    assert '<a href="https://a.b">y</a> <strong>c</strong>' in made


def test_the_reference_run_is_the_default(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "project_root", lambda: tmp_path)
    assert report.main(["--runs-dir", str(tmp_path / "runs")]) == 0
    made = tmp_path / "build" / f"report-{reference.PROFILE}.html"
    assert made.stat().st_size < 5_000_000
