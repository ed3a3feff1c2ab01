"""The page: header, the two tabs, and who is missing."""

from __future__ import annotations

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

import gradio as gr

from rlcas_utils.demo.desk_tab import desk_tab
from rlcas_utils.demo.roster import Roster, desk_roster, telecom_roster
from rlcas_utils.demo.source import Source
from rlcas_utils.demo.telecom_tab import telecom_tab
from rlcas_utils.viewer.page import esc, stylesheet

AT_ONCE = 24  # visitors whose clicks are worked on side by side; language models take turns below that
TITLE = "Meet the agents"
CSS = """
.gradio-container { max-width: 92rem !important; margin: 0 auto !important; }
.rv { padding: .1rem; }
.tools button { justify-content: flex-start; text-align: left; font-weight: 500; min-width: 11rem; }
footer { display: none !important; }
@media (max-width: 34rem) {
  .gradio-container { padding: .5rem !important; }
  .tools button { min-width: 8.5rem; }
}
"""

# A list that the Tab key has left stays open in Gradio, over the buttons below it. CSS cannot tell: when the
# list had the focus itself, Chromium goes on believing that its block has it.
CLOSE_LISTS = """() => document.addEventListener("focusin", event => {
  for (const list of document.querySelectorAll(".options"))
    list.style.display = list.closest(".block").contains(event.target) ? "" : "none";
})"""


def theme() -> gr.themes.Base:
    """Return a theme whose fonts are the reader's own, so that nothing is fetched."""
    return gr.themes.Default(
        primary_hue="blue",
        font=["system-ui", "sans-serif"],
        font_mono=["ui-monospace", "monospace"],
    ).set(
        button_primary_background_fill="*primary_700",
        button_primary_background_fill_dark="*primary_700",
        button_primary_background_fill_hover="*primary_800",
        button_primary_background_fill_hover_dark="*primary_800",
        button_cancel_background_fill="#b91c1c",
        button_cancel_background_fill_hover="#991b1b",
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        block_title_text_color="*neutral_700",
        block_title_text_color_dark="*neutral_200",
    )


def missing_html(roster: Roster) -> str:
    """Return the agents that cannot play, with what each needs."""
    if not roster.missing:
        return ""
    lines = "".join(f"<li>{esc(line)}</li>" for line in roster.missing.values())
    return (
        f'<div class="rv"><details><summary>{len(roster.missing)} agents are not here</summary>'
        f"<ul>{lines}</ul></details></div>"
    )


def build(source: Source) -> gr.Blocks:
    """Put the page together.

    Args:
        source: The run whose agents play.
    """
    desk, telecom = desk_roster(source), telecom_roster(source)
    with gr.Blocks(title=TITLE, analytics_enabled=False) as page:
        gr.HTML(f'<div class="rv"><h1>{TITLE}</h1><p>{esc(source.headline())}</p></div>')
        with gr.Tab("Desk"):
            desk_tab(desk)
            gr.HTML(missing_html(desk))
        with gr.Tab("Telecom"):
            telecom_tab(telecom)
            gr.HTML(missing_html(telecom))
    page.queue(default_concurrency_limit=AT_ONCE, max_size=200)
    return page


def launch(source: Source, host: str, port: int, *, wait: bool = True) -> str:
    """Serve the page.

    Args:
        source: The run whose agents play.
        host: Address to listen at; 127.0.0.1 is this machine alone.
        port: TCP port, 0 for any free one from 7860 on.
        wait: Block until interrupted.

    Returns:
        The address.
    """
    _, address, _ = build(source).launch(
        server_name=host,
        server_port=port or None,
        share=False,
        quiet=True,
        show_error=False,
        prevent_thread_lock=not wait,
        theme=theme(),
        css=CSS + stylesheet(".dark .rv"),
        js=CLOSE_LISTS,
    )
    return address
