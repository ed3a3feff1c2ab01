"""Which customer the agent meets: the scripted one, or a language model through LiteLLM.

The choice changes the task, so its name goes into every row. The language-model customer is tau2's own
simulator: its prompt, its tools, its view of the conversation. Only the call to the model is the course's, so
that a rate limit or an outage is waited out, every turn's cost is added up, and a spend cap holds. A customer
who cannot answer all the same ends the episode as `infrastructure_error`, which is nobody's failure but is
listed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rlcas_utils.api_calls import ApiClient, completion, missing_key, server_of
from rlcas_utils.api_replies import Reply
from rlcas_utils.api_usage import ApiError, Budget, Usage
from rlcas_utils.telecom import tau2
from rlcas_utils.telecom.customer import ScriptedCustomer

SCRIPTED = "scripted"
MAX_ASKS = 4  # an unusable reply is asked for again this often in all, as tau2's own simulator does
TEMPERATURE = 0.0  # the published setting
CustomerFactory = Callable[[tau2.Task, int], tau2.BaseUser]

# One episode of the scripted expert with tau2's simulator as customer: calls, tokens read, tokens written.
CALLS, TOKENS_IN, TOKENS_OUT = 26.5, 117_000, 670


class CustomerError(RuntimeError):
    """A customer that cannot answer; the text says what it needs."""


class ModelCustomer(tau2.UserSimulator):
    """tau2's simulated user, asked through a client that waits, counts and stops at a cap.

    Attributes:
        usage: what this customer used so far, summed over its turns.
    """

    def __init__(self, scenario: Any, client: ApiClient) -> None:
        """Set up the customer of one episode.

        Args:
            scenario: The task's `user_scenario`.
            client: Asks the model.
        """
        super().__init__(
            tools=_phone_tools(),
            instructions=str(scenario),
            llm=client.model,
            llm_args={"temperature": TEMPERATURE},
        )
        self.client, self.usage = client, Usage()

    def generate_next_message(self, message: Any, state: Any) -> tuple[tau2.UserMessage, Any]:
        """Say or do the next thing; tau2's orchestrator runs the tools.

        Raises:
            ApiError: The model could not be asked, or gave nothing usable in `MAX_ASKS` tries.
        """
        heard = message.tool_messages if isinstance(message, tau2.MultiToolMessage) else [message]
        state.messages.extend(heard)
        chat = tau2.to_litellm_messages(state.system_messages + state.flip_roles())
        reply, calls = self._usable_reply(chat)
        said = tau2.UserMessage(role="user", content=reply.text or None, tool_calls=calls or None)
        state.messages.append(said)
        return said, state

    def _usable_reply(self, chat: list[dict]) -> tuple[Reply, list[tau2.ToolCall]]:
        endings = []
        for attempt in range(MAX_ASKS):
            self.usage.retries += attempt > 0
            reply = self.client.ask(
                chat, self.usage, tools=_phone_schemas(), tool_choice="auto", **self.llm_args
            )
            calls, label = _read_calls(reply), reply.label
            if calls is None:
                label = "bad_tool_call"
            elif reply.text.strip() or calls:
                self.usage.labels[label] += 1
                return reply, calls
            endings.append(label)
        self.usage.labels[endings[-1]] += 1
        raise ApiError(
            f"the customer {self.llm} gave no usable reply in {MAX_ASKS} tries ({', '.join(endings)}); the "
            "agent is not to blame. Look at the server's log, or choose another customer."
        )


def _read_calls(reply: Reply) -> list[tau2.ToolCall] | None:
    """Return the tool calls of a reply, None if one cannot be read."""
    calls = []
    for call in reply.tool_calls:
        try:
            arguments = json.loads(call.function.arguments or "{}")
        except ValueError:
            return None
        if not isinstance(arguments, dict) or not call.function.name:
            return None
        calls.append(
            tau2.ToolCall(id=call.id, name=call.function.name, arguments=arguments, requestor="user")
        )
    return calls


class ModelCustomers:
    """Makes the customers of a run; they share one client, one budget and one pause.

    Attributes:
        client: Asks the model.
        budget: What all customers used, and the spend cap.
    """

    def __init__(
        self, model: str, base_url: str, max_usd: float, path: Path | None = None, **client: Any
    ) -> None:
        """See `customer_factory`; `client` goes to `ApiClient`."""
        self.budget = Budget(max_usd, path)
        self.client = ApiClient(model, self.budget, base_url, **client)

    def __call__(self, task: tau2.Task, seed: int) -> ModelCustomer:
        """Return the customer of one episode. A model has no seed that would fix its words."""
        return ModelCustomer(task.user_scenario, self.client)


def scripted_customer(task: tau2.Task, seed: int) -> ScriptedCustomer:
    """The deterministic customer; the seed varies wording and small talk."""
    return ScriptedCustomer(task.user_scenario, seed=seed)


def customer_factory(
    name: str, base_url: str = "", *, max_usd: float = 1.0, path: Path | None = None, **client: Any
) -> CustomerFactory:
    """Choose a customer by name.

    Args:
        name: ``scripted``, or a LiteLLM model name such as ``gpt-4.1-mini-2025-04-14``.
        base_url: Address of an OpenAI-compatible server; empty for the provider's own, or for the one that
            OPENAI_BASE_URL names.
        max_usd: Spend cap over all episodes, in US dollars.
        path: Where the money spent is kept over interruptions; None keeps it in memory.
        client: Further arguments of `api_calls.ApiClient`.

    Returns:
        A function that makes the customer of one episode from task and seed.

    Raises:
        CustomerError: The model needs a key that is not in the environment.
    """
    if name == SCRIPTED:
        return scripted_customer
    if needed := missing_key(name, base_url):
        raise CustomerError(
            f"CUSTOMER is {name!r}: it {needed}, so nobody would answer. Set the key in the environment, set "
            f"CUSTOMER_URL to a local server, or set CUSTOMER to {SCRIPTED!r}."
        )
    return ModelCustomers(name, base_url, max_usd, path, **client)


def require_available(make_customer: CustomerFactory) -> None:
    """Stop a run whose customers are gone: it would train on, or report, episodes that nobody played.

    Raises:
        SpendCapReached: The spend cap of a model customer is reached.
        ApiError: Its provider failed in the last three calls, each waited for as long as the client waits.
    """
    if isinstance(make_customer, ModelCustomers):
        make_customer.budget.require()
        make_customer.client.require()


def spending(make_customer: CustomerFactory) -> str:
    """Say what all customers of a run used so far."""
    if not isinstance(make_customer, ModelCustomers):
        return "The scripted customer cost nothing."
    return f"Customers used {make_customer.budget.usage.text()}."


def cost_estimate(name: str, num_episodes: int, base_url: str = "") -> str:
    """Say before a run what its customers will cost.

    Args:
        name: As for `customer_factory`.
        num_episodes: Episodes that meet the customer.
        base_url: As for `customer_factory`.

    Returns:
        One sentence. The tokens of an episode are those of the scripted expert; a longer one costs more, a
        provider's prompt cache makes it cheaper.
    """
    if name == SCRIPTED:
        return "The scripted customer costs nothing."
    used = f"about {CALLS * num_episodes:,.0f} calls and {TOKENS_IN * num_episodes / 1e6:,.1f} M tokens"
    usd = None if server_of(name, base_url) else _episode_usd(name)
    cost = "at a price that is not known here" if usd is None else f"about ${usd * num_episodes:,.2f}"
    return f"Customer {name}: {num_episodes} episodes, {used}, {cost}."


def _episode_usd(name: str) -> float | None:
    completion()
    import litellm

    prices = litellm.model_cost.get(name, {})
    if "input_cost_per_token" not in prices:
        return None
    return TOKENS_IN * prices["input_cost_per_token"] + TOKENS_OUT * prices["output_cost_per_token"]


def lost_episodes(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the episodes that a server lost, one sentence each: nobody's failure, and not evaluated."""
    return [f"{row['task_id']}, attempt {row['trial']}: {row['lost']}" for row in rows if row.get("lost")]


@cache
def _phone_tools() -> list[Any]:
    """The phone's tools; tau2 runs them itself, so one list serves all episodes."""
    return tau2.make_environment().get_user_tools()


@cache
def _phone_schemas() -> list[dict[str, Any]]:
    """Their JSON schemas; making one takes a millisecond each time."""
    return [tool.openai_schema for tool in _phone_tools()]
