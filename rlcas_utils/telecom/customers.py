"""Which customer the agent meets: the scripted one, or a language model through LiteLLM.

The choice changes the task, so its name goes into every row. A language-model customer costs about $0.05 an
episode with gpt-4.1-mini (estimated from the scripted expert's episodes: 26 customer turns, 117,000 input
tokens).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.customer import ScriptedCustomer

SCRIPTED = "scripted"
CustomerFactory = Callable[[tau2.Task, int], tau2.BaseUser]


class CustomerError(RuntimeError):
    """A customer that cannot answer; the text says what it needs."""


def scripted_customer(task: tau2.Task, seed: int) -> ScriptedCustomer:
    """The deterministic customer; the seed varies wording and small talk."""
    return ScriptedCustomer(task.user_scenario, seed=seed)


def customer_factory(name: str, base_url: str = "") -> CustomerFactory:
    """Choose a customer by name.

    Args:
        name: ``scripted``, or a LiteLLM model name such as ``gpt-4.1-mini-2025-04-14``.
        base_url: Address of an OpenAI-compatible server; empty for the provider's own.

    Returns:
        A function that makes the customer of one episode from task and seed.

    Raises:
        CustomerError: The model needs a key that is not in the environment.
    """
    if name == SCRIPTED:
        return scripted_customer
    if not base_url and not os.environ.get("OPENAI_API_KEY"):
        raise CustomerError(
            f"CUSTOMER is {name!r} and OPENAI_API_KEY is not set, so nobody would answer. Set the key in "
            f"the environment, set CUSTOMER_URL to a local server, or set CUSTOMER to {SCRIPTED!r}."
        )
    settings: dict[str, Any] = {"temperature": 0.0}
    if base_url:
        settings |= {"api_base": base_url, "api_key": os.environ.get("OPENAI_API_KEY", "none")}
    return lambda task, seed: tau2.UserSimulator(
        tools=_phone_tools(), instructions=str(task.user_scenario), llm=name, llm_args=dict(settings)
    )


@cache
def _phone_tools() -> list[Any]:
    """Schemas of the phone's tools; tau2 runs the tools itself, so one list serves all episodes."""
    return tau2.make_environment().get_user_tools()
