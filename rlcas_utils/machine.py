"""The machine and the sources that a run came from: git state, hardware, memory used."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any


def git_state(folder: Path) -> dict[str, Any]:
    """Return the commit and whether tracked files differ from it; both None outside a git clone."""

    def ask(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *arguments],
                cwd=folder,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=20,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    commit = ask("rev-parse", "HEAD")
    changes = ask("status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def hardware() -> dict[str, Any]:
    """Return system, processor, cores, threads, memory in GiB, GPU names; nothing that names the machine."""
    torch = sys.modules.get("torch")
    cuda = torch is not None and torch.cuda.is_available()
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": usable_cores(),
        "threads": torch.get_num_threads() if torch else None,
        "memory_gib": round(memory_gib(), 1),
        "gpus": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else [],
    }


def usable_cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_gib() -> float:
    """Return the main memory that this process may use, in GiB: the machine's, or its container's limit."""
    import psutil

    total = psutil.virtual_memory().total
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text(encoding="utf-8").strip() if limit.is_file() else "max"
    return min(total, int(text) if text.isdecimal() else total) / 2**30


def peak_rss_gib() -> float | None:
    """Return the largest resident memory of this process so far, in GiB; None on Windows."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 2)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
