"""Push a finished stage's model, card and records to the model hub: `python -m rlcas_utils.run.hub 05`.

Nothing else in the project writes to the hub. The token comes from HF_TOKEN only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlcas_utils.config import ConfigError, project_root
from rlcas_utils.records import RecordError, read_record, sha256_tree, write_atomic
from rlcas_utils.run.plan import find_stem

MODELS = {"04_qlora_sft": "merged", "05_grpo": "adapter", "06_tau2_telecom_grpo": "model"}
TAGS = {"04_qlora_sft": "sft", "05_grpo": "grpo", "06_tau2_telecom_grpo": "grpo"}

_CARD = """---
base_model: {base}
tags: [customer-service, reinforcement-learning, {tag}]
---

# {title}

Made by notebook `{notebook}` of the RL-CAS course, profile `{profile}`, seed {seed}. The complete run record
lies beside this card in `records/`.

| metric | value | 95 % interval | n |
|---|---|---|---|
{metrics}

## Values

{values}
"""


def card_text(record: Mapping[str, Any], title: str) -> str:
    """Return a model card from a run record; no number is typed by hand.

    Args:
        record: Of the stage.
        title: Name of the model.
    """
    metrics = "\n".join(_line(name, entry) for name, entry in record["metrics"].items())
    values = "\n".join(f"- {name}: {value}" for name, value in record["parameters"].items())
    base = record["parameters"]["MODEL"]
    return _CARD.format(
        base=base if "/" in base else "none",
        tag=TAGS[record["notebook"]],
        title=title,
        notebook=record["notebook"],
        profile=record["profile"],
        seed=record["seed"],
        metrics=metrics,
        values=values,
    )


def _line(name: str, entry: Mapping[str, Any]) -> str:
    interval = "" if entry["ci95"] is None else "{:.3g} to {:.3g}".format(*entry["ci95"])
    return f"| {name} | {entry['value']:.4g} {entry['unit']} | {interval} | {entry['n']} |"


def gather(run_dir: Path, stem: str, title: str, target: Path) -> None:
    """Put together what is pushed: weights, tokenizer, card, and the records of the whole run.

    Args:
        run_dir: The run folder.
        stem: The stage.
        title: Name of the model, for the card.
        target: A folder that does not exist yet.

    Raises:
        ConfigError: The stage is not finished, or its model is not what its record says.
    """
    remake = f"Run it first: make course PROFILE={run_dir.name} ONLY={stem}"
    try:
        record = read_record(run_dir / "records" / f"{stem}.json")
    except RecordError as error:
        raise ConfigError(
            f"{stem} has no finished run in {run_dir.name}, so there is no model. {remake}"
        ) from error
    name = f"{stem}/{MODELS[stem]}"
    if not (run_dir / name).is_dir() or sha256_tree(run_dir / name) != record["outputs"].get(name):
        raise ConfigError(f"{name} is not what its record says, so it will not be published. {remake}")
    shutil.copytree(run_dir / name, target)
    if stem != "04_qlora_sft":  # notebook 04 writes a card of its own; PEFT's is a form to fill in
        write_atomic(target / "README.md", card_text(record, title))
    (target / "records").mkdir()
    for path in sorted((run_dir / "records").glob("*.json")):
        shutil.copyfile(path, target / "records" / path.name)


def push(run_dir: Path, stem: str, repository: str, *, public: bool) -> str:
    """Push one stage's model.

    Args:
        run_dir: The run folder.
        stem: Such as "05" or "05_grpo".
        repository: Such as "owner/name"; it is made when it does not exist.
        public: Visible to everybody.

    Returns:
        The address.

    Raises:
        ConfigError: No token, an unusable name, or nothing finished to push.
    """
    stem = find_stem(stem, list(MODELS))
    token = os.environ.get("HF_TOKEN")
    if not token:
        raise ConfigError(
            "HF_TOKEN is not set, so the hub would refuse the push. Set it in the environment to a token "
            "with write access; it is not stored."
        )
    if repository.count("/") != 1:
        raise ConfigError(f"{repository!r} is no repository; write --repo OWNER/NAME.")
    from huggingface_hub import HfApi

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        gather(run_dir, stem, repository.split("/")[1], folder)
        api = HfApi(token=token)
        api.create_repo(repository, private=not public, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository, folder_path=str(folder), commit_message=f"{stem}, profile {run_dir.name}"
        )
    return str(getattr(done, "commit_url", repository))


def main(arguments: Sequence[str] | None = None) -> int:
    """Push a model; exit status 2 when it was refused."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.run.hub", description=__doc__.split("\n")[0])
    parser.add_argument("stage", help="04, 05 or 06")
    parser.add_argument("--repo", required=True, metavar="OWNER/NAME")
    parser.add_argument("--profile", default="a10g")
    parser.add_argument("--runs-dir", type=Path, help="where run folders lie (default: runs/)")
    parser.add_argument("--public", action="store_true", help="visible to everybody (default: private)")
    options = parser.parse_args(arguments)
    run_dir = (options.runs_dir or project_root() / "runs").resolve() / options.profile
    try:
        print(push(run_dir, options.stage, options.repo, public=options.public))
    except ConfigError as error:
        print(f"Nothing was pushed. {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
