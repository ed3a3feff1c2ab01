"""One tau2 episode that is driven step by step: an action goes in, the next observation comes out.

tau2's own orchestrator wants to call the agent; a batch of rollouts wants it the other way round. Here
the agent object is a slot that hands over whatever action was put into it, and `Orchestrator.step` is
called until it is the agent's turn again. No thread, no polling, nothing of tau2 re-implemented:
messages, errors and ends are those of `Orchestrator.run`, which a test compares message by message.

Departures from `Orchestrator.run`:

1. A cap on the agent's turns beside tau2's cap on messages: the published protocol counts agent turns.
2. Messages stay in the order in which they were sent. tau2 sorts them by the wall clock, so a clock that is
   set back during an episode would shuffle it, and the evaluator would refuse the replay.
3. A customer who fails (a server that is down, an empty answer) ends the episode under a name of its own.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.endings import CUSTOMER_FAILED, MAX_TURNS, check_ending

RESPOND = "respond"
DONE = "done"
_AGENT_STOP = "###STOP###"

# Libraries through which a language-model customer is reached.
_SERVICE_LIBRARIES = ("litellm", "openai", "httpx")


class CustomerFailure(RuntimeError):
    """Raised by a customer that could not answer for a reason that is not the agent's doing."""


def _library(error: Exception) -> str:
    return type(error).__module__.split(".")[0]


class _SlotAgent(tau2.LocalAgent):
    """Says what was put into its slot."""

    def __init__(self) -> None:
        super().__init__(tools=[], domain_policy="")
        self.slot: tau2.AssistantMessage | None = None

    def get_init_state(self, message_history: list[tau2.Message] | None = None) -> dict:
        return {}

    def generate_next_message(self, message: Any, state: dict) -> tuple[tau2.AssistantMessage, dict]:
        if self.slot is None:
            raise RuntimeError("the orchestrator asked for an action although none was put into the session")
        action, self.slot = self.slot, None
        return action, state

    @classmethod
    def is_stop(cls, message: tau2.AssistantMessage) -> bool:
        return message.content == _AGENT_STOP


@dataclass(frozen=True)
class Observation:
    """What the agent sees next. `is_tool_result` tells a tool's answer from the customer's words."""

    text: str
    is_tool_result: bool
    is_error: bool = False


