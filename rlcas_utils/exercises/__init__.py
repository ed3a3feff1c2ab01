"""The exercises of the course, one module a notebook, and the checker behind them.

No notebook's module is imported here: a run of one notebook must not depend on the exercises of another.
"""

from rlcas_utils.exercises.checker import Exercise, WrongAnswer, same

__all__ = ["Exercise", "WrongAnswer", "same"]
