"""Intervals and pass rates: how sure a table may be of its numbers.

Three rules run through the package. The unit that is resampled is the task (or ticket), never the single
trial, because trials of one task resemble each other. Two agents are compared on the episodes that both
played. And a sample without any spread ("3 of 3 solved") still gets an interval with a width, because nobody
knows a success rate exactly after three tries. Resampling is seeded: same data and seed, same interval.
"""

from rlcas_utils.statistics.intervals import (
    Estimate,
    cluster_mean_interval,
    mean_interval,
    ratio_interval,
    resampled_means,
    task_error,
    wilson,
)
from rlcas_utils.statistics.pairs import PairedDifference, paired_difference
from rlcas_utils.statistics.passrates import check_counts, common_k, pass_at_k, pass_hat_k
from rlcas_utils.statistics.variation import Variation, variation

__all__ = [
    "Estimate",
    "PairedDifference",
    "Variation",
    "check_counts",
    "cluster_mean_interval",
    "common_k",
    "mean_interval",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "ratio_interval",
    "resampled_means",
    "task_error",
    "variation",
    "wilson",
]
