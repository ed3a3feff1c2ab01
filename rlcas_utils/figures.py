"""Figures of the course: one colour per agent throughout, fixed sizes, a caption beside each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcas_utils.records import write_atomic, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which stay apart for colour-blind readers; greys for what nobody trained.
PALETTE = {
    "random": "#9A9A9A",
    "always_transfer": "#9A9A9A",
    "rules": "#56B4E9",
    "classifier": "#56B4E9",
    "sac": "#0072B2",
    "expert": "#0072B2",
    "base": "#B8A200",
    "sft": "#E69F00",
    "grpo": "#D55E00",
    "oracle": "#009E73",
    "gold": "#009E73",
    "published": "#CC79A7",
    "gpt_4o_mini": "#CC79A7",
    "gemini_2_5_flash": "#8E5A7E",
    "own_server": "#5A4A6E",
}
LABELS = {
    "random": "random",
    "always_transfer": "always transfer",
    "rules": "keyword rules",
    "classifier": "first action by classifier",
    "sac": "SAC",
    "expert": "scripted expert",
    "base": "base model",
    "sft": "SFT",
    "grpo": "SFT + GRPO",
    "oracle": "oracle",
    "gold": "gold replay",
    "published": "published",
    "gpt_4o_mini": "GPT-4o-mini",
    "gemini_2_5_flash": "Gemini-2.5-flash",
    "own_server": "own server",
}
SIZES_INCH = {"single": (7.0, 4.0), "wide": (10.0, 4.0), "tall": (7.0, 6.5)}
DPI = 150


def color(agent: str) -> str:
    """Return the colour of an agent or stage, such as "sac"; black for names the course does not know."""
    return PALETTE.get(agent, "#000000")


def label(agent: str) -> str:
    """Return the reader's name of an agent, such as "keyword rules" for "rules"."""
    return LABELS.get(agent, agent.replace("_", " "))


def use_style() -> None:
    """Set matplotlib's defaults for the course."""
    import matplotlib as mpl

    mpl.rcParams.update(
        {
            "figure.figsize": SIZES_INCH["single"],
            "figure.dpi": 100,
            "figure.constrained_layout.use": True,
            "savefig.dpi": DPI,
            "font.size": 10.5,
            "axes.titlesize": 12,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#E6E6E6",
            "legend.frameon": False,
            "lines.linewidth": 1.8,
        }
    )


def new_figure(size: str = "single", rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Return a figure and its axes in one of the course's sizes.

    Args:
        size: "single" (7 x 4 inches), "wide" (10 x 4) or "tall" (7 x 6.5).
        rows: Rows of axes.
        columns: Columns of axes.
        **options: Passed to `matplotlib.pyplot.subplots`, such as `sharey=True`.
    """
    import matplotlib.pyplot as plt

    use_style()
    return plt.subplots(rows, columns, figsize=SIZES_INCH[size], **options)


def save_figure(fig: Figure, path: Path, *, caption: str, alt: str, run: dict[str, Any]) -> Path:
    """Write a figure as PNG with a JSON file beside it.

    Args:
        fig: The figure.
        path: Where to, with or without `.png`.
        caption: What the reader should see in it, with n, seeds and what the interval is.
        alt: The figure in words, for readers who cannot see it.
        run: Facts that identify the run (`run_id`, `profile`, `notebook`, `seed`).

    Returns:
        The path of the PNG.

    Raises:
        ValueError: The caption or the alternative text is empty.
    """
    if not caption.strip() or not alt.strip():
        raise ValueError(f"figure {path.stem} has no caption or no alt text; say in words what it shows.")
    png = path.with_suffix(".png")
    if run.get("profile") == "smoke":
        fig.text(
            0.995,
            0.005,
            "smoke run: toy sizes, no result",
            ha="right",
            va="bottom",
            fontsize=8,
            color="#AA0000",
        )
    write_atomic(png, _png(fig))
    write_json(png.with_suffix(".json"), {"caption": caption, "alt": alt, **run})
    return png


def _png(fig: Figure) -> bytes:
    import io

    buffer = io.BytesIO()
    # Without the version of matplotlib inside, equal figures are equal files.
    fig.savefig(buffer, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def show_figure(fig: Figure, png: Path, alt: str) -> None:
    """Close a figure and, inside a notebook, show the saved picture, so that reader and file agree."""
    import matplotlib.pyplot as plt

    plt.close(fig)
    try:
        from IPython import get_ipython
        from IPython.display import Image, display
    except ModuleNotFoundError:
        return
    if get_ipython() is not None:
        display(Image(filename=str(png), alt=alt, width=int(fig.get_figwidth() * 100)))
