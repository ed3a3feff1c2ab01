"""The book: gathered from a run, with links that hold, and a built site that loads nothing from elsewhere."""

import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from rlcas_utils import reference
from rlcas_utils.config import project_root
from rlcas_utils.parameters import cell_source, read_notebook
from rlcas_utils.records import read_record
from rlcas_utils.run import book
from rlcas_utils.run.book_links import Shelf, anchors, relink
from rlcas_utils.run.book_pages import slug
from rlcas_utils.run.report_source import NoRun
from rlcas_utils.stages import STAGES

ROOT = project_root()
SPHINX = ROOT / "build" / "book-env" / "bin" / "sphinx-build"
AT = "notebooks/02_sac_training.ipynb"
TERMS = {"docs/glossary.md": {"entropy"}}
PAGES = {"README.md": "index.md", "docs/glossary.md": "docs/glossary.md", AT: AT}


def executed(stem, outputs=()):
    """Return a notebook of the project as if it had run, with the outputs in its last code cell."""
    notebook = read_notebook(ROOT / "notebooks" / f"{stem}.ipynb")
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code, start=1):
        cell["execution_count"] = number
    code[-1]["outputs"] = list(outputs)
    return notebook


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run folder: the committed records and figures, and notebooks as if executed, all but the last."""
    folder = tmp_path_factory.mktemp("runs") / "cpu"
    shutil.copytree(ROOT / "results" / reference.PROFILE, folder / "records")
    shutil.copytree(ROOT / "figures", folder / "figures")
    (folder / "notebooks").mkdir()
    said = {
        "output_type": "stream",
        "name": "stderr",
        "text": f"{folder}/.venv/lib/site-packages/a.py:1: odd\n",
    }
    for stem in list(STAGES)[:-1]:
        content = json.dumps(executed(stem, [said]))
        (folder / "notebooks" / f"{stem}.ipynb").write_text(content, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(run_dir, tmp_path_factory):
    return book.gather(run_dir, tmp_path_factory.mktemp("book") / "source")


def test_links_lead_where_the_book_has_the_page():
    shelf = Shelf(ROOT, PAGES, "https://example.org/x")
    text = "[home](../README.md#doors) [terms](../docs/glossary.md) [`code`](../LICENSE) [a](#b)"
    assert relink(text, AT, shelf) == (
        "[home](../index.md#doors) [terms](../docs/glossary.md) "
        "[`code`](https://example.org/x/blob/main/LICENSE) [a](#b)"
    )
    assert relink("[two](notebooks/02_sac_training.ipynb)", "README.md", shelf) == f"[two]({AT})"
    assert shelf.gaps == []


def test_a_term_leads_to_its_row_of_the_glossary():
    rows = '| <a id="pass-at-k"></a>**pass@k** | one of k |\n| <a id="entropy"></a>**entropy** | in nats |'
    assert anchors(rows) == {"pass-at-k", "entropy"}
    shelf = Shelf(ROOT, PAGES, anchors=TERMS)
    link = '<a class="term" href="../docs/glossary.html#entropy">high *entropy*</a>'
    assert relink("[high *entropy*](../docs/glossary.md#entropy)", AT, shelf) == link
    assert relink("[x](../docs/glossary.md#xyz)", AT, shelf) == "[x](../docs/glossary.md)"
    assert len(shelf.gaps) == 1
    assert "#xyz, but docs/glossary.md has no such term" in shelf.gaps[0]


def test_without_an_address_a_file_outside_the_book_is_plain_text():
    assert relink("see [the licence](../LICENSE).", AT, Shelf(ROOT, PAGES)) == "see the licence."


def test_a_picture_from_the_network_becomes_its_text_and_ours_is_noted():
    shelf = Shelf(ROOT, PAGES)
    badge = "[![Open in Colab](https://a.org/badge.svg)](https://a.org/open)"
    assert relink(badge, AT, shelf) == "[Open in Colab](https://a.org/open)"
    ours = "![Curves](../figures/02_return_curve.png)"
    assert relink(ours, AT, shelf) == ours
    assert shelf.pictures == {"figures/02_return_curve.png"}


def test_what_leads_nowhere_is_said():
    shelf = Shelf(ROOT, PAGES)
    assert relink("[a](../nothing.md) ![b](../no.png)", AT, shelf) == "a b"
    assert [gap.split(",")[0] for gap in shelf.gaps] == [
        f"{AT} links to ../nothing.md",
        f"{AT} shows ../no.png",
    ]


def test_code_that_looks_like_a_link_stays():
    code = "`x[0](a)` and ``y[`1`](b)``\n\n```python\ncalls[name](argument)\n```\n"
    shelf = Shelf(ROOT, PAGES)
    assert relink(code, AT, shelf) == code
    assert shelf.gaps == []


def test_pictures_of_a_cell_get_their_text_and_width():
    facts = {"alt": "Two bars.", "width": 700}
    cell = {"id": "c1", "metadata": {}, "source": "", "outputs": [picture(facts)]}
    assert book.prepare_code(cell) == []
    assert cell["metadata"]["mystnb"] == {"image": {"alt": "Two bars.", "width": "700px"}}


def test_a_picture_without_a_description_is_said():
    cell = {"id": "c1", "metadata": {}, "source": "", "outputs": [picture({}), picture({})]}
    assert [gap.split(";")[0] for gap in book.prepare_code(cell)] == [
        *["a picture of cell c1 has no description"] * 2,
        "cell c1 shows 2 pictures",
    ]
    assert cell["metadata"]["mystnb"]["image"]["alt"] == book.NO_ALT


def picture(facts):
    return {"output_type": "display_data", "data": {"image/png": "AA=="}, "metadata": {"image/png": facts}}


def test_cells_that_are_no_lesson_are_folded():
    cell = {"metadata": {"tags": ["injected-parameters"]}, "source": "", "outputs": []}
    book.prepare_code(cell)
    assert cell["metadata"]["tags"] == ["injected-parameters", "hide-input"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("Step 1: what the network sees", "step-1-what-the-network-sees"), ("`pass^k`, why?", "passk-why")],
)
def test_anchors_are_those_of_github(heading, anchor):
    assert slug(heading) == anchor


def test_every_notebook_is_in_the_book_and_none_is_changed(made):
    assert made.executed == list(STAGES)[:-1]
    for stem in STAGES:
        ours, theirs = (read_notebook(f / f"notebooks/{stem}.ipynb")["cells"] for f in (made.folder, ROOT))
        assert [cell_source(c) for c in ours if c["cell_type"] == "code"] == [
            cell_source(c) for c in theirs if c["cell_type"] == "code"
        ]


def test_a_notebook_that_did_not_run_is_shown_with_a_warning(made):
    last = list(STAGES)[-1]
    first_cell = read_notebook(made.folder / "notebooks" / f"{last}.ipynb")["cells"][0]
    assert ":::{warning}" in cell_source(first_cell)
    assert (
        f"notebooks/{last}.ipynb is shown without outputs: the run holds no executed copy of it." in made.gaps
    )


def test_no_folder_of_a_machine_reaches_the_book(made, run_dir):
    text = (made.folder / AT).read_text(encoding="utf-8")
    assert str(run_dir) not in text
    assert '"site-packages/a.py:1: odd\\n"' in text


def test_the_landing_page_and_the_results_show_the_numbers_of_the_run(made):
    metric = read_record(ROOT / "results" / reference.PROFILE / "07_benchmark.json")["metrics"][
        "desk/grpo/return"
    ]
    low, high = metric["ci95"]
    interval = f"{metric['value']:.2f} [{low:.2f},\N{NO-BREAK SPACE}{high:.2f}]"
    assert f"earns **{interval}**" in (made.folder / "index.md").read_text(encoding="utf-8")
    assert f"| SFT + GRPO | {interval} |" in (made.folder / "results.md").read_text(encoding="utf-8")


def test_the_sidebar_holds_every_page(made):
    contents = (made.folder / "index.md").read_text(encoding="utf-8")
    pages = {p.relative_to(made.folder).with_suffix("").as_posix() for p in made.folder.rglob("*.md")}
    for page in pages - {"index"} | {f"notebooks/{stem}" for stem in STAGES}:
        assert re.search(rf"^({page}|.* <{page}>)$", contents, re.MULTILINE), page


def test_every_generated_link_and_picture_of_the_pages_is_there(made):
    for page in made.folder.rglob("*.md"):
        for target in re.findall(r"\]\(([^()\s#]+)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).is_file(), (page.name, target)


def test_a_folder_without_a_finished_run_gets_one_sentence(tmp_path, capsys, run_dir):
    assert book.main(["smoke", "--runs-dir", str(tmp_path)]) == 1
    assert "run `make course" in capsys.readouterr().err
    shutil.copytree(run_dir / "records", tmp_path / "cpu" / "records")
    with pytest.raises(NoRun, match=r"no executed notebook.*make course PROFILE=cpu"):
        book.gather(tmp_path / "cpu", tmp_path / "source")


class Page(HTMLParser):
    """Anchors of a page, where its links lead, and what a browser loads for it."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads, self.pictures = set(), [], [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        facts = dict(attributes)
        self.anchors |= {facts[key] for key in ("id", "name") if facts.get(key)}
        if tag == "a" and facts.get("href"):
            self.links.append(facts["href"])
        if tag == "link" and facts.get("rel") != "canonical":
            self.loads.append(facts["href"])
        if tag in ("script", "img", "iframe", "source", "video") and facts.get("src"):
            self.loads.append(facts["src"])
        if tag == "img":
            self.pictures.append(facts.get("alt") or "")


