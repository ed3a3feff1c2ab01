"""What a run will do, decided and checked before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcas_utils.config import ConfigError, Profile, project_root
from rlcas_utils.parameters import Parameter, is_secret, parse_text, read_parameters, validate_overrides
from rlcas_utils.stages import STAGES

REQUIRED = ("PROFILE", "SEED", "RUN_DIR")


@dataclass(frozen=True)
class PlannedStage:
    """One notebook with the values of all its parameters."""

    stem: str
    notebook: Path
    values: dict[str, Any]


def make_plan(profile: Profile, run_dir: Path, settings: Sequence[str] = ()) -> list[PlannedStage]:
    """Combine the notebooks' defaults, the profile and the command line, and check every name and type.

    Args:
        profile: The profile.
        run_dir: The run folder.
        settings: `KEY=VALUE` for every notebook that has KEY, or `NOTEBOOK.KEY=VALUE` for one.

    Returns:
        All notebooks of the course, in order.

    Raises:
        ConfigError: One line for each fault, all at once.
    """
    notebooks = {
        path.stem: path for path in sorted((project_root() / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    }
    if not notebooks:
        raise ConfigError("notebooks/ holds no notebook named like 01_name.ipynb; restore it from git.")
    parameters = {stem: read_parameters(path) for stem, path in notebooks.items()}
    errors = [
        f"{stem} has no parameter {name}; every notebook needs {', '.join(REQUIRED)}."
        for stem, known in parameters.items()
        for name in REQUIRED
        if name not in known
    ]
    errors += [
        f"profile {profile.name} names {s}, which is no notebook."
        for s in set(profile.notebooks) - set(notebooks) - set(STAGES)
    ]
    overrides = {stem: dict(profile.notebooks.get(stem, {})) for stem in notebooks}
    errors += _apply_settings(settings, parameters, overrides)
    for stem, values in overrides.items():
        errors += validate_overrides(stem, parameters[stem], values)
    if errors:
        raise ConfigError("\n".join(errors))
    fixed = {"PROFILE": profile.name, "RUN_DIR": portable(run_dir)}
    return [
        PlannedStage(stem, path, _defaults(parameters[stem]) | overrides[stem] | fixed)
        for stem, path in notebooks.items()
    ]


def select(plan: Sequence[PlannedStage], only: str = "", first: str = "") -> list[PlannedStage]:
    """Return the stages to run.

    Args:
        plan: All stages.
        only: Comma-separated notebooks, by stem or number ("02,03"); empty for all.
        first: The notebook to start from; empty for the beginning.

    Raises:
        ConfigError: A name that is no notebook.
    """
    stems = [stage.stem for stage in plan]
    wanted = {find_stem(name, stems) for name in only.split(",") if name} or set(stems)
    start = stems.index(find_stem(first, stems)) if first else 0
    return [stage for stage in plan[start:] if stage.stem in wanted]


def find_stem(name: str, stems: Sequence[str]) -> str:
    """Return the notebook that a name such as "02", "2" or "02_sac_training" means.

    Raises:
        ConfigError: None or several.
    """
    name = name.strip().removesuffix(".ipynb")
    found = [s for s in stems if name == s or (name.isdecimal() and s.startswith(f"{int(name):02d}_"))]
    if len(found) != 1:
        raise ConfigError(f"{name!r} is not a notebook; choose from {', '.join(stems)}.")
    return found[0]


def portable(path: Path) -> str:
    """Return a path relative to the project when it lies inside: records should not name machines."""
    root = project_root()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _defaults(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in parameters.items()}


def _apply_settings(
    settings: Sequence[str],
    parameters: Mapping[str, Mapping[str, Parameter]],
    overrides: dict[str, dict[str, Any]],
) -> list[str]:
    """Put command-line settings into the overrides; return the faults."""
    errors = []
    for setting in settings:
        target, equals, text = setting.partition("=")
        notebook, dot, key = target.rpartition(".")
        if is_secret(key, text):
            errors.append(f"--set {target} looks like a secret; set it as an environment variable instead.")
        elif not equals:
            errors.append(f"--set {setting} has no value; write --set {setting}=VALUE.")
        elif dot:
            stem = find_stem(notebook, list(parameters))
            known = parameters[stem].get(key)
            overrides[stem][key] = parse_text(text, known) if known else text
        else:
            errors += _apply_everywhere(key, text, parameters, overrides)
    return errors


def _apply_everywhere(
    key: str,
    text: str,
    parameters: Mapping[str, Mapping[str, Parameter]],
    overrides: dict[str, dict[str, Any]],
) -> list[str]:
    if key in ("PROFILE", "RUN_DIR"):
        return [f"--set {key} is not possible; use --profile or --runs-dir."]
    stems = [stem for stem, known in parameters.items() if key in known]
    for stem in stems:
        overrides[stem][key] = parse_text(text, parameters[stem][key])
    if stems:
        return []
    every = {name: parameter for known in parameters.values() for name, parameter in known.items()}
    return validate_overrides("the course", every, {key: text})
