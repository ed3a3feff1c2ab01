"""One ticket handled step by step: the core that the environment and the language models both drive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlcas_utils.desk import services
from rlcas_utils.desk.actions import ACTIONS, CONSULT, SERVICES, as_action
from rlcas_utils.desk.adviser import Adviser, Case, advise
from rlcas_utils.desk.handbook import End, next_node
from rlcas_utils.desk.rewards import CONSULT_FACTOR, INVALID_FACTOR, fire
from rlcas_utils.desk.ticket import Ticket, learn
from rlcas_utils.desk.world import World, default_world

MAX_INVALID: int = 3
_ENDING_TEXT = {7: "resolved", 8: "asked customer", 9: "to billing", 10: "to technical", 11: "to human"}


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step returned.

    Attributes:
        reward: Sum of `signals`.
        signals: All 14 reward signals of this step.
        result: Small JSON facts from the service, adviser or ending.
        text: The same as one line for language models.
        terminated: True when an ending was chosen.
        truncated: True when the step limit or the limit of unusable outputs was reached.
        resolved: True only for the right ending with the deciding evidence gathered.
        outcome: `running`, `resolved`, `premature`, `wrong_ending`, `timeout` or `invalid_output`.
        action: The action taken, None for an unusable output.
    """

    reward: float
    signals: dict[str, float]
    result: dict[str, Any]
    text: str
    terminated: bool
    truncated: bool
    resolved: bool
    outcome: str
    action: int | None


