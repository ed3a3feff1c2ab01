"""The memory plan as a table: as text for `--check`, as a DataFrame for the pages of notebooks 04 to 06."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rlcas_utils.architectures import CONFIGS
from rlcas_utils.config import ConfigError, load_profile, notebook_path
from rlcas_utils.memory_plan import PARTS, Moment, moments_of
from rlcas_utils.parameters import read_parameters, validate_overrides

if TYPE_CHECKING:
    import pandas as pd

LINE = "{:<12} {:>8} {:>8} {:>10} {:>12} {:>9} {:>7} {:>5} {:>6}"


def memory_frame(stem: str, profile: str = "a10g", **changes: Any) -> pd.DataFrame:
    """Return the plan of one notebook as a table: a row per moment, a column per part and the sum, in GiB.

    Args:
        stem: Such as "04_qlora_sft".
        profile: Whose values are planned for, whatever the notebook runs with now; a10g or multi_gpu.
        changes: Other values of the notebook's parameters, to see what they do: `BATCH_SIZE=16`.

    Raises:
        ConfigError: A change to a parameter that the notebook does not have, or values without a plan.
    """
    import pandas as pd  # slow to load, and the runner does without

    parameters = read_parameters(notebook_path(stem))
    if faults := validate_overrides(stem, parameters, changes):
        raise ConfigError("\n".join(faults))
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    values = defaults | load_profile(profile).notebooks.get(stem, {}) | changes
    moments = moments_of(stem, values)
    if not moments:
        raise ConfigError(
            f"{stem} with MODEL {values.get('MODEL')!r} has no memory plan; the sizes are known of "
            f"{' and '.join(CONFIGS)}. Choose profile a10g or multi_gpu."
        )
    rows = [(*moment.parts, moment.total) for moment in moments]
    names = pd.Index([moment.name for moment in moments], name="GiB")
    return pd.DataFrame(rows, columns=[*PARTS, "sum"], index=names)


def memory_table(moments: Sequence[Moment]) -> list[str]:
    """Return the plan as lines of text, GiB per moment."""
    lines = [LINE.format("GiB", *PARTS, "sum")]
    for moment in moments:
        lines.append(LINE.format(moment.name, *(f"{part:.2f}" for part in (*moment.parts, moment.total))))
    return lines
