"""The picture on the README's first screen: seven stages with the headline number under each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rlcas_utils import figures
from rlcas_utils.reference import PROFILE

# Two lines of title and the colour of each box.
BOXES: dict[str, tuple[str, str]] = {
    "01_environment_design": ("customer-\nservice desk", "oracle"),
    "02_sac_training": ("SAC\nexpert", "sac"),
    "03_trajectory_filtering": ("good\nepisodes", "sac"),
    "04_qlora_sft": ("QLoRA SFT\nof a model", "sft"),
    "05_grpo": ("GRPO\non rewards", "grpo"),
    "06_tau2_telecom_grpo": ("τ²-bench\ntelecom", "grpo"),
    "07_benchmark": ("benchmark", "published"),
}
# Who hands on to whom, as positions in BOXES, and how far the arrow bows over boxes between.
ARROWS = ((0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0), (3, 4, 0.0), (4, 6, -0.3), (5, 6, 0.0))
WIDTH, HEIGHT = 0.76, 0.86


def draw_pipeline(numbers: Mapping[str, str], path: Path) -> Path:
    """Draw the pipeline and save it with a sidecar that holds the numbers drawn.

    Args:
        numbers: text under each stage, by notebook stem; empty texts are left out.
        path: target without ending.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patches import FancyBboxPatch

    figures.use_style()
    fig, ax = plt.subplots(figsize=(10.0, 2.3))
    ax.set_axis_off()
    ax.set(xlim=(-0.5, len(BOXES) - 0.5), ylim=(-0.5, 1.55))
    for x, (stem, (title, paint)) in enumerate(BOXES.items()):
        corner, tint = (x - WIDTH / 2, 0.2), figures.color(paint)
        style = {"boxstyle": "round,pad=0,rounding_size=0.06", "facecolor": tint, "alpha": 0.18}
        ax.add_patch(FancyBboxPatch(corner, WIDTH, HEIGHT, linewidth=0, **style))
        ax.text(x, 0.63, f"{stem[:2]}\n{title}", ha="center", va="center", fontsize=9.5)
        ax.text(x, -0.15, _two_lines(numbers[stem]), ha="center", va="center", fontsize=9, weight="bold")
    for start, end, bow in ARROWS:
        shape = {"arrowstyle": "->", "color": "#666666", "connectionstyle": f"arc3,rad={bow}"}
        height = 1.06 if bow else 0.63
        shift = 0.0 if bow else WIDTH / 2
        ax.annotate("", (end - shift, height), (start + shift, height), arrowprops=shape)
    caption = "The seven notebooks with the headline number of the reference run under each."
    said = "; ".join(f"{stem[:2]} {text or 'no number yet'}" for stem, text in numbers.items())
    run = {"profile": PROFILE, "numbers": dict(numbers)}
    saved = figures.save_figure(
        fig, path, caption=caption, alt=f"Pipeline of seven notebooks: {said}.", run=run
    )
    plt.close(fig)
    return saved


def _two_lines(text: str) -> str:
    text = text or "no run yet"
    words = text.split()
    return "\n".join((" ".join(words[: (len(words) + 1) // 2]), " ".join(words[(len(words) + 1) // 2 :])))
