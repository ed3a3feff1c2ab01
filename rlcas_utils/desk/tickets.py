"""The three splits: training and validation tickets from templates, benchmark tickets written by hand.

A template says what customers of one intent write; the records it is filled with decide how it ends, and
they are chosen so that the endings of an intent come up about equally often. Validation uses other templates
than training, the benchmark uses none, and each split has its own customers.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache
from typing import Any

import yaml

from rlcas_utils.config import project_root
from rlcas_utils.desk.noise import expand, roughen
from rlcas_utils.desk.rules import INTENTS
from rlcas_utils.desk.ticket import Ticket, make_ticket
from rlcas_utils.desk.world import BLOCKS, World, default_world

SPLITS: tuple[str, ...] = ("train", "validation", "benchmark")
REPEATS: dict[str, int] = {"technical": 2}  # tickets per message of a category with few messages; else 1
MAX_OPTIMAL: int = 5  # steps of the longest ticket that is made
_TRIES: int = 10


@lru_cache(maxsize=len(SPLITS))
def load_tickets(split: str) -> tuple[Ticket, ...]:
    """Return all tickets of a split, always the same ones in the same order.

    Args:
        split: "train", "validation" or "benchmark".

    Returns:
        The tickets.

    Raises:
        ValueError: If there is no such split, or a hand-written ticket contradicts its declared truth.
    """
    if split not in SPLITS:
        raise ValueError(
            f"split is {split!r}; there is no such set of tickets. Use one of {', '.join(SPLITS)}."
        )
    if split == "benchmark":
        return tuple(_benchmark_ticket(entry) for entry in _read("benchmark.yaml"))
    return tuple(_Generator(default_world(), split).tickets())


def _read(name: str) -> Any:
    return yaml.safe_load((project_root() / "data/desk" / name).read_text(encoding="utf-8"))


def _benchmark_ticket(entry: dict[str, Any]) -> Ticket:
    ticket = make_ticket(
        default_world(), entry["id"], entry["intent"], entry["query"], None, entry.get("attached")
    )
    tools = [name.split("_")[1] for name in ticket.optimal_names[:-1]]
    worked_out = {"scenario": ticket.scenario, "tools": tools, "ending": ticket.resolution}
    declared = {key: entry[key] for key in worked_out}
    if declared != worked_out:
        raise ValueError(
            f"benchmark ticket {entry['id']} declares {declared}, but the handbook and the database give "
            f"{worked_out}; its score would be wrong. Correct the entry in data/desk/benchmark.yaml."
        )
    return ticket


class _Generator:
    """Fills templates with records, one random generator per split."""

    def __init__(self, world: World, split: str) -> None:
        self.world, self.split = world, split
        self.rng = random.Random(f"desk tickets {split}")
        self.chatter = _read("chatter.yaml")
        self.used: Counter[str] = Counter()
        block = BLOCKS[split]
        self.records = world.rows(
            "SELECT c.email, c.name, o.order_id, s.parcel_id, i.invoice_id, p.model FROM customers c "
            "LEFT JOIN orders o USING (customer_id) LEFT JOIN shipments s USING (order_id) "
            "LEFT JOIN invoices i USING (order_id) LEFT JOIN products p USING (sku) "
            "WHERE c.customer_id BETWEEN ? AND ? ORDER BY c.customer_id, o.order_id",
            block.start,
            block.stop - 1,
        )
        self.models = [row["model"] for row in world.rows("SELECT model FROM products ORDER BY sku")]
        codes = world.rows("SELECT keywords FROM articles WHERE length(keywords) = 3 ORDER BY article_id")
        self.listed_faults = [row["keywords"] for row in codes]

    def tickets(self) -> list[Ticket]:
        """Return the split's tickets with distinct messages."""
        made: dict[str, Ticket] = {}
        for intent, (category, _) in INTENTS.items():
            for number, template in enumerate(_read(f"templates/{intent}.yaml")[self.split]):
                for _ in range(REPEATS.get(category, 1)):
                    ticket = self._least_used(
                        intent, f"{self.split}/{intent}/{number:02d}", template, len(made)
                    )
                    if ticket.query not in made:
                        made[ticket.query] = ticket
                        self.used[ticket.scenario] += 1
        return list(made.values())

    def _least_used(self, intent: str, template_id: str, template: str, number: int) -> Ticket:
        """Among several fillings of one message, the one whose scenario is rarest so far."""
        message = roughen(expand(template, self.rng), self.chatter, self.rng)
        best: Ticket | None = None
        for _ in range(_TRIES if "{" in message else 2):
            query, attached = self._fill(message, intent)
            ticket = make_ticket(
                self.world, f"{self.split}-{number:04d}", intent, query, template_id, attached
            )
            if best is None or self._crowding(ticket) < self._crowding(best):
                best = ticket
        return best

    def _crowding(self, ticket: Ticket) -> float:
        """How often the scenario was used, per service it needs: longer episodes come up more often."""
        if len(ticket.optimal_actions) > MAX_OPTIMAL:
            return float("inf")
        return self.used[ticket.scenario] / (len(ticket.optimal_actions) - 1)

    def _fill(self, message: str, intent: str) -> tuple[str, dict[str, str]]:
        rng, row = self.rng, self.rng.choice(self.records)
        while "{parcel}" in message and not row["parcel_id"]:
            row = rng.choice(self.records)
        values = {
            "order": self._order_number(row["order_id"]),
            "email": row["email"]
            if rng.random() > 0.06
            else row["email"].replace("@", f"{rng.randint(2, 99)}@"),
            "parcel": row["parcel_id"] if rng.random() > 0.08 else f"PX{rng.randint(10**7, 10**8 - 1)}",
            "invoice": row["invoice_id"] if rng.random() > 0.12 else f"INV-{rng.randint(10000, 12999)}",
            "product": rng.choice(self.models),
            "bought": row["model"],
            "name": row["name"],
            "first": row["name"].split()[0],
            "fault": f"{rng.choice('EF')}{rng.randint(10, 95)}"
            if rng.random() < 0.4
            else self._listed_fault(),
        }
        query = message
        for slot, value in values.items():
            query = query.replace("{" + slot + "}", value or "")
        return query, self._attached(message, intent, row)

    def _order_number(self, order_id: str) -> str:
        rng = self.rng
        number = order_id if rng.random() > 0.07 else str(rng.randint(200000, 999999))
        return rng.choices([number, f"{number[:3]} {number[3:]}", f"{number[:3]}-{number[3:]}"], [90, 5, 5])[
            0
        ]

    def _listed_fault(self) -> str:
        return self.rng.choice(self.listed_faults).upper()

    def _attached(self, message: str, intent: str, row: dict[str, Any]) -> dict[str, str]:
        """Some messages come through a contact form that adds the order or the customer's address."""
        if self.rng.random() > 0.35:
            return {}
        if INTENTS[intent][0] in ("account", "auth", "billing"):
            return {} if "{email}" in message else {"email": row["email"]}
        return (
            {}
            if any(slot in message for slot in ("{order}", "{email}", "{parcel}"))
            else {"order_id": row["order_id"]}
        )
