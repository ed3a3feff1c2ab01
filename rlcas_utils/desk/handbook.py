"""The desk's handbook: for every kind of request, which service to ask next and how to end.

A rule book is a tree. A node names a service and branches on facts of its answer; a leaf names an ending and
the scenario. The hidden truth of a ticket (its shortest plan, its right ending, the deciding evidence) is
obtained by walking the tree on the real database, so text, records and truth cannot drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlcas_utils.desk.actions import ENDINGS, SERVICES
from rlcas_utils.desk.facts import PREREQUISITE_ERRORS
from rlcas_utils.desk.identifiers import Identifiers


@dataclass(frozen=True, slots=True)
class End:
    """A leaf: the ending (`resolve`, `ask`, `billing`, `technical`, `human`) and the scenario's name."""

    ending: str
    scenario: str

    @property
    def action(self) -> int:
        """Id of the terminal action."""
        return ENDINGS[self.ending]


@dataclass(frozen=True, slots=True)
class Ask:
    """A node: ask `service`, then follow the first branch that holds.

    A branch reads `fact=value`, `fact=one|other`, several joined by ` & `, or `*` for any answer.
    """

    service: str
    branches: dict[str, Ask | End]

    @property
    def action(self) -> int:
        """Id of the tool action."""
        return SERVICES.index(self.service)

    def follow(self, facts: dict[str, str]) -> Ask | End:
        """Return the node that the revealed facts lead to.

        Raises:
            LookupError: If no branch covers the facts.
        """
        for condition, node in self.branches.items():
            if condition == "*" or all(self._holds(part, facts) for part in condition.split(" & ")):
                return node
        known = {name: value for name, value in facts.items() if name.startswith(self.service)}
        raise LookupError(
            f"the handbook has no branch after {self.service} for {known}. Add one in desk/rules.py."
        )

    def _holds(self, condition: str, facts: dict[str, str]) -> bool:
        name, _, values = condition.partition("=")
        return facts.get(f"{self.service}.{name}") in values.split("|")


@dataclass(frozen=True, slots=True)
class Choice:
    """A node without a call: which branch to take depends on the identifiers the customer wrote."""

    has: str
    then: Ask | End | Choice
    otherwise: Ask | End | Choice

    def pick(self, written: Identifiers) -> Ask | End | Choice:
        """Return the branch for a message with the identifiers `written`."""
        return self.then if getattr(written, self.has) else self.otherwise


Node = Ask | End | Choice


def next_node(root: Node, written: Identifiers, facts: dict[str, str]) -> Ask | End:
    """Walk from the root as far as the facts reach.

    Args:
        root: Tree of the request's kind.
        written: Identifiers in the customer's own message.
        facts: Facts revealed so far.

    Returns:
        The node that is due: a service still to ask, or the right ending.
    """
    node = root
    asked = {name.partition(".")[0] for name, value in facts.items() if value not in PREREQUISITE_ERRORS}
    while True:
        if isinstance(node, Choice):
            node = node.pick(written)
        elif isinstance(node, End) or node.service not in asked:
            return node
        else:
            node = node.follow(facts)


def describe(node: Node, depth: int = 0) -> list[str]:
    """Render a tree as indented lines for people and for prompts."""
    pad = "  " * depth
    if isinstance(node, End):
        return [f"{pad}-> {node.ending} ({node.scenario})"]
    if isinstance(node, Choice):
        left, right = describe(node.then, depth + 1), describe(node.otherwise, depth + 1)
        return [f"{pad}message has {node.has}:", *left, f"{pad}otherwise:", *right]
    lines = [f"{pad}ask {node.service}:"]
    for condition, child in node.branches.items():
        lines += [f"{pad}  {condition}", *describe(child, depth + 2)]
    return lines
