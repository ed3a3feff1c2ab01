"""A ticket: what the customer wrote, and the hidden truth worked out on the real database."""

from __future__ import annotations

from dataclasses import dataclass, field

from rlcas_utils.desk import services
from rlcas_utils.desk.actions import ACTIONS
from rlcas_utils.desk.handbook import End, Node, next_node
from rlcas_utils.desk.identifiers import Identifiers, extract
from rlcas_utils.desk.rules import INTENTS
from rlcas_utils.desk.world import World


@dataclass(frozen=True, slots=True)
class Ticket:
    """One customer request with its hidden truth.

    Attributes:
        ticket_id: Unique name, such as `train-0042`.
        category: One of the eight categories; never shown to an agent.
        intent: Key of `rules.INTENTS`.
        scenario: `intent/leaf`, the handbook leaf this ticket ends on.
        query: The message as the customer wrote it.
        template_id: Template it was made from, or None for hand-written tickets.
        written: Identifiers in the message itself.
        attached: Identifiers that came with the contact form, invisible until a service uses them.
        optimal_actions: Shortest right episode, ending included.
        resolution: Short name of the right ending.
    """

    ticket_id: str
    category: str
    intent: str
    scenario: str
    query: str
    template_id: str | None
    written: Identifiers
    attached: dict[str, str] = field(hash=False)
    optimal_actions: tuple[int, ...]
    resolution: str

    @property
    def tree(self) -> Node:
        """The handbook tree of this ticket's intent."""
        return INTENTS[self.intent][1]

    @property
    def optimal_names(self) -> tuple[str, ...]:
        """The shortest right episode by action names."""
        return tuple(ACTIONS[action] for action in self.optimal_actions)


def learn(facts: dict[str, str], known: Identifiers, answer: services.Answer) -> Identifiers:
    """Add an answer to what is known.

    Args:
        facts: Facts revealed so far; updated in place. A failure that has become out of date (the call now
            works, or the missing identifier was found) is dropped.
        known: Identifiers known so far.
        answer: The new answer.

    Returns:
        The identifiers known afterwards.
    """
    if answer.ok:
        facts.pop(f"{answer.service}.error", None)
    facts.update(answer.facts)
    after = known.merged(**answer.found)
    if after.order_id and not known.order_id:
        facts.pop("order.error", None)
    if after.parcel_id and not known.parcel_id:
        facts.pop("logistics.error", None)
    if after.sku and not known.sku:
        facts.pop("inventory.error", None)
    return after


def make_ticket(
    world: World,
    ticket_id: str,
    intent: str,
    query: str,
    template_id: str | None = None,
    attached: dict[str, str] | None = None,
) -> Ticket:
    """Build a ticket and work out its hidden truth.

    Args:
        world: The database its records live in.
        ticket_id: Unique name.
        intent: Key of `rules.INTENTS`.
        query: The customer's message.
        template_id: Where the message came from, None if hand-written.
        attached: Identifiers from the contact form.

    Returns:
        The ticket with plan, ending and scenario.

    Raises:
        LookupError: If the handbook has no branch for what the services answer.
    """
    category, tree = INTENTS[intent]
    written = extract(query, world.models)
    known, facts, plan = written.merged(**(attached or {})), {}, []
    while not isinstance(node := next_node(tree, written, facts), End):
        answer = services.call(world, node.service, query, known, facts)
        known = learn(facts, known, answer)
        plan.append(node.action)
    plan.append(node.action)
    scenario = f"{intent}/{node.scenario}"
    truth = (tuple(plan), node.ending)
    return Ticket(ticket_id, category, intent, scenario, query, template_id, written, attached or {}, *truth)
