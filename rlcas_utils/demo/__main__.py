"""The command line of the demo: `make demo`, `python -m rlcas_utils.demo`."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

from rlcas_utils.config import project_root
from rlcas_utils.demo.source import Source, newest_run

LOOPBACK = "127.0.0.1"


def main(arguments: list[str] | None = None) -> int:
    """Open the agents of a run in a browser."""
    parser = argparse.ArgumentParser(prog="python -m rlcas_utils.demo", description=main.__doc__)
    parser.add_argument("--run", type=Path, help="run folder, such as runs/cpu; the newest run if left out")
    parser.add_argument("--port", type=int, default=0, help="TCP port; any free one from 7860 on if left out")
    parser.add_argument("--host", default=LOOPBACK, help="address; this machine alone if left out")
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("gradio") is None:
        print("The demo needs Gradio, which is not installed here. Run it with `make demo`.", file=sys.stderr)
        return 1
    source = Source(options.run.resolve()) if options.run else newest_run(project_root() / "runs")
    if options.run and not source.records:
        print(f"{options.run} holds no run record; give a run folder such as runs/cpu.", file=sys.stderr)
        return 1
    if options.host != LOOPBACK:
        print(f"Listening at {options.host}: everybody who reaches this machine can use the demo.")
    os.environ.setdefault("HF_HUB_OFFLINE", "1" if _offline(source) else "0")
    from rlcas_utils.demo.app import launch

    print(source.headline())
    address = launch(source, options.host, options.port, wait=False)
    print(f"Open {address} in a browser; Ctrl+C ends it.", flush=True)
    _wait()
    return 0


def _offline(source: Source) -> bool:
    from rlcas_utils.config import load_profile, profile_names

    return source.profile in profile_names() and load_profile(source.profile).offline


def _wait() -> None:
    import threading

    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print("Closed.")


if __name__ == "__main__":
    sys.exit(main())
