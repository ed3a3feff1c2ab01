"""What the agent is told: policy, its tools as JSON schemas, the customer's tools by name, the output form.

The two tool lists are kept apart on purpose. tau2's manual writes the phone's functions as calls
("use `check_network_status()`"), and models that read it call them: a third of all calls in public reports.
Here the agent's list holds 13 tools and the two ways to speak, and the customer's 30 are named as things to
ask for.

Everything in the prompt is the same for every task and comes first, so a server or a KV cache shares it.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from rlcas_utils.config import project_root
from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.session import DONE, RESPOND

# "compact": the published recipe's kind of policy. "full": adds the five causes it leaves out, which 24 of
# the 28 fixable test tasks need. "none": no instructions, for the small model, which has its demonstrations.
POLICY_ARMS = ("compact", "full", "none")


def _text(name: str) -> str:
    return (project_root() / "data" / "telecom" / f"{name}.txt").read_text(encoding="utf-8")


def policy_text(arm: str) -> str:
    """The policy of an arm, in our own words.

    Args:
        arm: One of `POLICY_ARMS`.

    Raises:
        ValueError: Unknown arm.
    """
    if arm not in POLICY_ARMS:
        raise ValueError(f"policy arm {arm!r} is unknown, so there is no prompt. Use one of {POLICY_ARMS}.")
    if arm == "none":
        return ""
    return _text("policy_compact") + (_text("policy_full_extra") if arm == "full" else "")


@cache
def agent_tools() -> tuple[dict[str, Any], ...]:
    """JSON schemas of the 13 company tools and of ``respond`` and ``done``, short but complete.

    tau2's own schemas cost 1,769 Qwen tokens; without pydantic titles and the longer remarks they cost
    about two thirds of that and say the same.
    """
    own = [_shorten(tool.openai_schema["function"]) for tool in tau2.make_environment().get_tools()]
    content = {"type": "string", "description": "The message."}
    speak = [
        _schema(RESPOND, "Say something to the customer.", {"content": content}, ["content"]),
        _schema(DONE, "End the conversation once the customer is served.", {}, []),
    ]
    return tuple(own + speak)


@cache
def required_arguments() -> dict[str, tuple[str, ...]]:
    """Required argument names by agent tool, ``respond`` and ``done`` included."""
    return {tool["name"]: tuple(tool["parameters"]["required"]) for tool in agent_tools()}


@cache
def customer_tools() -> tuple[str, ...]:
    """Names of the 30 tools that only the customer can run, on the phone."""
    return tuple(sorted(tool.name for tool in tau2.make_environment().get_user_tools()))


@cache
def system_prompt(arm: str) -> str:
    """The system message of a policy arm; empty for ``none``."""
    policy = policy_text(arm)
    if not policy:
        return ""
    tools = "\n".join(json.dumps(tool, separators=(",", ":")) for tool in agent_tools())
    return (
        f"{policy}\nYour tools, one JSON schema per line:\n{tools}\n\n"
        "Only the customer can run these, on the phone. Never call them; ask for them in plain words:\n"
        f"{', '.join(customer_tools())}\n\n{_text('contract')}"
    )


def render_call(thought: str, name: str, arguments: dict[str, Any]) -> str:
    """One agent turn in the form that the prompt asks for.

    Args:
        thought: Reasoning; an empty one leaves the tags out.
        name: Tool name, ``respond`` or ``done``.
        arguments: Its arguments.
    """
    think = f"<think>{thought}</think>" if thought else ""
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"{think}<tool_call>{call}</tool_call>"


def render_observation(text: str, *, is_tool_result: bool) -> str:
    """What the agent reads next: a tool's result in Qwen's tags, a customer's words as they are."""
    return f"<tool_response>{text}</tool_response>" if is_tool_result else text


def _shorten(function: dict[str, Any]) -> dict[str, Any]:
    properties = {
        name: {key: value for key, value in spec.items() if key != "title"}
        for name, spec in function["parameters"]["properties"].items()
    }
    first_line = function["description"].split("\n")[0]
    return _schema(function["name"], first_line, properties, function["parameters"].get("required", []))


def _schema(name: str, description: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": description, "parameters": parameters}
