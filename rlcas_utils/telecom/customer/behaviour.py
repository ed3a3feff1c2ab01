"""The scripted customer: a tau2 user that needs no language model.

It reads the scenario, the agent's text and the results of its own tools; never faults, never the expected
actions. It does what it understood, reports what its phone shows, answers questions, and hangs up when its
goal is reached, when it is transferred, or when nothing makes sense any more. Same seed, same conversation.
"""

import random
import zlib
from collections import deque
from typing import Any

from rlcas_utils.telecom.customer import device, phrases
from rlcas_utils.telecom.customer.answering import answers
from rlcas_utils.telecom.customer.clauses import normalise
from rlcas_utils.telecom.customer.cues import listen
from rlcas_utils.telecom.customer.memory import Memory
from rlcas_utils.telecom.customer.phone import GOAL_TOOLS, Phone
from rlcas_utils.telecom.customer.requests import Request
from rlcas_utils.telecom.customer.scenario import read_scenario
from rlcas_utils.telecom.customer.speaking import opening, summary
from rlcas_utils.telecom.customer.understanding import understand
from rlcas_utils.telecom.tau2 import (
    STOP_MARKERS,
    BaseUser,
    MultiToolMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)

STOP_STYLES = ("polite", "direct")
MAX_LOST = 4  # messages in a row without anything to do before the customer gives up
MAX_CLOSINGS = 3  # goodbyes of the agent the customer puts up with while the fault is still there


