"""The course map of "Where we are": what each notebook hands to which, with the reader's place marked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlcas_utils import figures
from rlcas_utils.readme_figure import BOXES
from rlcas_utils.stages import BENCHMARK, DESK, FILTER, GRPO, SAC, SFT, STAGES, TELECOM

# Centres of the boxes: the desk's strand above, telecom's below, the benchmark after both.
PLACES = {
    DESK: (0.0, 1.0),
    SAC: (1.0, 1.0),
    FILTER: (2.0, 1.0),
    SFT: (3.0, 1.0),
    GRPO: (4.0, 1.0),
    TELECOM: (4.0, -0.5),
    BENCHMARK: (5.15, 0.25),
}
# What goes from one notebook straight to the next; dashed where it is no file but code of the package.
HANDED_ON = {
    (DESK, SAC): "desk",
    (SAC, FILTER): "expert",
    (FILTER, SFT): "chats",
    (SFT, GRPO): "adapter",
}
WIDTH, HEIGHT, BUS = 0.66, 0.72, 0.25
GREY = "#666666"


def judged() -> list[str]:
    """Return the notebooks whose episodes the benchmark reads."""
    return sorted({name.split("/")[0] for name in STAGES[BENCHMARK].reads})


def map_name(stem: str) -> str:
    """Return the file name, without ending, of a notebook's course map."""
    return f"map_{stem[:2]}"


def draw_map(stem: str, folder: Path) -> Path:
    """Draw the course map for one notebook and save it with its sidecar.

    Args:
        stem: The notebook whose place is marked.
        folder: Where to; the file is named by `map_name`.
    """
    import matplotlib.pyplot as plt

    figures.use_style()
    fig, ax = plt.subplots(figsize=(9.0, 2.6))
    ax.set_axis_off()
    ax.set(xlim=(-0.4, 5.55), ylim=(-1.0, 1.62))
    for name in BOXES:
        _box(ax, name, here=name == stem)
    for (start, end), text in HANDED_ON.items():
        _arrow(ax, start, end, text, dashed=start not in {r.split("/")[0] for r in STAGES[end].reads})
    _bus(ax)
    said = ", ".join(f"{start[:2]} hands its {text} to {end[:2]}" for (start, end), text in HANDED_ON.items())
    saved = figures.save_figure(
        fig,
        folder / map_name(stem),
        caption=f"Course map: you are in notebook {stem[:2]}.",
        alt=f"Map of the course with notebook {stem[:2]} marked: {said}; the episodes of "
        f"{', '.join(name[:2] for name in judged())} go to {BENCHMARK[:2]}, which judges them.",
        run={"drawn_by": "rlcas_utils.course_map"},
    )
    plt.close(fig)
    return saved


def draw_maps(folder: Path) -> list[Path]:
    """Draw the course map of every notebook."""
    return [draw_map(stem, folder) for stem in STAGES]


def _box(ax: Any, stem: str, *, here: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    (title, paint), (x, y) = BOXES[stem], PLACES[stem]
    tint = figures.color(paint)
    shape = "round,pad=0,rounding_size=0.06"
    corner = (x - WIDTH / 2, y - HEIGHT / 2)
    ax.add_patch(
        FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle=shape, lw=0, fc=tint, alpha=0.5 if here else 0.16)
    )
    weight = "bold" if here else "normal"
    ax.text(x, y, f"{stem[:2]}\n{title}", ha="center", va="center", fontsize=9, weight=weight)
    if here:
        ax.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, boxstyle=shape, lw=2.5, ec=tint, fc="none"))
        side, place = (1, "bottom") if y > BUS - 0.1 else (-1, "top")
        edge = y + side * (HEIGHT / 2 + 0.06)
        ax.text(x, edge, "you are here", ha="center", va=place, fontsize=9, weight="bold")


def _arrow(ax: Any, start: str, end: str, text: str, *, dashed: bool) -> None:
    (x0, y), (x1, _) = PLACES[start], PLACES[end]
    shape = {
        "arrowstyle": "->",
        "color": GREY,
        "linestyle": "--" if dashed else "-",
        "shrinkA": 1,
        "shrinkB": 1,
    }
    ax.annotate("", (x1 - WIDTH / 2, y), (x0 + WIDTH / 2, y), arrowprops=shape)
    ax.text((x0 + x1) / 2, y + 0.06, text, ha="center", va="bottom", fontsize=8.5, color=GREY)


def _bus(ax: Any) -> None:
    """Draw the line on which episodes travel to the benchmark."""
    ends = [PLACES[stem] for stem in judged()]
    for x, y in ends:
        edge = y - HEIGHT / 2 if y > BUS else y + HEIGHT / 2
        ax.plot([x, x], [edge, BUS], color=GREY, lw=1.2, solid_capstyle="butt")
    left = min(x for x, _ in ends)
    ax.annotate(
        "",
        (PLACES[BENCHMARK][0] - WIDTH / 2, BUS),
        (left, BUS),
        arrowprops={"arrowstyle": "->", "color": GREY, "shrinkA": 0, "shrinkB": 1, "linewidth": 1.2},
    )
    ax.text(
        left + 0.04, BUS - 0.06, "episodes of every agent, to be judged", va="top", fontsize=8.5, color=GREY
    )
