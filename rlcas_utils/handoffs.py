"""The files that one stage takes over from another: found, checked against the maker's record, or refused."""

from __future__ import annotations

from pathlib import Path

from rlcas_utils.config import project_root
from rlcas_utils.records import RecordError, read_record, sha256_tree
from rlcas_utils.stage_folder import STATE_FILE


class MissingHandoff(FileNotFoundError):
    """A file of an earlier stage that is not there or not whole; the text names the command that makes it."""


def find_handoff(name: str, run_dir: Path, profile: str, reader: str, sample: str | None) -> tuple[Path, str]:
    """Return a file or folder that an earlier stage wrote, or the sample that stands in for it.

    Args:
        name: Path below the run folder, such as `02_sac_training/expert.safetensors`.
        run_dir: The run folder.
        profile: Its profile, for the command in the message.
        reader: The stage that needs it.
        sample: Name below `data/samples/` of a small stand-in, so that a notebook runs alone.

    Returns:
        The path and the SHA-256 of what lies there.

    Raises:
        MissingHandoff: There is neither, or what is there was never finished or has changed since.
    """
    path, maker = run_dir / name, name.split("/")[0]
    remake = f"Run notebooks/{maker}.ipynb first: make course PROFILE={profile} ONLY={maker}"
    if path.exists():
        found = sha256_tree(path)
        fault = _fault(name, found, run_dir, maker)
        if fault:
            raise MissingHandoff(f"{name} {fault}; {reader} would go on with damaged work. {remake}")
        return path, found
    stand_in = project_root() / "data" / "samples" / sample if sample else None
    if stand_in is None or not stand_in.exists():
        raise MissingHandoff(
            f"{name} is not in the run folder and has no sample; {reader} needs it. {remake}"
        )
    print(f"NOTE: {name} is not there, so the small sample data/samples/{sample} stands in for it.")
    print("      Numbers from here on are not those of a full chain.")
    return stand_in, sha256_tree(stand_in)


def _fault(name: str, found: str, run_dir: Path, maker: str) -> str:
    """Say why a file is no finished work of its maker; empty for good work and files put there by hand."""
    if not (run_dir / maker / STATE_FILE).is_file():
        return ""
    try:
        outputs = read_record(run_dir / "records" / f"{maker}.json")["outputs"]
    except RecordError:
        return f"comes from a run of {maker} that did not reach its end, so it may be half-written"
    if outputs.get(name, found) != found:
        return f"is not what the record of {maker} says: it was changed or cut short since"
    return ""
