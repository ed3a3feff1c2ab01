"""Links of the project's Markdown on their way into the book: pages, pictures, files outside it."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from pathlib import Path

# A link may hold a picture or code in its text; fenced and inline code hold none, however they look.
TOKEN = re.compile(
    r"^(?P<fence>`{3,}|~{3,}).*?^(?P=fence)[`~]*[ ]*$"
    r"|(?P<picture>!?)\[(?P<text>(?:[^\[\]`]|`[^`\n]*`|\[[^\[\]]*\])*)\]\((?P<target>[^()\s]+)\)"
    r"|(?P<tick>`+)(?!`).*?(?<!`)(?P=tick)(?!`)",
    re.MULTILINE | re.DOTALL,
)
ANCHOR = re.compile(r"""<a (?:id|name)="([^"]+)">""")
OUTSIDE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


@dataclass
class Shelf:
    """What the book holds, by its path in the project.

    Attributes:
        root: The project's folder.
        pages: Path in the book of every page, by its path in the project.
        url: The repository's address for files that are no pages; without one their names stay plain text.
        anchors: Anchors that are no headings, by page in the project, such as the terms of the glossary.
        pictures: Pictures that were linked to, to be copied; filled by `relink`.
        gaps: One sentence for every link that leads nowhere; filled by `relink`.
    """

    root: Path
    pages: dict[str, str]
    url: str = ""
    anchors: dict[str, set[str]] = field(default_factory=dict)
    pictures: set[str] = field(default_factory=set)
    gaps: list[str] = field(default_factory=list)


def anchors(markdown: str) -> set[str]:
    """Return the anchors that a text sets itself."""
    return set(ANCHOR.findall(markdown))


def relink(markdown: str, at: str, shelf: Shelf) -> str:
    """Return Markdown whose links hold in the book, where nothing is loaded from the network.

    A link to a page leads to the page, a picture of the project is noted for copying, a picture from the
    network becomes its text, and a link to another file leads to the repository, or becomes its text.

    Args:
        markdown: The text.
        at: Its path in the project, such as `notebooks/02_sac_training.ipynb`.
        shelf: What there is; its `pictures` and `gaps` grow.
    """

    def replaced(match: re.Match[str]) -> str:
        if match["target"] is None:
            return match[0]
        text = relink(match["text"], at, shelf)
        if match["picture"]:
            return _picture(match[0], text, match["target"], at, shelf)
        target = _target(match["target"], at, shelf)
        page = _project_path(match["target"], at)
        if "#" in target and page in shelf.anchors:
            # Sphinx knows the anchors of headings only, so this link is written as a browser reads it.
            return f'<a class="term" href="{target.replace(".md#", ".html#")}">{text}</a>'
        return f"[{text}]({target})" if target else text

    return TOKEN.sub(replaced, markdown)


def _project_path(target: str, at: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(at), target.partition("#")[0]))


def _picture(whole: str, text: str, target: str, at: str, shelf: Shelf) -> str:
    if OUTSIDE.match(target):
        return text
    path = _project_path(target, at)
    if not (shelf.root / path).is_file():
        shelf.gaps.append(f"{at} shows {target}, which is not there; its text stands in its place.")
        return text
    shelf.pictures.add(path)
    return whole


def _target(target: str, at: str, shelf: Shelf) -> str:
    """Return where a link leads in the book, or an empty text where it cannot lead anywhere."""
    name, hash_, anchor = target.partition("#")
    if OUTSIDE.match(target) or not name:
        return target
    path = _project_path(name, at)
    if path in shelf.pages:
        page = posixpath.relpath(shelf.pages[path], posixpath.dirname(shelf.pages[at]) or ".")
        if anchor and anchor not in shelf.anchors.get(path, {anchor}):
            shelf.gaps.append(f"{at} links to {target}, but {path} has no such term; it leads to the page.")
            return page
        return page + hash_ + anchor
    if not (shelf.root / path).exists():
        shelf.gaps.append(f"{at} links to {target}, which is not there; its text is no link in the book.")
        return ""
    return f"{shelf.url}/blob/main/{path}" if shelf.url else ""
