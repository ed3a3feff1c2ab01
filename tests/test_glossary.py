"""The glossary: one page, in order, a short sentence a term, links to notebooks that use the term."""

import re

from rlcas_utils.config import project_root
from rlcas_utils.parameters import cell_source, read_notebook

ROOT = project_root()
TERM, LINK = r'<a id="([a-z0-9-]+)"></a>\*\*(.+?)\*\*', r"\[(\d\d)\]\((\.\./notebooks/(\d\d)\w+\.ipynb)\)"
ROW = re.compile(rf"^\| {TERM} \| (.+) \| {LINK} \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))


def test_every_line_of_the_table_is_a_term_in_order_and_no_term_comes_twice():
    table = [
        line for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| <a")
    ]
    assert len(ROWS) == len(table) >= 80
    names = [name.lower().replace("τ", "t") for _, name, *_ in ROWS]
    assert names == sorted(set(names))


def test_explanations_are_short_sentences():
    for _, name, meaning, *_ in ROWS:
        assert meaning.endswith("."), name
        assert len(meaning.split()) <= 36, name


def test_a_term_is_used_in_the_notebook_it_links_to():
    for _, name, _, shown, link, number in ROWS:
        assert shown == number
        notebook = read_notebook((ROOT / "docs" / link).resolve())
        text = "\n".join(cell_source(cell) for cell in notebook["cells"]).lower()
        # Endings differ ("imitate", "imitates"), so the beginning of one word of the term has to be there.
        assert any(word[:5] in text for word in re.split(r"\s", name.lower())), f"{name} is not in {link}"


def test_links_to_a_term_find_its_place():
    places = [place for place, *_ in ROWS]
    assert len(set(places)) == len(places)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in read_notebook(path)["cells"]:
            for wanted in re.findall(r"glossary\.md#([^)\s]+)", cell_source(cell)):
                assert wanted in places, f"{path.stem} links to glossary.md#{wanted}, which is no term there"
