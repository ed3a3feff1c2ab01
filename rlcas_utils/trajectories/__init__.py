"""Expert episodes on their way to a language model: collected, filtered, rendered as chats, written."""

from rlcas_utils.trajectories.chatfile import check_chat, read_chats, write_chats
from rlcas_utils.trajectories.collection import collect, play
from rlcas_utils.trajectories.rendering import reason, to_chat
from rlcas_utils.trajectories.schema import (
    Step,
    Trajectory,
    TrajectoryError,
    parse_trajectory,
    read_trajectories,
    write_trajectories,
)
from rlcas_utils.trajectories.selection import (
    FilterReport,
    balance,
    drop_reason,
    duplicate_key,
    select,
    split_by_template,
)

__all__ = [
    "FilterReport",
    "Step",
    "Trajectory",
    "TrajectoryError",
    "balance",
    "check_chat",
    "collect",
    "drop_reason",
    "duplicate_key",
    "parse_trajectory",
    "play",
    "read_chats",
    "read_trajectories",
    "reason",
    "select",
    "split_by_template",
    "to_chat",
    "write_chats",
    "write_trajectories",
]
