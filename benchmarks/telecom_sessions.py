"""Times the telecom session beside tau2's own loop and beside tau2's Gymnasium environment.

All three play the scripted expert's actions, recorded beforehand, against the scripted customer, so that what
is timed is stepping: the customer's turn and the environment's, no agent. The session plays all episodes side
by side, one step each in turn, as a batch of rollouts does. The Gymnasium environment is timed on the first
steps of one episode; it loads the task file again at each of them.

    python benchmarks/telecom_sessions.py --split test --gym-steps 6
"""

import argparse
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rlcas_utils.telecom import agents, tau2
from rlcas_utils.telecom.customers import scripted_customer
from rlcas_utils.telecom.session import DONE, RESPOND, Session

Actions = list[tuple[str, dict[str, Any]]]
STOP = "###STOP###"


@dataclass
class Clock:
    """Seconds of the wall clock and of the processor, which a busy machine does not stretch."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Adds the time spent inside."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall_s += time.perf_counter() - wall
        self.cpu_s += time.process_time() - cpu


class Replay(tau2.LocalAgent):
    """Says recorded actions when tau2's loop asks for them."""

    def __init__(self, actions: Actions) -> None:
        """Takes the actions of one episode."""
        super().__init__(tools=[], domain_policy="")
        self.actions = iter(enumerate(actions))

    def get_init_state(self, message_history: list | None = None) -> dict:
        """Has no state."""
        return {}

    def generate_next_message(self, message: Any, state: dict) -> tuple[tau2.AssistantMessage, dict]:
        """Returns the next action."""
        index, (name, arguments) = next(self.actions)
        if name in (RESPOND, DONE):
            said = arguments.get("content", STOP)
            return tau2.AssistantMessage(role="assistant", content=said, cost=0.0), state
        call = tau2.ToolCall(id=f"a{index}", name=name, arguments=arguments, requestor="assistant")
        return tau2.AssistantMessage(role="assistant", tool_calls=[call], cost=0.0), state

    @classmethod
    def is_stop(cls, message: tau2.AssistantMessage) -> bool:
        """Ends the episode as `done` does."""
        return message.content == STOP


def record(task: tau2.Task) -> Actions:
    """Returns what the expert does in an episode with customer 7."""
    session, actions = Session(task, scripted_customer(task, 7)), []
    act = agents.expert(task, 0)
    while not session.done:
        _, name, arguments = act(session.observation.text)
        actions.append((name, arguments))
        session.step(name, arguments)
    return actions


def time_sessions(tasks: list[tau2.Task], recorded: list[Actions]) -> tuple[Clock, Clock]:
    """Returns the time to open all sessions and the time to step them to their ends, side by side."""
    opening, stepping = Clock(), Clock()
    with opening.running():
        sessions = [Session(task, scripted_customer(task, 7)) for task in tasks]
    with stepping.running():
        for turn in range(max(map(len, recorded))):
            for session, actions in zip(sessions, recorded, strict=True):
                if turn < len(actions):
                    session.step(*actions[turn])
    assert all(session.done for session in sessions)
    return opening, stepping


def time_own_loop(tasks: list[tau2.Task], recorded: list[Actions]) -> Clock:
    """Returns the time that `Orchestrator.run` takes for the same episodes, opened and run one by one."""
    clock = Clock()
    for task, actions in zip(tasks, recorded, strict=True):
        with clock.running():
            tau2.Orchestrator(
                domain=tau2.DOMAIN,
                agent=Replay(actions),
                user=scripted_customer(task, 7),
                environment=tau2.make_environment(),
                task=task,
                max_steps=200,
            ).run()
    return clock


def time_gym(task: tau2.Task, actions: Actions) -> tuple[Clock, Clock]:
    """Returns the time of tau2's Gymnasium environment to open an episode and to make these steps."""
    from tau2.gym.gym_agent import AgentGymEnv

    class ScriptedGymEnv(AgentGymEnv):
        """The same environment with the scripted customer."""

        def _get_user(self) -> tau2.BaseUser:
            return scripted_customer(task, 7)

    environment, opening, stepping = ScriptedGymEnv(tau2.DOMAIN, task.id, max_steps=200), Clock(), Clock()
    with opening.running():
        environment.reset()
    for name, arguments in actions:
        said = arguments["content"] if name == RESPOND else json.dumps({"name": name, "arguments": arguments})
        with stepping.running():
            environment.step(said)
    return opening, stepping


def main() -> None:
    """Runs all three and prints milliseconds per agent step and the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--split", default="base", help="tasks to play; Gymnasium knows those of base only")
    parser.add_argument("--gym-steps", type=int, default=4, help="steps of tau2's Gymnasium environment")
    options = parser.parse_args()

    tasks = list(tau2.tasks(options.split))
    recorded = [record(task) for task in tasks]
    steps = sum(map(len, recorded))
    opening, stepping = time_sessions(tasks, recorded)
    own = time_own_loop(tasks, recorded)
    longest = max(range(len(tasks)), key=lambda i: len(recorded[i]))
    first = recorded[longest][: options.gym_steps]
    gym_opening, gym_stepping = time_gym(tasks[longest], first)

    whole = Clock(opening.wall_s + stepping.wall_s, opening.cpu_s + stepping.cpu_s)
    print(
        f"{len(tasks)} episodes, {steps} agent steps; milliseconds of processor (wall clock) per agent step"
    )
    for name, clock, count in (
        ("session, steps", stepping, steps),
        ("session, opening too", whole, steps),
        ("Orchestrator.run, opening too", own, steps),
        ("AgentGymEnv, steps", gym_stepping, len(first)),
    ):
        ratio = (clock.cpu_s / count) / (stepping.cpu_s / steps)
        cpu, wall = 1000 * clock.cpu_s / count, 1000 * clock.wall_s / count
        print(f"  {name:30s} {cpu:9.3f} ({wall:9.3f})   {ratio:8.1f} x the session's steps")
    each, gym = 1000 * opening.cpu_s / len(tasks), 1000 * gym_opening.cpu_s
    print(f"opening an episode: session {each:.1f} ms, AgentGymEnv {gym:.0f} ms, {gym / each:.0f} x")


if __name__ == "__main__":
    main()
