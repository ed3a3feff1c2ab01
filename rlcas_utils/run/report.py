"""One page about one run, complete in one HTML file: `make report`, `python -m rlcas_utils.run.report cpu`.

Nothing is loaded from anywhere: figures are inside, there is no script, and the page says so to the browser.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rlcas_utils.config import profile_names, project_root
from rlcas_utils.records import write_atomic
from rlcas_utils.reference import PROFILE
from rlcas_utils.run import report_sections as sections
from rlcas_utils.run.markup import text
from rlcas_utils.run.plan import portable
from rlcas_utils.run.report_source import NoRun, Source, read_reference, read_run
from rlcas_utils.viewer.episodes import write_episodes
from rlcas_utils.viewer.page import document

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
PARTS = (
    ("results", "Results", sections.results),
    ("figures", "Figures", sections.figures),
    ("episodes", "Episodes", sections.episodes),
    ("stages", "Stages in detail", sections.stages),
    ("settings", "Settings and versions", sections.settings),
    ("limits", "What is not shown", sections.limits),
)


def render(source: Source) -> str:
    """Return the page.

    Args:
        source: The run.
    """
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    first = next(iter(source.records.values()))
    title = f"RL-CAS run report: profile {first['profile']}, seed {first['seed']}"
    bodies = {key: (heading, made) for key, heading, part in PARTS if (made := part(source))}
    links = "".join(f'<li><a href="#{key}">{heading}</a></li>' for key, (heading, _) in bodies.items())
    body = "\n".join(
        f'<section aria-labelledby="{key}"><h2 id="{key}">{heading}</h2>\n{made}</section>'
        for key, (heading, made) in bodies.items()
    )
    shown = f"""<body>
<header><h1>{text(title)}</h1>
{sections.summary(source)}</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main>
{sections.pipeline(source)}
{body}
</main>
</body>"""
    return document(title, shown, style, POLICY)


def build(profile: str, runs_dir: Path) -> Path:
    """Write the report and the episodes of a run, or the report of the committed reference run.

    Args:
        profile: Its profile.
        runs_dir: Where run folders lie.

    Returns:
        The page: `report.html` in the run folder, or `build/report-<profile>.html` for the reference run.

    Raises:
        NoRun: There is neither.
    """
    run_dir = runs_dir / profile
    if (run_dir / "records").is_dir():
        write_episodes(run_dir)
        return write_atomic(run_dir / "report.html", render(read_run(run_dir)))
    source = read_reference(profile)
    return write_atomic(project_root() / "build" / f"report-{profile}.html", render(source))


def main(arguments: list[str] | None = None) -> int:
    """Write one self-contained HTML page about a run."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.run.report", description=main.__doc__)
    parser.add_argument("profile", nargs="?", choices=profile_names(), help="default: cpu if it was run")
    parser.add_argument("--runs-dir", type=Path, default=project_root() / "runs")
    options = parser.parse_args(arguments)
    try:
        runs_dir = options.runs_dir.resolve()
        profile = options.profile or ("cpu" if (runs_dir / "cpu" / "records").is_dir() else PROFILE)
        page = build(profile, runs_dir)
    except NoRun as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{portable(page)}: {page.stat().st_size / 2**20:.1f} MiB; open it in a browser.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