def broken_links(site):
    """Return every link and every file to load that the built site does not hold."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for address in [*page.links, *page.loads]:
            name, _, anchor = unquote(address).partition("#")
            if re.match(r"(https?|mailto):", name) and address in page.links:
                continue
            target = (path.parent / name.partition("?")[0]).resolve() if name else path
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                broken.append(f"{path.relative_to(site.resolve())}: {address}")
    return broken


def test_the_link_checker_finds_what_is_broken(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#x">1</a><a href="b.html#y">2</a><a href="c.html">3</a><a href="https://d.org">4</a>'
        '<script src="https://e.org/f.js"></script><img src="g.png">',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="x">', encoding="utf-8")
    assert broken_links(tmp_path) == [
        "a.html: b.html#y",
        "a.html: c.html",
        "a.html: https://e.org/f.js",
        "a.html: g.png",
    ]


@pytest.mark.slow
@pytest.mark.skipif(not SPHINX.is_file(), reason="`make book` installs what builds it")
def test_the_built_site_is_whole_and_loads_nothing_from_elsewhere(made, tmp_path):
    site = tmp_path / "site"
    command = [SPHINX, "-q", "-W", "--keep-going", "-d", tmp_path / "doctrees", made.folder, site]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, done.stderr
    assert broken_links(site) == []
    for sheet in site.rglob("*.css"):
        found = re.findall(
            r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)", sheet.read_text(encoding="utf-8")
        )
        assert found == [], sheet.name
    lessons = {stem: Page(site / "notebooks" / f"{stem}.html") for stem in STAGES}
    assert all(all(page.pictures) for page in lessons.values())
    assert any("tex-svg" in address for address in lessons["02_sac_training"].loads)
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert '"entropi"' in index or "entropi:" in index
    assert sum(path.stat().st_size for path in Path(site).rglob("*") if path.is_file()) < 30 * 2**20
