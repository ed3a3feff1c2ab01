import io

import pytest
from rich.console import Console

from rlcas_utils.run.board import Board, duration


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59.4, "59 s"), (185, "3 min 5 s"), (7800, "2 h 10 min")]
)
def test_durations_read_as_people_say_them(seconds, text):
    assert duration(seconds) == text


def board(references, terminal=False):
    return Board(references, Console(file=io.StringIO(), force_terminal=terminal, width=150))


def test_what_is_left_comes_from_the_reference_run():
    shown = board({"01": 60.0, "02": 120.0})
    assert shown.remaining() == "about 3 min 0 s"
    shown.lines["01"].state, shown.lines["01"].time_s = "done", 120.0
    assert shown.remaining() == "about 4 min 0 s"  # this machine takes twice as long as the reference
    assert board({"01": 60.0, "02": None}).remaining() == "unknown time"


def test_plain_output_is_one_line_at_the_start_and_one_at_the_end():
    shown = board({"01": None})
    with shown:
        shown.start("01", cells=3)
        for number in range(1000):
            shown.write(f"step {number}\n")
        shown.end("01", "done")
    assert shown._console.file.getvalue().splitlines() == [
        "01: running, unknown time left in all",
        "01: done, 0 s",
    ]


def test_a_terminal_shows_the_cell_and_the_last_printed_line():
    shown = board({"01": 60.0}, terminal=True)
    with shown:
        shown.start("01", cells=3)
        shown.at_cell(2)
        shown.write("step 1\nstep 2\n")
        shown._live.refresh()
    text = shown._console.file.getvalue()
    assert "cell 2/3  step 2" in text
    assert "1 min 0 s" in text
