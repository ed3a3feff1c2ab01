"""One notebook run as a stage: its folder, its hand-offs, its metrics, figures and record.

`open_stage` empties the folder when anything that decides the result has changed, so whatever lies in it is
valid and a killed run goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcas_utils import figures, records, stage_text
from rlcas_utils.config import ConfigError, load_profile, notebook_path, project_root, seed_everything
from rlcas_utils.fingerprint import stage_fingerprint
from rlcas_utils.handoffs import MissingHandoff, find_handoff
from rlcas_utils.machine import git_state, hardware, peak_rss_gib
from rlcas_utils.parameters import read_parameters, validate_overrides
from rlcas_utils.stage_folder import StageFolder
from rlcas_utils.trackers import require_tracker

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Stage:
    """What a notebook needs while it runs; made by `open_stage`.

    Attributes:
        notebook: Stem, such as `02_sac_training`.
        profile: Name of the profile.
        seed: The seed that all generators were set to.
        run_dir: The run folder, `runs/<profile>` unless told otherwise.
        folder: Where this stage writes, below the run folder.
        fingerprint: Hash over all that decides the result.
        kept: True when the folder holds work of an equal run.
    """

    def __init__(self, notebook: str, parameters: dict[str, Any], run_dir: Path) -> None:
        """Open the folder of a stage, and empty it when its fingerprint changed."""
        self.notebook = notebook
        self.parameters = parameters
        self.profile: str = parameters["PROFILE"]
        self.seed: int = parameters["SEED"]
        self.run_dir = run_dir
        self.fingerprint = stage_fingerprint(notebook_path(notebook), parameters, run_dir)
        self._folder = StageFolder(run_dir / notebook, self.fingerprint)
        self.folder = self._folder.path
        self.kept = self._folder.kept
        if not self.kept:
            self.record_path.unlink(missing_ok=True)
        self._inputs: dict[str, str] = {}
        self._outputs: dict[str, Path] = {}
        self._metrics: dict[str, dict[str, Any]] = {}
        self._figures: dict[str, str] = {}

    @property
    def run_id(self) -> str:
        """Short name of this run, for captions and sidecars."""
        return f"{self.profile}/{self.notebook}/{self.fingerprint[:8]}"

    @property
    def record_path(self) -> Path:
        """Where `finish` writes the run record."""
        return self.run_dir / "records" / f"{self.notebook}.json"

    def input(self, name: str, sample: str | None = None) -> Path:
        """Return a file or folder that an earlier stage wrote.

        Args:
            name: Path below the run folder, such as `02_sac_training/expert.safetensors`.
            sample: Name below `data/samples/` of a small stand-in, so that a notebook runs alone.

        Raises:
            MissingHandoff: Neither is there, or the file was never finished or has changed since.
        """
        path, self._inputs[name] = find_handoff(name, self.run_dir, self.profile, self.notebook, sample)
        return path

    def output(self, name: str) -> Path:
        """Return the path of a file or folder that this stage hands on; `finish` hashes it.

        Args:
            name: Path below the stage's folder. Write it with `records.write_atomic` or `records.write_json`.
        """
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._outputs[name] = path
        self._folder.note_progress()
        return path

    def cached(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return the JSON value of `compute()`, from the stage's folder when a run before got that far.

        Args:
            name: File name without ending, unique in the notebook.
            compute: Called without arguments; its result must be JSON.
        """
        return self._folder.piece(name, compute)

    def metric(
        self,
        name: str,
        value: float,
        *,
        n: int,
        seeds: tuple[int, ...] | list[int] = (),
        ci95: tuple[float, float] | list[float] | None = None,
        unit: str = "",
    ) -> None:
        """Put one number into the record.

        Args:
            name: Such as `desk/sac/return`.
            value: A finite number.
            n: Independent units behind it (queries, tasks, steps).
            seeds: Training or sampling seeds.
            ci95: 95 % interval.
            unit: Such as "s", "tokens/s", "GiB"; metrics in these three may differ between equal runs.

        Raises:
            rlcas_utils.records.RecordError: The number could not be read from the record later.
        """
        try:
            self._metrics[name] = records.metric(value, n, seeds, ci95, unit)
        except records.RecordError as error:
            raise records.RecordError(f"metric {name}: {error}") from error

    def estimate(self, name: str, estimate: Any, *, seeds: Sequence[int] = (), unit: str = "") -> None:
        """Put a number that brings its n and its interval into the record.

        Args:
            name: Such as `desk/sac/return`.
            estimate: `statistics.Estimate`.
            seeds: Training or sampling seeds.
            unit: As for `metric`.
        """
        self.metric(name, estimate.value, n=estimate.n, seeds=list(seeds), ci95=estimate.ci95, unit=unit)

    def figure(self, fig: Figure, name: str, *, caption: str, alt: str) -> None:
        """Save a figure with its caption below the run folder and show the saved picture.

        Args:
            fig: The figure; it is closed.
            name: File name without ending, such as `02_return_curve`.
            caption: What to see in it, with n, seeds and the kind of interval.
            alt: The figure in words.
        """
        run = {"run_id": self.run_id, "profile": self.profile, "notebook": self.notebook, "seed": self.seed}
        path = figures.save_figure(fig, self.run_dir / "figures" / name, caption=caption, alt=alt, run=run)
        self._figures[name] = records.sha256_file(path)
        figures.show_figure(fig, path, alt)

    def finish(self) -> dict[str, Any]:
        """Hash the outputs, write the run record and print its metrics.

        Returns:
            The record.

        Raises:
            MissingHandoff: An output that the notebook asked a path for was never written.
        """
        missing = [name for name, path in self._outputs.items() if not path.exists()]
        if missing:
            raise MissingHandoff(
                f"{self.notebook} asked for {missing} but never wrote it; later stages need it."
            )
        record = {
            "notebook": self.notebook,
            "profile": self.profile,
            "seed": self.seed,
            "parameters": {k: v for k, v in self.parameters.items() if k != "RUN_DIR"},
            "versions": records.versions(),
            "git": git_state(project_root()),
            "hardware": hardware(),
            "time_s": round(self._folder.elapsed_s(), 1),
            "inputs": dict(sorted(self._inputs.items())),
            "outputs": {
                f"{self.notebook}/{n}": records.sha256_tree(p) for n, p in sorted(self._outputs.items())
            },
            "metrics": self._metrics,
            "fingerprint": self.fingerprint,
            "figures": self._figures,
            "peak_rss_gib": peak_rss_gib(),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        records.write_json(self.record_path, record)
        self._folder.note_progress()
        self._folder.release()
        print(stage_text.closing(record))
        return record


def open_stage(notebook: str, namespace: dict[str, Any]) -> Stage:
    """Start a notebook's run, right after its parameters cell.

    When RUN_DIR is empty (somebody runs the notebook by hand) the profile's values are put into the namespace
    first; the runner sets RUN_DIR and all values itself.

    Args:
        notebook: Stem of the notebook, such as `02_sac_training`.
        namespace: `globals()` of the notebook.

    Returns:
        The open stage; its generators are seeded.

    Raises:
        ConfigError: A parameter has a wrong name or type, or the tracker cannot be reported to.
    """
    published = read_parameters(notebook_path(notebook))
    unset = [name for name in published if name not in namespace]
    if unset:
        raise ConfigError(f"{notebook}: {unset} are not set; run the parameters cell before this one.")
    if not namespace["RUN_DIR"]:
        overrides = load_profile(namespace["PROFILE"]).notebooks.get(notebook, {})
        _refuse(validate_overrides(notebook, published, overrides))
        namespace.update(overrides)
    values = {name: namespace[name] for name in published}
    _refuse(validate_overrides(notebook, published, values))
    require_tracker(values.get("REPORT_TO", "none"))
    run_dir = project_root() / (values["RUN_DIR"] or f"runs/{values['PROFILE']}")
    seed_everything(values["SEED"])
    figures.use_style()
    stage = Stage(notebook, values, run_dir)
    print(stage_text.opening(stage, {name: parameter.default for name, parameter in published.items()}))
    return stage


def _refuse(errors: list[str]) -> None:
    if errors:
        raise ConfigError(" ".join(errors))
