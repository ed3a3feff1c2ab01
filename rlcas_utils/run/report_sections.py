"""The sections of the report, each a function from a run to HTML; an empty text leaves the section out."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from rlcas_utils import readme_blocks
from rlcas_utils.config import notebook_path
from rlcas_utils.parameters import read_parameters
from rlcas_utils.readme_figure import BOXES
from rlcas_utils.run.board import duration
from rlcas_utils.run.markup import from_markdown, inline, table, text
from rlcas_utils.run.report_source import Source
from rlcas_utils.stages import BENCHMARK, GRPO, SAC, SFT, STAGES, TELECOM

NOT_SETTINGS = ("PROFILE", "SEED", "RUN_DIR")


def title(stem: str) -> str:
    """Return a stage's short name, such as "SAC expert"."""
    return BOXES[stem][0].replace("-\n", "-").replace("\n", " ")


def summary(source: Source) -> str:
    """Return the lines under the title: headline, machine, time, and warnings."""
    records = list(source.records.values())
    machine, total = records[0]["hardware"], sum(record["time_s"] for record in records)
    commits = sorted({str(record["git"]["commit"])[:8] for record in records})
    gpus = ", ".join(machine["gpus"]) or "no GPU"
    facts = (
        f"{len(records)} of {len(STAGES)} notebooks in {duration(total)}, "
        f"finished {records[-1]['finished'][:10]}; "
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB of memory, {gpus}; "
        f"commit {', '.join(commits)}."
    )
    lines = [f'<p class="facts">{text(facts)}</p>']
    headline = readme_blocks.headline(source.records)
    if records[0]["profile"] != "smoke" and headline != readme_blocks.NO_RUN:
        said = headline.replace("In the reference run on a CPU, the", "The")
        lines.insert(0, f'<p class="lead">{inline(said)}</p>')
    lines += [f'<p class="warning">{text(words)}</p>' for words in warnings(source)]
    return "\n".join(lines)


def warnings(source: Source) -> list[str]:
    """Return what a reader must know before any number: toy sizes, lost sources, stages not run."""
    records, said = list(source.records.values()), []
    if records[0]["profile"] == "smoke":
        said.append("A smoke run: toy sizes that prove the chain runs. Its numbers are no results.")
    if any(record["git"]["dirty"] for record in records):
        said.append("It ran from sources with uncommitted changes, so nobody can repeat it exactly.")
    if len(records) < len(STAGES):
        missing = ", ".join(stem for stem in STAGES if stem not in source.records)
        said.append(f"Unfinished: no record of {missing}.")
    return said


def pipeline(source: Source) -> str:
    """Return the seven stages with their headline number and their share of the time."""
    numbers = readme_blocks.headlines(source.records)
    longest = max(record["time_s"] for record in source.records.values())
    items = []
    for stem in STAGES:
        record = source.records.get(stem)
        took = duration(record["time_s"]) if record else "not run"
        share = 100 * record["time_s"] / longest if record else 0
        items.append(
            f'<li><span class="step">{stem[:2]} · {took}</span><span class="name">{text(title(stem))}</span>'
            f'<span class="result">{text(numbers[stem])}</span>'
            f'<span class="bar" aria-hidden="true"><span style="width:{share:.0f}%"></span></span></li>'
        )
    return f'<ol class="pipeline" aria-label="Pipeline">{"".join(items)}</ol>'


def results(source: Source) -> str:
    """Return the result tables."""
    return "\n".join(from_markdown(markdown) for markdown in source.tables)


def figures(source: Source) -> str:
    """Return all figures with captions, by stage."""
    parts = []
    for stem, pictures in source.pictures.items():
        shown = "".join(
            f'<figure id="{text(p.name)}" style="width:{p.width_px}px"><img alt="{text(p.alt)}" '
            f'src="data:image/png;base64,{base64.b64encode(p.png).decode()}"><figcaption>{text(p.caption)}'
            "</figcaption></figure>"
            for p in pictures
        )
        parts.append(f'<h3>{stem[:2]} {text(title(stem))}</h3><div class="figures">{shown}</div>')
    return "\n".join(parts)


def episodes(source: Source) -> str:
    """Return links to the pages of the episode viewer."""
    links = "".join(f'<li><a href="{text(page)}">{text(_words(page))}</a></li>' for page in source.episodes)
    return f"<p>Whole episodes, turn by turn, beside this page:</p><ul>{links}</ul>" if links else ""


def _words(page: str) -> str:
    return page.rsplit("/", 1)[-1].removesuffix(".html").replace("_", " ")


