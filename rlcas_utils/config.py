"""Where the project lies, what a profile says, and one seed for every random number generator.

A profile is a set of values for one scale of hardware. It only overrides parameters; no code path belongs to
one profile.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

PROFILE_KEYS = {"name", "description", "offline", "threads", "needs", "notebooks"}


class ConfigError(ValueError):
    """A profile, a parameter or an override that cannot be used; the text says what to change."""


@dataclass(frozen=True)
class Profile:
    """The values for one scale of hardware.

    Attributes:
        name: File stem under `profiles/`.
        description: One sentence.
        offline: True when model hubs must not be asked.
        threads: Compute threads of each notebook, or None for the library's own choice.
        needs: Smallest machine: `cores`, `memory_gib`, `disk_gib`, `gpu_gib`.
        notebooks: Overrides, by notebook stem and then by parameter name.
    """

    name: str
    description: str
    offline: bool = False
    threads: int | None = None
    needs: dict[str, float] = field(default_factory=dict)
    notebooks: dict[str, dict[str, Any]] = field(default_factory=dict)


def project_root() -> Path:
    """Return the folder that holds `notebooks/`, `profiles/` and `data/`, whatever the working directory is.

    Raises:
        ConfigError: The package was installed without the project around it.
    """
    root = Path(__file__).resolve().parents[1]
    if not (root / "profiles").is_dir():
        raise ConfigError(
            "there is no profiles/ beside the package, which runs from a clone of the project. "
            "Clone it and install with `make env` or `pip install --no-deps -e .`."
        )
    return root


def notebook_path(stem: str) -> Path:
    """Return the path of a course notebook, such as `02_sac_training`.

    Raises:
        ConfigError: There is no such notebook.
    """
    path = project_root() / "notebooks" / f"{stem}.ipynb"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.ipynb"))) or "none"
        raise ConfigError(f"notebooks/{stem}.ipynb does not exist; notebooks here: {known}.")
    return path


def profile_names() -> list[str]:
    """Return the names of the profiles that the project has."""
    return sorted(path.stem for path in (project_root() / "profiles").glob("*.yaml"))


def load_profile(name: str) -> Profile:
    """Read `profiles/<name>.yaml`.

    Raises:
        ConfigError: No such profile, unreadable YAML, or a key that profiles do not have.
    """
    path = project_root() / "profiles" / f"{name}.yaml"
    if not path.is_file():
        raise ConfigError(f"profile {name!r} does not exist; choose one of {', '.join(profile_names())}.")
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"profiles/{name}.yaml is not valid YAML: {error}") from error
    if not isinstance(content, dict) or not isinstance(content.get("notebooks"), dict):
        raise ConfigError(f"profiles/{name}.yaml needs the keys name, description and notebooks.")
    unknown = sorted(set(content) - PROFILE_KEYS)
    if unknown:
        raise ConfigError(f"profiles/{name}.yaml has unknown keys {unknown}; known: {sorted(PROFILE_KEYS)}.")
    if content.get("name") != name:
        raise ConfigError(f"profiles/{name}.yaml says name: {content.get('name')!r}; write name: {name}.")
    blocks = {stem: dict(values or {}) for stem, values in content.pop("notebooks").items()}
    return Profile(**content, notebooks=blocks)


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy and torch.

    Args:
        seed: Non-negative and below 2**32, the range of NumPy.
    """
    if not 0 <= seed < 2**32:
        raise ConfigError(f"SEED is {seed}; NumPy takes 0 to 4294967295. Set SEED to a value in that range.")
    import numpy as np
    import torch  # imported here because it takes seconds and most of the package does without

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
