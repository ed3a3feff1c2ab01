"""The generated blocks of README.md as Markdown, each from run records only."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlcas_utils.benchmark import DESK_AGENTS, TELECOM_AGENTS, published
from rlcas_utils.figures import label
from rlcas_utils.parameters import cell_source, read_notebook
from rlcas_utils.reference import PROFILE
from rlcas_utils.stages import STAGES

NO_RUN = "No reference run yet: `make course` makes the records, and this block is filled from them."
DASH = "–"
Records = Mapping[str, Mapping[str, Any]]
Metric = Mapping[str, Any]

# The number under each stage: the first of these metrics that the stage's record holds, and how it reads.
HEADLINES: dict[str, tuple[tuple[str, str], ...]] = {
    "01_environment_design": (("desk/oracle/return", "oracle {:.1f} reward"),),
    "02_sac_training": (("desk/sac/return", "SAC {:.1f} reward"),),
    "03_trajectory_filtering": (("trajectories/train_rows", "{:.0f} chats kept"),),
    "04_qlora_sft": (("desk/sft/return", "SFT {:.1f} reward"),),
    "05_grpo": (("desk/grpo/return", "GRPO {:.1f} reward"),),
    "06_tau2_telecom_grpo": (
        ("telecom/grpo/fixable/avg@3", "GRPO solves {:.0%} of fixable"),
        ("telecom/grpo/avg@3", "GRPO solves {:.0%}"),
    ),
    "07_benchmark": (("desk/grpo_minus_sft/return", "GRPO minus SFT {:+.1f}"),),
}


def interval_text(metric: Metric | None, form: str = ".2f") -> str:
    """Return a metric with its interval, such as `19.36 [18.90, 19.81]`, or a dash."""
    if metric is None:
        return DASH
    bounds = "" if metric["ci95"] is None else " [{:{f}}, {:{f}}]".format(*metric["ci95"], f=form)
    return f"{metric['value']:{form}}{bounds}"


def minutes_text(seconds: float) -> str:
    """Return a duration for a table: seconds below 90, else minutes."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def all_metrics(records: Records) -> dict[str, Metric]:
    """Return the metrics of all records; the benchmark notebook, which is last, wins where a name repeats."""
    return {
        name: metric for stem in STAGES for name, metric in records.get(stem, {}).get("metrics", {}).items()
    }


def headlines(records: Records) -> dict[str, str]:
    """Return the number under each stage of the pipeline as text; empty where the stage has no record."""
    found = {}
    for stem, choices in HEADLINES.items():
        metrics = records.get(stem, {}).get("metrics", {})
        texts = [form.format(metrics[name]["value"]) for name, form in choices if name in metrics]
        found[stem] = texts[0] if texts else ""
    return found


def headline(records: Records) -> str:
    """Return one sentence with the two results that matter most."""
    metrics = all_metrics(records)
    desk, oracle = metrics.get("desk/grpo/return"), metrics.get("desk/oracle/return")
    if desk is None or oracle is None:
        return NO_RUN
    trained = "SFT alone" if _undone(metrics) else "SFT and GRPO"
    text = (
        f"In the reference run on a CPU, the language model trained by {trained} earns "
        f"**{interval_text(desk)}** per ticket on {desk['n']} hand-written tickets (the oracle "
        f"{oracle['value']:.2f})"
    )
    fixable = metrics.get("telecom/grpo/fixable/avg@3")
    if fixable is None:
        return text + "."
    return (
        f"{text}, and the small telecom model solves **{interval_text(fixable)}** of its trials on the "
        f"{fixable['n']} fixable τ²-bench test tasks{_telecom_gain(metrics)}. "
        "Brackets: 95 % intervals over tickets and tasks."
    )


def _telecom_gain(metrics: Mapping[str, Metric]) -> str:
    """Say what GRPO added to imitation on all telecom tasks; empty where nothing was compared."""
    gain = metrics.get("telecom/grpo_minus_sft")
    if gain is None or gain["ci95"] is None:
        return ""
    return f" (GRPO minus SFT, all {gain['n']} tasks: {interval_text(gain, '+.2f')})"


def _undone(metrics: Mapping[str, Metric]) -> bool:
    """Say whether notebook 05 put its policy back to SFT, because validation tickets showed no gain."""
    gain = metrics.get("grpo/validation_gain")
    return gain is not None and gain["value"] < 0


def _undone_note(metrics: Mapping[str, Metric]) -> str:
    if not _undone(metrics):
        return ""
    gain = metrics["grpo/validation_gain"]
    return (
        f" GRPO changed the return on {gain['n']} validation tickets by {interval_text(gain)}, so notebook "
        "05 handed on the SFT policy: the rows SFT and SFT + GRPO are one policy."
    )


def picture(records: Records) -> str:
    """Return the pipeline picture with its text alternative."""
    parts = [f"{stem[:2]} {text}" for stem, text in headlines(records).items() if text]
    alt = "Pipeline of seven notebooks: " + (", ".join(parts) if parts else "no reference run yet")
    return f"![{alt}](figures/pipeline.png)"


def _card_value(path: Path, row: str) -> str:
    for cell in read_notebook(path)["cells"] if path.is_file() else ():
        match = re.search(rf"^\|\s*\*\*{row}\*\*\s*\|\s*(.+?)\s*\|\s*$", cell_source(cell), re.MULTILINE)
        if match:
            return match[1]
    return DASH


def badge(url: str, stem: str) -> str:
    """Return the badge that opens a notebook on Colab; empty without a GitHub address."""
    match = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?", url)
    if not match:
        return ""
    target = f"https://colab.research.google.com/github/{match[1]}/blob/main/notebooks/{stem}.ipynb"
    return f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({target})"