def stages(source: Source) -> str:
    """Return every metric of every stage, folded."""
    return "\n".join(_stage(stem, record, source.pages.get(stem)) for stem, record in source.records.items())


def _stage(stem: str, record: Mapping[str, Any], page: str | None) -> str:
    rows = [
        (f"<code>{text(name)}</code>", _value(m), _interval(m), str(m["n"]), text(_seeds(m)), text(m["unit"]))
        for name, m in record["metrics"].items()
    ]
    heads = ("metric", "value", "95 % interval", "n", "seeds", "unit")
    facts = f"{duration(record['time_s'])}, {record['peak_rss_gib']} GiB of memory, {len(rows)} metrics"
    link = f'<p><a href="{text(page)}">The executed notebook</a></p>' if page else ""
    files = [
        (f"<code>{text(name)}</code>", direction, f"<code>{digest[:12]}</code>")
        for direction, key in (("read", "inputs"), ("written", "outputs"))
        for name, digest in record[key].items()
    ]
    return (
        f'<details><summary>{stem[:2]} {text(title(stem))} <span class="facts">{facts}</span></summary>{link}'
        f"{table(heads, rows, f'metrics of {stem}')}"
        f"{table(('file', '', 'SHA-256, first 12'), files, f'files of {stem}') if files else ''}</details>"
    )


def _value(metric: Mapping[str, Any]) -> str:
    return f"{metric['value']:.4g}"


def _interval(metric: Mapping[str, Any]) -> str:
    return "–" if metric["ci95"] is None else "{:.4g} to {:.4g}".format(*metric["ci95"])


def _seeds(metric: Mapping[str, Any]) -> str:
    return ", ".join(map(str, metric["seeds"])) or "–"


def settings(source: Source) -> str:
    """Return what was set, beside the published value where it differs, and the versions."""
    parts = []
    for stem, record in source.records.items():
        published = {name: p.default for name, p in read_parameters(notebook_path(stem)).items()}
        chosen = {k: v for k, v in record["parameters"].items() if k not in NOT_SETTINGS}
        rows = [
            (f"<code>{text(k)}</code>", text(v), "" if published.get(k) == v else text(published.get(k, "–")))
            for k, v in chosen.items()
        ]
        changed = sum(bool(row[2]) for row in rows)
        said = f"{len(rows)} values, {changed} differ from the published recipe"
        heads = ("parameter", "value", "published, where different")
        parts.append(
            f'<details><summary>{stem[:2]} {text(title(stem))} <span class="facts">{said}</span></summary>'
            f"{table(heads, rows, f'settings of {stem}')}</details>"
        )
    versions = next(iter(source.records.values()))["versions"]
    rows = [(text(name), text(version)) for name, version in versions.items()]
    return "\n".join([*parts, "<h3>Versions</h3>", table(("package", "version"), rows, "versions")])


def limits(source: Source) -> str:
    """Return what a reader could wrongly take from this page, from the records where they can tell."""
    records, said = source.records, list(source.gaps)
    metrics = readme_blocks.all_metrics(records)
    bare = sum(metric["ci95"] is None for metric in metrics.values())
    said.append(
        f"{bare} of {len(metrics)} numbers have no interval: counts, times, things measured once. "
        "Intervals cover the choice of tickets and tasks; they do not cover training again with another seed."
    )
    if SAC in records:
        seeds = records[SAC]["parameters"].get("NUM_SEEDS", 1)
        said.append(
            f"SAC was trained with {seeds} seed(s); the one chosen on validation tickets is reported."
        )
    once = [title(stem) for stem in (SFT, GRPO, TELECOM) if stem in records]
    if once:
        said.append(f"Trained once, with one seed: {'; '.join(once)}. Another seed would give another model.")
    if TELECOM in records and records[TELECOM]["parameters"].get("CUSTOMER") == "scripted":
        said.append(
            "The telecom customer was scripted, which makes tasks steadier than a language model's customer."
        )
    if BENCHMARK in records:
        absent = [a for a in ("gpt_4o_mini", "gemini_2_5_flash") if f"desk/{a}/return" not in metrics]
        if absent:
            said.append(
                f"Not played, because they need a key: {', '.join(map(readme_blocks.label, absent))}."
            )
    said.append(
        "Model weights, training logs and single episodes are not on this page. They lie in the run folder: "
        "one folder a stage, executed notebooks in html/, records in records/."
    )
    return "<ul>" + "".join(f"<li>{text(sentence)}</li>" for sentence in said) + "</ul>"
