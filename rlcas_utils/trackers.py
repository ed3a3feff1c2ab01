"""Opt-in experiment trackers: a run that could not report is refused before it computes anything."""

from __future__ import annotations

import importlib.util
import os

from rlcas_utils.config import ConfigError

PACKAGES = {"tensorboard": "tensorboard", "trackio": "trackio", "wandb": "wandb"}


def require_tracker(name: str) -> None:
    """Check that the trainers could report to a tracker (their `report_to`).

    Args:
        name: "none", "tensorboard" (files in the stage's folder), "trackio" (on this machine, or a Space
            named by TRACKIO_SPACE_ID) or "wandb". Keys come from the environment only.

    Raises:
        ConfigError: An unknown name, a package that is not installed, or a key that is not set.
    """
    if name == "none":
        return
    if name not in PACKAGES:
        known = ", ".join(["none", *PACKAGES])
        raise ConfigError(f"REPORT_TO is {name!r}, which is no tracker; choose one of {known}.")
    if importlib.util.find_spec(PACKAGES[name]) is None:
        raise ConfigError(
            f"REPORT_TO is {name!r}, but the package {PACKAGES[name]} is not installed; training would stop "
            f"when it starts. Run pip install {PACKAGES[name]}, or set REPORT_TO to none."
        )
    missing = _missing_key(name)
    if missing:
        raise ConfigError(
            f"REPORT_TO is {name!r}, but {missing} is not set; the run would stop to ask for it. Set it in "
            "the environment, or set REPORT_TO to none."
        )


def _missing_key(name: str) -> str:
    """Return the environment variable that a tracker lacks, or an empty text; values are never shown."""
    if name == "wandb" and os.environ.get("WANDB_MODE") not in ("offline", "disabled"):
        return "" if os.environ.get("WANDB_API_KEY") else "WANDB_API_KEY"
    if name == "trackio" and os.environ.get("TRACKIO_SPACE_ID"):
        return "" if os.environ.get("HF_TOKEN") else "HF_TOKEN"
    return ""