def _title(path: Path, stem: str) -> str:
    for cell in read_notebook(path)["cells"] if path.is_file() else ():
        match = re.search(r"^# (\d\d .+)$", cell_source(cell), re.MULTILINE)
        if match and cell["cell_type"] == "markdown":
            return match[1]
    return stem.replace("_", " ")


def notebooks(root: Path, records: Records, url: str, others: Mapping[str, Records] | None = None) -> str:
    """Return the table of notebooks: link and badge, what one builds, result, measured times by profile.

    Args:
        root: project folder; title and "you build" are read from each notebook.
        records: of the reference run.
        url: repository address; badges appear once it is a GitHub address.
        others: records by profile, of runs whose times are shown too.
    """
    numbers = headlines(records)
    own = next(iter(records.values()), {}).get("profile", PROFILE)
    timed = {own: records} | {name: run for name, run in (others or {}).items() if name != own}
    lines = [
        f"| notebook | you build | result | {' | '.join(f'`{name}`' for name in timed)} |",
        "|---|---|---|" + "---|" * len(timed),
    ]
    for stem in STAGES:
        path = root / "notebooks" / f"{stem}.ipynb"
        times = [minutes_text(run[stem]["time_s"]) if stem in run else "not run" for run in timed.values()]
        link = f"[{_title(path, stem)}](notebooks/{stem}.ipynb) {badge(url, stem)}".strip()
        cells = [link, _card_value(path, "You build"), numbers[stem] or DASH, *times]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def desk(records: Records) -> str:
    """Return the desk results."""
    metrics = all_metrics(records)
    agents = [agent for agent in DESK_AGENTS if f"desk/{agent}/return" in metrics]
    if not agents:
        return NO_RUN
    lines = [
        "| agent | average reward | resolved | steps | parse failures | published |",
        "|---|---|---|---|---|---|",
    ]
    for agent in DESK_AGENTS:
        get: Callable[[str], Metric | None] = lambda name, agent=agent: metrics.get(f"desk/{agent}/{name}")
        cells = [interval_text(get("return")), interval_text(get("resolution_rate"))]
        cells += [interval_text(get("steps"), ".1f"), interval_text(get("parse_failure_rate"), ".3f")]
        card = published("desk")["agents"].get(agent)
        cells.append(f"{card['return']:.2f}, {card['resolution_rate']:.0%}" if card else DASH)
        if agent in agents or card:
            lines.append(f"| {label(agent)} | " + " | ".join(cells) + " |")
    n = max(metrics[f"desk/{agent}/return"]["n"] for agent in agents)
    return "\n".join(lines) + (
        f"\n\nn = {n} tickets; brackets: 95 % intervals over tickets. Published: [model card]"
        f"({published('desk')['url']}), reward and resolution. {published('desk')['caveat']}"
        f"{_undone_note(metrics)}"
    )


def telecom(records: Records) -> str:
    """Return the telecom results."""
    metrics = all_metrics(records)
    agents = [a for a in TELECOM_AGENTS if any(name.startswith(f"telecom/{a}/avg@") for name in metrics)]
    if not agents:
        return NO_RUN
    lines = [
        "| agent | k | avg@k | pass@k | pass^k | fixable avg@k | transfer avg@k | transfer rate |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for agent in agents:
        own = {
            n.removeprefix(f"telecom/{agent}/"): m
            for n, m in metrics.items()
            if n.startswith(f"telecom/{agent}/")
        }
        k = next(name[4:] for name in own if name.startswith("avg@"))
        names = (
            f"avg@{k}",
            f"pass@{k}",
            f"pass^{k}",
            f"fixable/avg@{k}",
            f"transfer/avg@{k}",
            "transfer_rate",
        )
        cells = [label(agent), k, *(interval_text(own.get(name)) for name in names)]
        lines.append("| " + " | ".join(cells) + " |")
    card = published("telecom")["agents"]["grpo"]
    stated = [f"{card[name]:.3f}" for name in ("avg@3", "pass@3", "pass^3")]
    lines.append("| published | 3 | " + " | ".join([*stated, DASH, DASH, DASH]) + " |")
    n = max(m["n"] for name, m in metrics.items() if re.fullmatch(r"telecom/\w+/avg@\d+", name))
    return "\n".join(lines) + (
        f"\n\nn = {n} tasks; brackets: 95 % intervals over tasks. Published: [model card]"
        f"({published('telecom')['url']}). {published('telecom')['caveat']}"
    )


def _commit(git: Mapping[str, Any]) -> str:
    return f"{str(git['commit'])[:8]}{' with local changes' if git['dirty'] else ''}"


def run(records: Records) -> str:
    """Return what the reference run was: machine, time, commit, seed."""
    if not records:
        return NO_RUN
    first, total = next(iter(records.values())), sum(record["time_s"] for record in records.values())
    machine = first["hardware"]
    commits = sorted({_commit(record["git"]) for record in records.values()})
    missing = [stem for stem in STAGES if stem not in records]
    gap = f" Not in it: {', '.join(missing)}." if missing else ""
    peak = max(record["peak_rss_gib"] for record in records.values())
    return (
        f"Reference run: profile `{first['profile']}`, seed {first['seed']}, {machine['cores']} cores "
        f"({machine['processor']}), {machine['memory_gib']} GiB, {minutes_text(total)} for {len(records)} "
        f"notebooks, at most {peak} GiB of memory, commit {', '.join(commits)}.{gap}"
    )
