"""The exercises of notebook 03: fair turns under a cap, twins across a split, reasons ahead of facts."""

from __future__ import annotations

from rlcas_utils.exercises.checker import Exercise


def _take_in_turn(rows: list[tuple[str, str, str]], most: int) -> list[str]:
    kept: list[str] = []
    for category in sorted({row[0] for row in rows}):
        queues: dict[str, list[str]] = {}
        for _, template, name in (row for row in rows if row[0] == category):
            queues.setdefault(template, []).append(name)
        longest = max(map(len, queues.values()))
        turns = [queues[t][i] for i in range(longest) for t in sorted(queues) if i < len(queues[t])]
        kept += turns[:most]
    return kept


def _count_leaked(train_templates: list[str], validation_templates: list[str]) -> int:
    trained = set(train_templates)
    return sum(template in trained for template in validation_templates)


def _early_turns(named: list[set[str]], shown: list[set[str]]) -> list[int]:
    early: list[int] = []
    seen: set[str] = set()
    for turn, facts in enumerate(named):
        if facts - seen:
            early.append(turn)
        seen |= shown[turn]
    return early


def _first_come(rows: list[tuple[str, str, str]], most: int) -> list[str]:
    """A cap without turns."""
    kept: list[str] = []
    for category in sorted({row[0] for row in rows}):
        kept += [row[2] for row in rows if row[0] == category][:most]
    return kept


def _one_per_template(rows: list[tuple[str, str, str]], most: int) -> list[str]:
    """The first round only."""
    first = {(category, template): name for category, template, name in reversed(rows)}
    return _take_in_turn([(*key, name) for key, name in first.items()], most)


take_in_turn = Exercise(
    reference=_take_in_turn,
    inputs=[
        ([("order", "a", "1"), ("order", "a", "2"), ("order", "b", "3")], 2),
        ([("refund", "x", "r"), ("order", "a", "1"), ("order", "a", "2")], 1),
        ([("order", "a", "1"), ("order", "b", "3"), ("order", "a", "2")], 5),
    ],
    mistakes={
        "the first rows win, so the commonest template crowds out the others.": _first_come,
        "the cap holds for all categories together, not for each.": (
            lambda rows, most: _take_in_turn(rows, len(rows))[:most]
        ),
        "the turns stop after the first round, so the share is not filled.": _one_per_template,
    },
)
count_leaked = Exercise(
    reference=_count_leaked,
    inputs=[(["a"], ["a", "a"]), (["a"], ["b"]), (["a", "a", "b"], ["a", "b", "b", "c"])],
    mistakes={
        "templates are counted instead of rows; the loss averages over rows.": (
            lambda train, validation: len(set(train) & set(validation))
        ),
        "the training rows are counted; the question is about the validation file.": (
            lambda train, validation: sum(template in set(validation) for template in train)
        ),
        "the clean rows are counted instead of the leaked ones.": (
            lambda train, validation: sum(template not in set(train) for template in validation)
        ),
    },
)
early_turns = Exercise(
    reference=_early_turns,
    inputs=[
        ([{"over limit"}, set()], [set(), {"over limit"}]),
        ([{"over limit"}], [{"over limit"}]),
        ([set(), {"delivered"}, {"delivered"}], [{"delivered"}, {"over limit"}, set()]),
        ([set(), {"over limit"}, {"delivered"}], [{"delivered"}, {"over limit"}, set()]),
    ],
    mistakes={
        "the answer to the turn itself counts as known, but the reason is written before it.": (
            lambda named, shown: [
                turn for turn in range(len(named)) if named[turn] - set().union(*shown[: turn + 1])
            ]
        ),
        "only the turn just before was looked at; older facts are known too.": (
            lambda named, shown: [
                turn for turn in range(len(named)) if named[turn] - (shown[turn - 1] if turn else set())
            ]
        ),
        "facts from anywhere in the episode count as known, later ones included.": (
            lambda named, shown: [turn for turn in range(len(named)) if named[turn] - set().union(*shown)]
        ),
    },
)
