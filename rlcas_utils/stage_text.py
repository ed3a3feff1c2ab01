"""What a stage prints: one short block when it opens, one short table when it is finished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlcas_utils import records
from rlcas_utils.machine import hardware

SHOWN_VERSIONS = ("python", "torch", "transformers", "trl", "gymnasium")


def opening(stage: Any, published: Mapping[str, Any]) -> str:
    """Return the block that `open_stage` prints.

    Args:
        stage: The open stage.
        published: Values of the parameters cell by name; what differs from them in the stage is listed.
    """
    versions = records.versions()
    machine = hardware()
    gpus = ", ".join(machine["gpus"]) or "no GPU"
    lines = [
        f"stage     {stage.run_id}, seed {stage.seed}",
        "versions  " + ", ".join(f"{name} {versions[name]}" for name in SHOWN_VERSIONS),
        f"machine   {machine['cores']} cores, {machine['memory_gib']} GiB, {gpus}",
        f"folder    {'kept from an earlier, equal run' if stage.kept else 'new'}",
    ]
    overridden = {
        name: value
        for name, value in stage.parameters.items()
        if name not in ("PROFILE", "RUN_DIR") and value != published[name]
    }
    if not overridden:
        return "\n".join([*lines, "values    as published"])
    lines.append(f"values    {len(overridden)} of {len(published)} differ from the published ones:")
    width = max(map(len, overridden))
    lines += [
        f"          {name:<{width}}  {published[name]!r} -> {value!r}" for name, value in overridden.items()
    ]
    return "\n".join(lines)


def closing(record: Mapping[str, Any], most: int = 24) -> str:
    """Return the table that `finish` prints.

    Args:
        record: A run record.
        most: Metrics shown; the rest is counted, because a cell should not print more than 30 lines.
    """
    metrics = record["metrics"]
    shown = list(metrics.items())[:most]
    width = max((len(name) for name, _ in shown), default=0)
    lines = [f"{name:<{width}}  {_metric_text(entry)}" for name, entry in shown]
    if len(metrics) > most:
        lines.append(f"and {len(metrics) - most} more metrics in the record")
    lines.append(
        f"{record['notebook']}: {len(record['outputs'])} outputs, {len(record['figures'])} figures, "
        f"{record['time_s']:.0f} s, at most {record['peak_rss_gib']} GiB of memory"
    )
    return "\n".join(lines)


def _metric_text(entry: Mapping[str, Any]) -> str:
    interval = "" if entry["ci95"] is None else f"  [{entry['ci95'][0]:.4g}, {entry['ci95'][1]:.4g}]"
    unit = f" {entry['unit']}" if entry["unit"] else ""
    return f"{entry['value']:>10.4g}{unit}{interval}  n={entry['n']}"