class ScriptedCustomer(BaseUser):
    """A deterministic customer for tau2's orchestrator.

    Args:
        instructions: `task.user_scenario`.
        tools: Ignored; tau2 runs the device tools itself.
        seed: Varies wording and small talk, not what the customer knows or wants.
        stop_style: "polite" says that it works and hangs up at the agent's next message, as language-model
            customers mostly do; "direct" hangs up at once.
        max_actions: Steps of one message that are carried out; the rest is left, and said so.
        strict_one_action: Refuse messages that ask for more than one step.
        small_talk: Probability of an idle remark at the end of a report.
        misunderstanding: Probability that a message has to be said again (never twice in a row).

    Raises:
        ValueError: Unknown `stop_style`, or a probability outside [0, 1].
    """

    def __init__(
        self,
        instructions: Any = None,
        tools: Any = None,
        *,
        seed: int = 0,
        stop_style: str = "polite",
        max_actions: int = 4,
        strict_one_action: bool = False,
        small_talk: float = 0.25,
        misunderstanding: float = 0.0,
    ) -> None:
        super().__init__(instructions=instructions)
        if stop_style not in STOP_STYLES:
            raise ValueError(
                f"stop_style is {stop_style!r}; the customer would not know when to hang up. Use one of "
                f"{STOP_STYLES}."
            )
        for name, value in (("small_talk", small_talk), ("misunderstanding", misunderstanding)):
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} is {value}, not a probability. Set it between 0 and 1.")
        self.tools, self.seed, self.stop_style = tools, seed, stop_style
        self.max_actions, self.strict_one_action = max_actions, strict_one_action
        self.small_talk, self.misunderstanding = small_talk, misunderstanding

    def set_seed(self, seed: int) -> None:
        """Seed of the next conversation."""
        self.seed = seed

    @classmethod
    def is_stop(cls, message: UserMessage) -> bool:
        """True if the message ends the conversation."""
        return not message.is_tool_call() and any(
            marker in (message.content or "") for marker in STOP_MARKERS
        )

    def get_init_state(self, message_history: list | None = None) -> Memory:
        """A fresh memory. Seeded by scenario and seed through crc32, so the same in every process."""
        scenario = read_scenario(self.instructions)
        fingerprint = zlib.crc32(scenario.fingerprint.encode())
        return Memory(scenario, random.Random(fingerprint * 1_000_003 + self.seed), Phone(scenario.goal))

    def generate_next_message(self, message: Any, state: Memory) -> tuple[UserMessage, Memory]:
        """Answer the agent's words or go on after a tool result."""
        if isinstance(message, ToolMessage):
            self._observe(state, message.content or "")
        elif isinstance(message, MultiToolMessage):
            for result in message.tool_messages:
                self._observe(state, result.content or "")
        else:
            reply = self._hear(state, message.content or "")
            if reply:
                return UserMessage(role="user", content=reply, cost=0.0), state
        return self._act(state), state

    # -- listening -----------------------------------------------------------------------------------

    def _hear(self, state: Memory, message: str) -> str:
        """Plan what the message asks for. Returns words to say at once, or "" to start acting."""
        if not state.greeted:
            state.greeted = True
            return opening(state)
        cues = listen(normalise(message))
        if "transferring" in cues and not {"offer"} & cues:
            return phrases.TRANSFER
        if state.announced and state.phone.goal_met:
            return state.rng.choice(phrases.GOODBYE)
        if self.misunderstanding and not state.misheard and state.rng.random() < self.misunderstanding:
            state.misheard = True
            return state.rng.choice(phrases.MISHEARD)
        state.misheard = False
        state.report, state.remarks = [], []
        requests = self._possible(state, understand(message))
        state.replies = self._replies(state, cues, requests)
        if self.strict_one_action and len(requests) > 1:
            return phrases.ONE_AT_A_TIME
        if requests or state.remarks:
            state.lost = 0
            self._plan(state, requests)
            return ""
        return self._idle(state, cues)

    def _possible(self, state: Memory, requests: list[Request]) -> list[Request]:
        """Drop steps meant for travellers if the customer is at home."""
        kept = [r for r in requests if r.condition != "abroad" or state.scenario.abroad]
        if len(kept) < len(requests):
            state.remarks.append(phrases.NOT_ABROAD)
        return kept

    def _replies(self, state: Memory, cues: frozenset[str], requests: list[Request]) -> list[str]:
        names = answers(
            cues,
            state.scenario,
            identified=state.identified,
            acting=bool(requests),
            paying=any(request.target == "make_payment" for request in requests),
        )
        state.identified = state.identified or "identity" in names
        facts = vars(state.scenario)
        return [state.rng.choice(phrases.ANSWERS[name]).format(**facts) for name in names]

    def _plan(self, state: Memory, requests: list[Request]) -> None:
        if len(requests) > self.max_actions:
            requests = requests[: self.max_actions]
            state.remarks.append(phrases.TOO_MANY)
        checks = any(request.target == "check_payment_request" for request in requests)
        for request in requests:
            if request.target == "make_payment" and not state.phone.payment_request and not checks:
                state.queue.append(Request("call", "check_payment_request"))
            state.queue.append(request)

    def _idle(self, state: Memory, cues: frozenset[str]) -> str:
        """The message asks nothing of the phone: answer, agree, look whether it works, or be lost."""
        if state.replies:
            state.lost = 0
            return " ".join(state.replies)
        if {"will_transfer", "human"} <= cues:
            return phrases.FINE_TRANSFER
        if cues & {"closing", "outcome"}:
            state.closings += "outcome" not in cues
            if state.closings > MAX_CLOSINGS:
                return phrases.GIVE_UP
            state.queue.append(Request("call", GOAL_TOOLS[state.scenario.goal]))
            return ""
        state.lost += 1
        return phrases.OUT_OF_SCOPE if state.lost > MAX_LOST else state.rng.choice(phrases.LOST)

    # -- acting --------------------------------------------------------------------------------------

    def _act(self, state: Memory) -> UserMessage:
        """Run the next queued step, or report when nothing is left."""
        while state.queue:
            request = state.queue.popleft()
            tool = self._tool_for(state, request)
            if tool:
                return self._run(state, request, tool)
        return UserMessage(role="user", content=summary(state, self.stop_style, self.small_talk), cost=0.0)

    def _tool_for(self, state: Memory, request: Request) -> str:
        """Device tool for a request; "" if nothing has to be run."""
        if request.kind == "ask":
            state.remarks.append(phrases.WHICH_MODE)
            return ""
        if request.kind == "switch":
            wanted, seen = request.details[0][1], state.phone.known.get(request.target)
            if seen == wanted:
                state.report.append(phrases.already(request.target, wanted))
                return ""
            if seen is None and request.target == "airplane":  # a blind flip would drop every connection
                state.queue.appendleft(request)
                return "check_network_status"
            return device.SWITCH_TOOLS[request.target]
        bar_seen = bool(state.report) and phrases.BAR_LABEL in state.report[-1]
        return "" if request.target == "check_status_bar" and bar_seen else request.target

    def _run(self, state: Memory, request: Request, tool: str) -> UserMessage:
        state.current, state.running = request, tool
        state.calls += 1
        arguments: dict[str, Any] = dict(request.details) if request.kind == "call" else {}
        if tool == "set_apn_settings":
            arguments = {"apn_settings": arguments}
        call = ToolCall(id=f"u{state.calls}", name=tool, arguments=arguments, requestor="user")
        return UserMessage(role="user", tool_calls=[call], cost=0.0)

    def _observe(self, state: Memory, content: str) -> None:
        """Take in the result of the tool that was run."""
        state.phone.learn(content)
        request, tool = state.current, state.running
        if request is None or (request.kind == "switch" and tool.startswith("check_")):
            return
        missed = request.kind == "switch" and state.phone.known.get(request.target) != request.details[0][1]
        if missed and phrases.SWITCHED_BACK not in state.remarks:
            state.queue.appendleft(request)
            state.remarks.append(phrases.SWITCHED_BACK)
            return
        if tool == "check_payment_request" and not state.phone.payment_request:
            state.queue = deque(r for r in state.queue if r.target != "make_payment")
        state.report.append(phrases.device_result(tool, content))
        state.changes += tool not in device.READING_TOOLS
