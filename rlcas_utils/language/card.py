"""The model card of an exported model, written from what its run recorded; no number is typed by hand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlcas_utils.records import write_atomic

_TEMPLATE = """---
license: apache-2.0
language:
  - en
base_model: {base}
pipeline_tag: text-generation
tags:
  - customer-service
  - tool-use
  - {method}
---

# {title}

Chooses the next action at the RL-CAS customer-service desk. It answers with one JSON object,
`{{"reasoning": "...", "action_id": 0}}`, and writes nothing to customers.

## Results

On the committed benchmark queries, greedy decoding, 95 % intervals over queries. Measured: {measured}.

| metric | value | 95 % interval | n |
|---|---|---|---|
{results}

## Training

{training}

## Limits

- Made for this desk's 13 actions and its system prompt; another prompt is another model.
- Trained on synthetic queries from templates and on an agent's trajectories, not on real customers.
- Needs the desk's services to carry out an action.

Run: `{run_id}`.
"""


def write_card(
    folder: Path,
    *,
    title: str,
    base: str,
    method: str,
    measured: str,
    metrics: Mapping[str, Mapping[str, Any]],
    training: Mapping[str, Any],
    run_id: str,
) -> Path:
    """Write ``README.md`` into an exported model's folder.

    Args:
        folder: The export.
        title: Name of the model.
        base: Name of the base model.
        method: Tag such as ``"sft"`` or ``"grpo"``.
        measured: Which form of the model the results belong to.
        metrics: Entries as in a run record: value, n, ci95, unit.
        training: Facts in order, name to value.
        run_id: Run that the numbers come from.

    Returns:
        Path of the card.
    """
    results = "\n".join(_result_line(name, entry) for name, entry in metrics.items())
    facts = "\n".join(f"- {name}: {value}" for name, value in training.items())
    text = _TEMPLATE.format(
        title=title,
        base=base,
        method=method,
        measured=measured,
        results=results,
        training=facts,
        run_id=run_id,
    )
    return write_atomic(folder / "README.md", text)


def _result_line(name: str, entry: Mapping[str, Any]) -> str:
    interval = entry.get("ci95")
    shown = f"{interval[0]:.3g} to {interval[1]:.3g}" if interval else ""
    return f"| {name} | {entry['value']:.4g} {entry['unit']} | {shown} | {entry['n']} |"
