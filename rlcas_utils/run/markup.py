"""The little HTML that the report needs: escaped text, tables, and the Markdown that the benchmark writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rlcas_utils.viewer.page import esc as text

NUMBER = re.compile(r"^[+-]?\d[\d.,%]*(\s*[\[x/].*)?$|^–$|^\d+( \d+)+$")
INTERVAL = re.compile(r"(\[[^\]]*\])$")
LINK = re.compile(r"\[([^\]]+)\]\((https?://[^)\s]+)\)")
BOLD = re.compile(r"\*\*([^*]+)\*\*")
CODE = re.compile(r"`([^`]+)`")


def inline(markdown: str) -> str:
    """Return one line of Markdown as HTML: links, bold and code; everything else is escaped."""
    made = LINK.sub(r'<a href="\2">\1</a>', text(markdown))
    return CODE.sub(r"<code>\1</code>", BOLD.sub(r"<strong>\1</strong>", made))


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], label: str) -> str:
    """Return a table whose first column names its rows; it scrolls sideways on a narrow page.

    Args:
        heads: Column heads, as HTML.
        rows: Cells, as HTML.
        label: What the table is, for readers who cannot see it.
    """
    lines = [f'<div class="scroll" role="region" tabindex="0" aria-label="{text(label)}"><table><thead><tr>']
    lines += [f'<th scope="col">{head}</th>' for head in heads]
    lines.append("</tr></thead><tbody>")
    for first, *rest in rows:
        cells = "".join(_cell(content) for content in rest)
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return "".join([*lines, "</tbody></table></div>"])


def _cell(content: str) -> str:
    if not NUMBER.match(content):
        return f"<td>{content}</td>"
    quieter = INTERVAL.sub(r'<span class="ci">\1</span>', content)
    return f'<td class="number">{quieter}</td>'


def from_markdown(markdown: str, level: int = 3) -> str:
    """Return headings, tables and paragraphs of a Markdown text as HTML.

    Args:
        markdown: What `benchmark.views` and `readme_blocks` write.
        level: Level that headings get.
    """
    made, title = [], "table"
    for block in re.split(r"\n\s*\n", markdown.strip()):
        if block.startswith("#"):
            title = block.lstrip("# ")
            made.append(f"<h{level}>{inline(title)}</h{level}>")
        elif block.startswith("|"):
            head, _, *rows = [_cells(line) for line in block.splitlines()]
            made.append(table(head, rows, title))
        elif block:
            made.append(f'<p class="note">{inline(" ".join(block.splitlines()))}</p>')
    return "\n".join(made)


def _cells(line: str) -> list[str]:
    return [inline(cell.strip()) for cell in line.strip().strip("|").split("|")]
