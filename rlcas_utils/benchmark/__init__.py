"""The benchmark: episode rows in, metrics and tables out, the published figures beside them.

`rows` and `metrics` are light and used by every stage. `tables` and `views` need pandas and are imported by
name where tables are made.
"""

from rlcas_utils.benchmark.metrics import (
    coverage,
    desk_difference,
    desk_estimates,
    desk_metrics,
    histogram,
    pass_estimates,
    record_desk,
    record_telecom,
    shared_rows,
    telecom_metrics,
)
from rlcas_utils.benchmark.published import expand_histogram, published, published_interval
from rlcas_utils.benchmark.rows import (
    DESK_AGENTS,
    TELECOM_AGENTS,
    RowError,
    check_rows,
    read_rows,
    write_rows,
)

__all__ = [
    "DESK_AGENTS",
    "TELECOM_AGENTS",
    "RowError",
    "check_rows",
    "coverage",
    "desk_difference",
    "desk_estimates",
    "desk_metrics",
    "expand_histogram",
    "histogram",
    "pass_estimates",
    "published",
    "published_interval",
    "read_rows",
    "record_desk",
    "record_telecom",
    "shared_rows",
    "telecom_metrics",
    "write_rows",
]
