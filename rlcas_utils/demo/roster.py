"""Who can play: every agent of the course, ready, recorded, or missing with the command that makes it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlcas_utils import desk
from rlcas_utils.demo.desk_game import CodedSeat, ModelSeat, RecordedSeat, Seat
from rlcas_utils.demo.models import DeskModels, Speaker, TelecomModel, hosted_models, hosted_speaker
from rlcas_utils.demo.source import Source, telecom_model
from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.figures import label
from rlcas_utils.stages import GRPO, SAC, SFT, TELECOM
from rlcas_utils.telecom import agents as scripts

Open = Callable[[Ticket], Seat]


@dataclass
class Roster:
    """Agents of one tab.

    Attributes:
        ready: What starts each agent that can play, by name.
        titles: Reader's names.
        missing: One sentence for every agent that cannot play.
        recorded: Agents whose recorded actions stand in for a model that is missing.
    """

    ready: dict[str, Any] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    recorded: frozenset[str] = frozenset()

    def choices(self) -> list[tuple[str, str]]:
        """Return (title, name) of those that can play."""
        return [(self.titles[name], name) for name in self.ready]

    def starters(self, names: Sequence[str], *, own: bool) -> list[Any]:
        """Return what starts the chosen agents.

        Args:
            names: As a visitor chose them; unknown ones are left out.
            own: The query is the visitor's, which recorded agents cannot play.
        """
        return [self.ready[n] for n in names if n in self.ready and not (own and n in self.recorded)]


class _LazySac:
    """The SAC agent, read when it first plays; its reasons are its three most probable actions."""

    def __init__(self, source: Source) -> None:
        self.path = source.path(SAC, "expert.safetensors", sample="sac_expert.safetensors")
        self.agent: Any = None
        self.lock = threading.Lock()

    def fault(self) -> str:
        """Say why it cannot play, "" if it can; reading it takes a second."""
        if self.path is None:
            return "there is no trained policy"
        try:
            self._load()
        except (ValueError, ImportError, OSError) as error:
            return str(error).rstrip(".")
        return ""

    def _load(self) -> None:
        from rlcas_utils.sac.agent import load_expert

        with self.lock:
            if self.agent is None:
                self.agent = load_expert(self.path)[0]

    def move(self, episode: Episode) -> tuple[int, str]:
        """Return the most probable action and the three most probable ones in words."""
        with self.lock:
            share = np.exp(self.agent.log_policy(episode))
        first = np.argsort(-share)[:3]
        return int(first[0]), "; ".join(f"{ACTIONS[a]} {share[a]:.0%}" for a in first)


def _coded(agent: Any, why: str) -> Callable[[Episode], tuple[int, str]]:
    return lambda episode: (agent.act(episode), why)


def desk_roster(source: Source) -> Roster:
    """Return who can play at the desk."""
    roster = Roster()
    sac = _LazySac(source)
    coded = {
        "oracle": lambda: _coded(desk.OracleAgent(), ""),
        "rules": lambda: _coded(desk.KeywordAgent(), ""),
        "random": lambda: _coded(desk.RandomAgent(), ""),
    }
    for name, make in coded.items():
        _add(roster, name, lambda ticket, name=name, make=make: CodedSeat(name, ticket, make()))
    if fault := sac.fault():
        remedy = "" if "make course" in fault else f". Make it: {source.command(SAC)}"
        _absent(roster, source, "sac", fault + remedy)
    else:
        _add(roster, "sac", lambda ticket: CodedSeat("sac", ticket, sac.move))
    models = DeskModels(source)
    folders = models.adapters()
    for name, stem in (("base", SFT), ("sft", SFT), ("grpo", GRPO)):
        if name in folders or (name == "base" and folders):
            speaker = models.speaker(name)
            _add(roster, name, lambda ticket, name=name, speaker=speaker: ModelSeat(name, ticket, speaker))
        else:
            _absent(roster, source, name, f"there is no model. Make it: {source.command(stem)}")
    _add_hosted(roster, lambda name, speaker: lambda ticket: ModelSeat(name, ticket, speaker))
    return roster


def _add(roster: Roster, name: str, start: Any, title: str = "") -> None:
    roster.ready[name], roster.titles[name] = start, title or label(name)


def _absent(roster: Roster, source: Source, name: str, reason: str) -> None:
    """Name what is missing; recorded actions of the benchmark stand in for it, and are called recorded."""
    roster.missing[name] = f"{label(name)}: {reason}"
    rows = source.recorded(name)
    if rows:
        title = f"{label(name)} (recorded)"
        _add(roster, name, lambda ticket: RecordedSeat(name, ticket, rows, title), title)
        roster.recorded |= {name}


def _add_hosted(roster: Roster, opener: Callable[[str, Speaker], Any]) -> None:
    for name, model in hosted_models().items():
        if needed := model.needs():
            roster.missing[name] = f"{label(name)}: {needed} in the environment"
        else:
            _add(roster, name, opener(name, hosted_speaker(model)))


@dataclass(frozen=True)
class TelecomAgent:
    """A telecom agent: scripted (`factory`) or a language model (`speaker`) with a policy arm."""

    name: str
    factory: scripts.AgentFactory | None = None
    speaker: Speaker | None = None
    policy_arm: str = "none"
    max_turns: int = 45


def telecom_roster(source: Source) -> Roster:
    """Return who can answer the telecom hotline; `ready` holds `TelecomAgent`s."""
    roster = Roster()
    _add(roster, "expert", TelecomAgent("expert", factory=scripts.expert))
    _add(roster, "always_transfer", TelecomAgent("always_transfer", factory=scripts.always_transfer))
    if telecom_model(source) is None:
        reason = f"there is no model. Make it: {source.command(TELECOM)}"
        roster.missing["grpo"] = f"{label('grpo')}: {reason}"
    else:
        chosen: Mapping[str, Any] = source.parameters(TELECOM)
        agent = TelecomAgent(
            "grpo", None, TelecomModel(source).speaker(), chosen["POLICY_ARM"], chosen["MAX_TURNS"]
        )
        _add(roster, "grpo", agent)
    _add_hosted(roster, lambda name, speaker: TelecomAgent(name, None, speaker, "full"))
    return roster