class Session:
    """A telecom episode between an outside agent and a customer.

    Args:
        task: The tau2 task.
        customer: A tau2 user: scripted or a language model.
        max_turns: Cap on the agent's actions; reaching it ends the episode as ``max_turns`` (reward 0).
        max_steps: tau2's cap on messages. 200, because the longest scripted repairs need up to 117.
        max_errors: tau2's cap on failed tool calls, agent's and customer's together.

    Attributes:
        observation: What the agent sees now.
        turns: Actions the agent has spent, unusable ones included.
        end: Why the episode is over (a name in `endings.ENDINGS`), or None.
        failure: What went wrong on the customer's side, if anything did.
        met_at_start: Which of the task's assertions held before anything was done.
    """

    def __init__(
        self,
        task: tau2.Task,
        customer: tau2.BaseUser,
        *,
        max_turns: int = 100,
        max_steps: int = 200,
        max_errors: int = 10,
    ) -> None:
        self.task = task
        self.environment = tau2.make_environment()
        self.max_turns = max_turns
        self.turns = 0
        self.end: str | None = None
        self.failure = ""
        self._agent = _SlotAgent()
        self._orchestrator = tau2.Orchestrator(
            domain=tau2.DOMAIN,
            agent=self._agent,
            user=customer,
            environment=self.environment,
            task=task,
            max_steps=max_steps,
            max_errors=max_errors,
        )
        self._start_time = tau2.get_now()
        self._start = time.perf_counter()
        self._calls = 0
        self._orchestrator.initialize()
        self.met_at_start = self.assertions_met()
        self.observation = self._advance()

    @property
    def done(self) -> bool:
        """True once the episode has ended; `end` then holds the reason."""
        return self.end is not None

    @property
    def messages(self) -> list[tau2.Message]:
        """The trajectory so far, as tau2 keeps it."""
        return self._orchestrator.trajectory

    def assertions_met(self) -> list[bool]:
        """Which of the task's environment assertions hold in the present state."""
        assertions = self.task.evaluation_criteria.env_assertions or []
        return [self.environment.run_env_assertion(a, raise_assertion_error=False) for a in assertions]

    def step(self, name: str, arguments: Mapping[str, Any] | None = None) -> Observation:
        """Perform one action of the agent.

        Args:
            name: ``respond`` (argument ``content``), ``done``, or a tool name. Any other name goes to
                tau2, which answers with an error.
            arguments: The tool's arguments.

        Returns:
            The tool's result, or the customer's reply, or, when the episode is over, the last words said.

        Raises:
            RuntimeError: The episode is over already.
            ValueError: ``respond`` without text, which tau2 cannot deliver.
        """
        if self.done:
            raise RuntimeError(f"the episode ended as {self.end!r}; start a new Session for another one")
        self._agent.slot = self._message(name, dict(arguments or {}))
        self.turns += 1
        self._orchestrator.step()
        self.observation = self._advance()
        return self.observation

    def spend_turn(self) -> None:
        """Count a turn in which the agent produced nothing that can be executed."""
        self.turns += 1
        if not self.done and self.turns >= self.max_turns:
            self.end = MAX_TURNS

    def abandon(self, reason: str) -> None:
        """End the episode from outside, for a reason listed in `endings.ENDINGS`. It then scores 0."""
        check_ending(reason)
        if not self.done:
            self.end = reason

    def simulation(self) -> tau2.SimulationRun:
        """The episode as tau2's own record, for its evaluator. Works after any end.

        Ends that tau2 does not know are recorded as its ``max_steps``, which scores the same: 0.
        """
        reason = self.end if self.end in set(tau2.TerminationReason) else tau2.TerminationReason.MAX_STEPS
        messages = deepcopy(self.messages)
        for index, message in enumerate(messages):
            message.turn_idx = index
        return tau2.SimulationRun(
            id=str(uuid.uuid4()),
            task_id=self.task.id,
            start_time=self._start_time,
            end_time=tau2.get_now(),
            duration=time.perf_counter() - self._start,
            termination_reason=reason,
            agent_cost=0.0,
            user_cost=0.0,
            messages=messages,
        )

    def _message(self, name: str, arguments: dict[str, Any]) -> tau2.AssistantMessage:
        if name == DONE:
            return tau2.AssistantMessage(role="assistant", content=_AGENT_STOP, cost=0.0)
        if name == RESPOND:
            content = arguments.get("content")
            if not isinstance(content, str) or not content.strip():
                raise ValueError("respond has no text; tau2 refuses empty messages. Say something.")
            return tau2.AssistantMessage(role="assistant", content=content.strip(), cost=0.0)
        self._calls += 1
        call = tau2.ToolCall(id=f"a{self._calls}", name=name, arguments=arguments, requestor="assistant")
        return tau2.AssistantMessage(role="assistant", tool_calls=[call], cost=0.0)

    def _advance(self) -> Observation:
        """Let customer and environment act until it is the agent's turn or the episode is over."""
        orchestrator = self._orchestrator
        self._apply_limits()
        while not orchestrator.done and orchestrator.to_role != tau2.Role.AGENT and not self.failure:
            self._step_other_side()
            self._apply_limits()
        if self.failure:
            self.end = CUSTOMER_FAILED
        elif orchestrator.done:
            self.end = check_ending(tau2.TerminationReason(orchestrator.termination_reason).value)
        elif self.turns >= self.max_turns:
            self.end = MAX_TURNS
        message = orchestrator.message
        is_tool = isinstance(message, tau2.ToolMessage)
        return Observation(message.content or "", is_tool, bool(is_tool and message.error))

    def _step_other_side(self) -> None:
        """One step of customer or environment. A customer who cannot answer is noted; a bug is raised."""
        is_customer = self._orchestrator.to_role == tau2.Role.USER
        try:
            self._orchestrator.step()
        except Exception as error:
            if not (is_customer and self._is_failure(error)):
                raise
            self.failure = f"{type(error).__name__}: {error}"

    def _is_failure(self, error: Exception) -> bool:
        """True for what is a customer's bad luck; a scripted customer's own errors are bugs and are not."""
        is_model = isinstance(self._orchestrator.user, tau2.UserSimulator)
        return is_model or isinstance(error, CustomerFailure) or _library(error) in _SERVICE_LIBRARIES

    def _apply_limits(self) -> None:
        """tau2 checks its limits in `run`, not in `step`: the same two checks in the same place.

        As there, a limit that is reached by the very message that ends the call wins over it.
        """
        orchestrator = self._orchestrator
        if orchestrator.to_role == tau2.Role.ENV or orchestrator.step_count == 0:
            return
        if orchestrator.step_count >= orchestrator.max_steps:
            orchestrator.done, orchestrator.termination_reason = True, tau2.TerminationReason.MAX_STEPS
        if orchestrator.num_errors >= orchestrator.max_errors:
            orchestrator.done, orchestrator.termination_reason = True, tau2.TerminationReason.TOO_MANY_ERRORS
