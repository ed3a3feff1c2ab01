"""The table in CASES.md names tests that exist, and no case is without one."""

import ast
import re

import pytest

from rlcas_utils.config import project_root

TESTS = project_root() / "tests"
CASES = [
    1,
    3,
    5,
    6,
    7,
    9,
    10,
    11,
    12,
    14,
    16,
    17,
    19,
    21,
    22,
    23,
    26,
    28,
    29,
    30,
    32,
    34,
    35,
    36,
    37,
    39,
    41,
    43,
]
ROWS = re.findall(r"^\| (\d+) \| (\S.*?) \| (.*) \|$", (TESTS / "CASES.md").read_text("utf-8"), re.MULTILINE)


def test_every_case_has_one_row_with_its_fault_and_its_tests():
    assert [int(number) for number, _, _ in ROWS] == CASES
    for number, fault, tests in ROWS:
        assert len(fault) > 20, number
        assert re.fullmatch(r"(`test_\w+\.py::test_\w+` ?)+", tests), number


@pytest.mark.parametrize(("number", "tests"), [(number, tests) for number, _, tests in ROWS])
def test_the_tests_named_for_a_case_exist(number, tests):
    for file, name in re.findall(r"`(\w+\.py)::(\w+)`", tests):
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (
            f"{file}::{name}"
        )
