"""The command line of the runner."""

from __future__ import annotations

import argparse
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from rlcas_utils.config import ConfigError, Profile, load_profile, profile_names, project_root
from rlcas_utils.memory_plan import plan_memory
from rlcas_utils.memory_tables import memory_table
from rlcas_utils.records import RecordError, explained, read_record
from rlcas_utils.run.board import Board
from rlcas_utils.run.checks import StageFailure, faults, files_of
from rlcas_utils.run.executed import write_html
from rlcas_utils.run.plan import PlannedStage, make_plan, portable, select
from rlcas_utils.run.preflight import check, overview
from rlcas_utils.stages import BENCHMARK

FAILED, REFUSED, INTERRUPTED = 1, 2, 130


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m rlcas_utils.run", description="Run the course, headless.")
    made.add_argument("--profile", default="cpu", help=f"one of {', '.join(profile_names())} (default: cpu)")
    made.add_argument("--only", default="", metavar="NB", help="these notebooks, such as 02 or 02,03")
    made.add_argument(
        "--from", default="", dest="first", metavar="NB", help="this notebook and those after it"
    )
    made.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="[NB.]KEY=VALUE",
        help="change a parameter",
    )
    made.add_argument("--force", action="store_true", help="run the chosen notebooks again from nothing")
    made.add_argument("--check", action="store_true", help="only look whether this machine fits the profile")
    made.add_argument("--runs-dir", type=Path, help="where run folders lie (default: runs/)")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the course and return the exit status.

    Returns:
        0 when every chosen notebook is finished, 1 when one failed, 2 when the request was refused before any
        compute, 130 after Ctrl-C.
    """
    options = parser().parse_args(arguments)
    try:
        profile = load_profile(options.profile)
        run_dir = (options.runs_dir or project_root() / "runs").resolve() / profile.name
        plan = make_plan(profile, run_dir, options.settings)
        stages = select(plan, options.only, options.first)
    except ConfigError as error:
        print(f"Nothing was run.\n{error}")
        return REFUSED
    if options.check:
        return _check(profile, stages, run_dir)
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        with FileLock(run_dir / ".lock", timeout=0):
            return _run(stages, profile, run_dir, options)
    except Timeout:
        print(f"Another run is using {portable(run_dir)}. Wait for it, or choose another --runs-dir.")
        return REFUSED
    except OSError as error:
        print(f"\nStopped: {error.filename or portable(run_dir)} could not be written. {explained(error)}")
        return FAILED


def _run(stages: list[PlannedStage], profile: Profile, run_dir: Path, options: argparse.Namespace) -> int:
    resume = _resume_command(options)
    if options.force:
        for stage in stages:
            _forget(stage.stem, run_dir)
    try:
        with Board({stage.stem: _reference_s(stage.stem, profile) for stage in stages}) as board:
            for stage in stages:
                _bring_to_end(stage, profile, run_dir, board)
    except StageFailure as failure:
        print(f"\n{failure}\nFinished notebooks are kept. When it is mended, go on with: {resume}")
        return FAILED
    except KeyboardInterrupt:
        print(f"\nStopped. Finished notebooks and finished pieces are kept; go on with: {resume}")
        return INTERRUPTED
    _say_where(stages, run_dir)
    return 0


def _bring_to_end(stage: PlannedStage, profile: Profile, run_dir: Path, board: Board) -> None:
    if not faults(stage, run_dir):
        files = files_of(stage.stem, run_dir)
        if not files.html.is_file():
            write_html(files.executed, files.html)
        board.end(stage.stem, "finished before")
        return
    from rlcas_utils.run.execution import run_stage  # papermill takes seconds to import

    try:
        run_stage(stage, profile, run_dir, board)
    except KeyboardInterrupt:
        board.end(stage.stem, "stopped")
        raise
    except BaseException:
        board.end(stage.stem, "failed")
        raise
    board.end(stage.stem, "done")


def _resume_command(options: argparse.Namespace) -> str:
    """Return the command that goes on with the same run, without --force, which would begin it anew."""
    if not options.settings and not options.runs_dir:
        chosen = [
            f" {key}={value}" for key, value in (("ONLY", options.only), ("FROM", options.first)) if value
        ]
        return f"make course PROFILE={options.profile}{''.join(chosen)}"
    words = ["python", "-m", "rlcas_utils.run", "--profile", options.profile]
    words += ["--only", options.only] if options.only else []
    words += ["--from", options.first] if options.first else []
    words += [word for setting in options.settings for word in ("--set", setting)]
    words += ["--runs-dir", str(options.runs_dir)] if options.runs_dir else []
    return shlex.join(words)


def _forget(stem: str, run_dir: Path) -> None:
    files_of(stem, run_dir).record.unlink(missing_ok=True)
    if (run_dir / stem).exists():
        shutil.rmtree(run_dir / stem)


def _reference_s(stem: str, profile: Profile) -> float | None:
    """Return how long the reference run took, for the estimate of what is left."""
    try:
        return float(read_record(project_root() / "results" / profile.name / f"{stem}.json")["time_s"])
    except RecordError:
        return None


def _say_where(stages: list[PlannedStage], run_dir: Path) -> None:
    for table in sorted((run_dir / BENCHMARK).glob("*.md")):
        if any(stage.stem == BENCHMARK for stage in stages):
            print(f"\n{table.read_text(encoding='utf-8').strip()}")
    print(f"\nExecuted notebooks, HTML, figures and records: {portable(run_dir)}")
    words = ["python", "-m", "rlcas_utils.run.report", run_dir.name]
    words += ["--runs-dir", str(run_dir.parent)] if run_dir.parent != project_root() / "runs" else []
    print(f"One page about the run: {shlex.join(words)}")


def _check(profile: Profile, stages: list[PlannedStage], run_dir: Path) -> int:
    found = check(profile, stages, run_dir)
    print(f"Profile {profile.name} on this machine:", *found, "", "What each profile needs:", sep="\n")
    print(*overview(run_dir), sep="\n")
    moments = plan_memory(stages)
    if moments:
        print("", "Memory plan for one GPU (computed, not measured):", *memory_table(moments), sep="\n")
    return 0 if all(finding.ok for finding in found) else FAILED