class Episode:
    """One ticket from first read to ending.

    Attributes:
        ticket: The ticket being handled (its hidden truth included; agents must not read it).
        query: What the customer wrote.
        facts: Facts revealed so far, `service.name` to value.
        known: Identifiers known so far.
        called: Services that have answered.
        failed: Services whose latest call failed.
        hint: Action id the adviser named for the present state, or None.
        history: All step results in order.
        total_reward: Sum of rewards so far.
        done: True after termination or truncation.
    """

    def __init__(
        self,
        ticket: Ticket,
        world: World | None = None,
        max_steps: int = 10,
        adviser: Adviser = advise,
    ) -> None:
        """Start an episode.

        Args:
            ticket: The ticket to handle.
            world: Database; the shared default world if None.
            max_steps: Step limit; reaching it without an ending truncates the episode.
            adviser: Who answers `consult_llm`; the built-in adviser needs no network.

        Raises:
            ValueError: If `max_steps` is below 1.
        """
        if max_steps < 1:
            raise ValueError(f"max_steps is {max_steps}; an episode needs at least one step. Pass 1 or more.")
        self.ticket, self.max_steps, self.adviser = ticket, max_steps, adviser
        self.world = world or default_world()
        self.query = ticket.query
        self.facts: dict[str, str] = {}
        self.known = ticket.written.merged(**ticket.attached) if ticket.attached else ticket.written
        self.called: set[str] = set()
        self.failed: set[str] = set()
        self.hint: int | None = None
        self.history: list[StepResult] = []
        self.total_reward, self.done = 0.0, False
        self._useful: set[str] = set()
        self._asked: set[tuple[Any, ...]] = set()
        self._touched: set[str] = set()
        self._invalid_in_row = 0
        self._needed = {SERVICES[a] for a in ticket.optimal_actions[:-1]}
        self._due = next_node(ticket.tree, ticket.written, self.facts)

    def step(self, action: int) -> StepResult:
        """Take one action.

        Args:
            action: Action id 0..12; a Python or NumPy integer.

        Returns:
            The step's result; it is also appended to `history`.

        Raises:
            TypeError: If the action is a bool or not an integer.
            ValueError: If the id is out of range.
            RuntimeError: If the episode is over.
        """
        action = as_action(action)
        self._refuse_when_done()
        self._invalid_in_row = 0
        if action < len(SERVICES):
            counts, result, text = self._call(SERVICES[action])
        elif action == CONSULT:
            counts, result, text = self._consult()
        else:
            return self._end(action)
        return self._finish(counts, result, text, action)

    def invalid(self, reason: str) -> StepResult:
        """Count an unusable output of a language model as a step.

        Args:
            reason: Why the output could not be used; shown back to the model.

        Returns:
            The step's result; the third unusable output in a row truncates the episode.
        """
        self._refuse_when_done()
        self._invalid_in_row += 1
        self.hint = None
        text = f"unusable output ({reason}); answer with one JSON object with reasoning and action_id 0-12."
        counts = {"step_cost": 1.0, "failed_call": INVALID_FACTOR}
        return self._finish(counts, {"error": "invalid_output", "reason": reason}, text, None)

    def _refuse_when_done(self) -> None:
        if self.done:
            raise RuntimeError(
                f"the episode of ticket {self.ticket.ticket_id} is over ({self.history[-1].outcome}); "
                "another step would count after the end. Start a new Episode or call reset()."
            )

    def _call(self, service: str) -> tuple[dict[str, float], dict[str, Any], str]:
        key = services.answer_key(service, self.query, self.known, self.facts)
        answer = services.call(self.world, service, self.query, self.known, self.facts)
        counts = {"step_cost": 1.0}
        self.hint = None
        if (service in self.called and service not in self.failed) or key in self._asked:
            counts["redundant_call"] = 1.0
            return counts, answer.result(), answer.text
        due = self._due.action == SERVICES.index(service)
        self._asked.add(key)
        self._note(service, answer)
        if service not in self._needed and service not in self._touched:
            counts["irrelevant_tool"] = 1.0
        self._touched.add(service)
        if not answer.ok and not due:
            counts["failed_call"] = 1.0
            return counts, answer.result(), answer.text
        counts["new_information"] = 1.0
        if service in self._needed:
            counts["relevant_tool"] = 1.0
            counts["right_order"] = float(due)
        return counts | self._completed(), answer.result(), answer.text

    def _note(self, service: str, answer: services.Answer) -> None:
        self.called.add(service)
        (self.failed.discard if answer.ok else self.failed.add)(service)
        self.known = learn(self.facts, self.known, answer)

    def _completed(self) -> dict[str, float]:
        before, self._due = self._due, next_node(self.ticket.tree, self.ticket.written, self.facts)
        return (
            {"evidence_complete": 1.0} if isinstance(self._due, End) and not isinstance(before, End) else {}
        )

    def _consult(self) -> tuple[dict[str, float], dict[str, Any], str]:
        counts = {"step_cost": CONSULT_FACTOR}
        if self.hint is not None:
            counts["redundant_call"] = 1.0
        told = tuple((step.action, step.text) for step in self.history)
        advice = self.adviser(Case(self.query, self.ticket.written, dict(self.facts), told))
        self.hint = advice.action
        if self.hint is None:
            result = {"service": "adviser", "ok": False, "reason": advice.reason}
            return counts, result, f"adviser: no usable advice ({advice.reason})."
        name = ACTIONS[self.hint]
        return (
            counts,
            {"service": "adviser", "ok": True, "hint": name},
            f"adviser: {name} ({self.hint}) looks useful.",
        )

    def _end(self, action: int) -> StepResult:
        right = action == self.ticket.optimal_actions[-1]
        resolved = right and isinstance(self._due, End)
        steps, best = len(self.history) + 1, len(self.ticket.optimal_actions)
        counts: dict[str, float] = {"step_cost": 1.0, "right_route": float(right)}
        if resolved:
            counts |= {"resolution": 1.0, "efficiency": best / steps}
        else:
            human = action == len(ACTIONS) - 2
            counts |= {"wrong_ending": 1.0, "unneeded_escalation": float(human and not right)}
        outcome = "resolved" if resolved else "premature" if right else "wrong_ending"
        result = {"ending": ACTIONS[action], "resolved": resolved}
        return self._store(
            counts, result, f"{_ENDING_TEXT[action]}; {outcome}.", action, outcome, terminated=True
        )

    def _finish(self, counts: dict[str, float], result: dict, text: str, action: int | None) -> StepResult:
        if self._invalid_in_row >= MAX_INVALID:
            counts["timeout"] = 1.0
            return self._store(counts, result, text, action, "invalid_output", truncated=True)
        if len(self.history) + 1 >= self.max_steps:
            counts["timeout"] = 1.0
            return self._store(counts, result, text, action, "timeout", truncated=True)
        return self._store(counts, result, text, action, "running")

    def _store(
        self,
        counts: dict[str, float],
        result: dict[str, Any],
        text: str,
        action: int | None,
        outcome: str,
        *,
        terminated: bool = False,
        truncated: bool = False,
    ) -> StepResult:
        signals = fire(**counts)
        reward = sum(signals.values())
        resolved = outcome == "resolved"
        step = StepResult(reward, signals, result, text, terminated, truncated, resolved, outcome, action)
        self.history.append(step)
        self.total_reward += reward
        self.done = terminated or truncated
        return step
