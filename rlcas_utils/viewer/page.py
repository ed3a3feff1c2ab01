"""What every piece of the viewer shares: escaped text, the stylesheet, and a page that needs nothing else."""

from __future__ import annotations

import html
from functools import cache
from pathlib import Path

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_DARK = (
    "--page:#14181f;--ink:#e6e9ef;--soft:#a9b3c2;--line:#3a4351;--card:#1d232d;--accent:#7db7f5;"
    "--good:#5fd0a0;--bad:#ff9d7d;--plus:#2f8f6b;--minus:#c2562f;--agent:#1f3350;--human:#2b3442"
)


def esc(value: object) -> str:
    """Return any value as escaped text, fit for element content and quoted attributes."""
    return html.escape(str(value))


@cache
def stylesheet(dark: str = "") -> str:
    """Return the viewer's CSS.

    Args:
        dark: Selector under which the dark colours hold, such as ``.dark .rv``; empty follows the reader's
            system setting.
    """
    css = Path(__file__).with_name("viewer.css").read_text(encoding="utf-8")
    if dark:
        return f"{css}\n{dark} {{{_DARK}}}\n"
    return f"{css}\n@media (prefers-color-scheme: dark) {{ .rv {{{_DARK}}} }}\n"


def document(title: str, body: str, style: str, policy: str) -> str:
    """Return a complete HTML document; the browser is told to load nothing that the policy does not name.

    Args:
        title: Plain text.
        body: The body element, as HTML.
        style: CSS.
        policy: Its content security policy.
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{esc(title)}</title>
<style>
{style}</style>
</head>
{body}
</html>
"""


def page(title: str, body: str) -> str:
    """Return a complete HTML page that loads nothing and runs no script.

    Args:
        title: Plain text.
        body: HTML made by the viewer.
    """
    style = f":root {{ color-scheme: light dark; }}\nbody {{ margin: 0; }}\n{stylesheet()}"
    shown = f'<body class="rv rv-page">\n<h1>{esc(title)}</h1>\n{body}\n</body>'
    return document(title, shown, style, POLICY)
