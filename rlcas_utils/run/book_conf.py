"""Sphinx's settings for the site, copied beside its sources as conf.py; the course never imports it.

Everything lies in the built folder: no fonts and no scripts from elsewhere, and a search whose excerpts work
from file://, where a browser lets no page read another.
"""

import html
import importlib.util
import json
import re
from pathlib import Path

from docutils import nodes

HERE = Path(__file__).parent
FACTS = json.loads((HERE / "book.json").read_text(encoding="utf-8"))
# The full bundle draws SVG: one file, without fonts and without parts to be loaded later.
MATHJAX = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent
TAG = re.compile(r"<[^>]*>")
TEXTS = "search_texts.js"

project = FACTS["title"]
html_title = FACTS["title"]
extensions = ["myst_nb"]
language = "en"
exclude_patterns = ["_static", "extra"]

nb_execution_mode = "off"
nb_merge_streams = True
nb_ipywidgets_js = {}
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
# Heading levels may be skipped inside folded answers, and a fence may hold what no lexer knows.
suppress_warnings = ["myst.header", "mystnb.unknown_mime_type", "misc.highlighting_failure"]

html_theme = "sphinx_book_theme"
html_theme_options = {
    "logo": {"text": f"{FACTS['title']}, the course"},
    "navbar_persistent": [],
    "footer_content_items": [],
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_static_path = ["_static", str(MATHJAX / "static" / "mathjax" / "tex-svg-full.js")]
if FACTS["url"]:
    html_theme_options |= {"repository_url": FACTS["url"], "use_repository_button": True}
html_extra_path = ["extra"]
html_css_files = ["book.css"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False
mathjax_path = "tex-svg-full.js"

_texts: dict[str, str] = {}


def _outline(node):
    """Return a page as bare HTML: its sections with anchor and title, and in them paragraphs of text."""
    if isinstance(node, nodes.section):
        title = node.next_node(nodes.title)
        named = html.escape(title.astext() if title else "")
        inner = "".join(_outline(child) for child in node.children)
        return f'<section id="{html.escape(node["ids"][0])}" data-title="{named}">{inner}</section>'
    if isinstance(node, nodes.raw):
        return f"<p>{html.escape(html.unescape(TAG.sub(' ', node.astext())))}</p>"
    if isinstance(node, nodes.TextElement):
        prose = "" if isinstance(node, nodes.literal_block) else ' data-prose="1"'
        return f"<p{prose}>{html.escape(_words(node))}</p>"
    return "".join(_outline(child) for child in node.children)


def _words(node):
    """Return a node's text without the HTML that was written into it by hand."""
    plain = node.deepcopy()
    for raw in list(plain.findall(nodes.raw)):
        raw.parent.remove(raw)
    return plain.astext()


def _collect(app, page, template, context, doctree):
    if doctree is not None:
        _texts[page] = _outline(doctree)
    if page == "search":
        app.add_js_file("book_search.js")


def _finish(app, error):
    if error is not None:
        return
    static = Path(app.outdir) / "_static"
    content = f"window.BOOK_TEXTS = {json.dumps(_texts, ensure_ascii=False)};\n"
    (static / TEXTS).write_text(content, encoding="utf-8")
    for unused in [*static.rglob("*.map"), *static.glob("*.html")]:  # megabytes for the theme's authors
        unused.unlink()


def setup(app):
    """Keep the text of every page for the search's excerpts."""
    app.connect("html-page-context", _collect)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
