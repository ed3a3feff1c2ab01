"""Does the large profile run on this GPU? `make gpu-check`: real sizes, random weights, no network.

Two steps of each training: SFT and GRPO at the desk, GRPO on telecom, with the profile's lengths, batch sizes
and 4-bit weights, through the functions that the notebooks call. The table says peak memory beside the memory
plan, tokens per second and seconds. Departures from a real run: weights are random, so episodes never end by
themselves; turns are cut at 32 tokens and telecom plays one batch of episodes a step, to stay in time.

Without CUDA a scaled-down architecture shows that the check itself works, and every line says so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlcas_utils.config import ConfigError, load_profile, project_root
from rlcas_utils.machine import hardware
from rlcas_utils.memory_plan import LIMIT_GIB, Moment, plan_memory
from rlcas_utils.records import versions, write_json
from rlcas_utils.run.plan import make_plan

CARD_GIB = 24 * 1000**3 / 2**30  # what a "24 GB" card has at most
BUDGET_S = 480.0
LINE = "{:<22} {:>6} {:>10} {:>10} {:>10} {:>9}"
SCALED = "scaled-down architecture on a CPU: this proves the check, not the memory of a GPU"


def table(phases: Sequence[Any], moments: Sequence[Moment], on_gpu: bool) -> list[str]:
    """Return the phases as lines of text.

    Args:
        phases: From `gpu_phases.run_phases`.
        moments: The memory plan of the same values.
        on_gpu: Whether peaks are of a GPU; only then the plan stands beside them.
    """
    lines = [LINE.format("phase", "steps", "peak GiB", "plan GiB", "tokens/s", "seconds")]
    for phase in phases:
        planned = [moment.total for moment in moments if moment.name == phase.moment]
        plan = f"{max(planned):.1f}" if on_gpu and planned else "-"
        rate = f"{phase.tokens_per_s:.0f}" if phase.tokens_per_s else "-"
        cells = (phase.name, phase.steps, f"{phase.peak_gib:.2f}", plan, rate, f"{phase.seconds:.1f}")
        lines.append(LINE.format(*cells))
    return lines


def verdict(phases: Sequence[Any], on_gpu: bool) -> str:
    """Return one sentence; it begins with "ok" when everything ran within the limit."""
    if not on_gpu:
        return f"ok: every phase ran ({SCALED})."
    highest = max(phases, key=lambda phase: phase.peak_gib)
    if highest.peak_gib > LIMIT_GIB:
        return (
            f"NO: {highest.name} took {highest.peak_gib:.1f} GiB, more than {LIMIT_GIB:.0f}. Lower the value "
            "that python -m rlcas_utils.run --check --profile a10g names for it."
        )
    return f"ok: at most {highest.peak_gib:.1f} GiB of {LIMIT_GIB:.0f}, in {highest.name}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check, print the table, write the record.

    Returns:
        0 when all phases ran within the limit, 1 when not, 2 when the profile has no large model.
    """
    parser = argparse.ArgumentParser(prog="rlcas_utils.run.gpu_check", description="Try the large profile.")
    parser.add_argument("--profile", default="a10g")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="[NB.]KEY=VALUE")
    parser.add_argument("--record", type=Path, default=project_root() / "runs" / "gpu_check.json")
    options = parser.parse_args(arguments)
    try:
        stages = make_plan(load_profile(options.profile), project_root() / "runs" / "x", options.settings)
    except ConfigError as error:
        print(f"Nothing was run. {error}")
        return 2
    moments = plan_memory(stages)
    if not moments:
        print(f"Profile {options.profile} has no large model; nothing to check. Use a10g or multi_gpu.")
        return 2
    return _run({stage.stem: stage.values for stage in stages}, moments, options)


def _run(values: dict[str, dict[str, Any]], moments: list[Moment], options: argparse.Namespace) -> int:
    import torch

    from rlcas_utils.run.gpu_phases import run_phases

    on_gpu = torch.cuda.is_available()
    device = torch.cuda.get_device_name() if on_gpu else "CPU"
    print(
        f"{device}: limited to {CARD_GIB:.1f} GiB" if on_gpu else f"No CUDA GPU here: {SCALED}.", flush=True
    )
    if on_gpu:
        total = torch.cuda.get_device_properties(0).total_memory / 2**30
        torch.cuda.set_per_process_memory_fraction(min(1.0, CARD_GIB / total))
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        phases = run_phases(values, Path(scratch), on_gpu, start + BUDGET_S)
    sentence = verdict(phases, on_gpu)
    print(*table(phases, moments, on_gpu), sentence, sep="\n")
    record = {
        "device": device,
        "scaled_down": not on_gpu,
        "profile": options.profile,
        "phases": [asdict(phase) for phase in phases],
        "plan": {moment.name: round(moment.total, 2) for moment in moments},
        "verdict": sentence,
        "seconds": round(time.monotonic() - start, 1),
        "hardware": hardware(),
        "versions": versions(),
    }
    write_json(options.record, record)
    return 0 if sentence.startswith("ok") else 1


if __name__ == "__main__":
    sys.exit(main())
