"""Builds the shop behind the desk: one SQLite database, the same on every machine, from committed seeds.

Customers are split into three blocks so that training, validation and benchmark tickets never share a record.
States (a lost parcel, a refund over the limit, a locked login) are drawn from the tables below; what a
service reports is worked out from these rows when it is asked.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

import yaml

from rlcas_utils.config import project_root

TODAY = date(2024, 6, 7)
BLOCKS: dict[str, range] = {
    "train": range(1, 181),
    "validation": range(181, 221),
    "benchmark": range(221, 301),
}
"""Customer numbers whose records each split may refer to."""

_SCHEMA = """
CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name TEXT, email TEXT UNIQUE, city TEXT, status TEXT,
    profile TEXT, balance REAL, recovery TEXT, changed_days INTEGER, points INTEGER);
CREATE TABLE products (sku TEXT PRIMARY KEY, model TEXT UNIQUE, kind TEXT, price REAL, lifecycle TEXT, stock
TEXT,
    units INTEGER, restock_on TEXT);
CREATE TABLE orders (order_id TEXT PRIMARY KEY, customer_id INTEGER, sku TEXT, quantity INTEGER, total REAL,
    status TEXT, placed_on TEXT);
CREATE TABLE shipments (parcel_id TEXT PRIMARY KEY, order_id TEXT UNIQUE, carrier TEXT, status TEXT,
scan_days INTEGER); CREATE TABLE refunds (refund_id TEXT PRIMARY KEY, order_id TEXT UNIQUE, amount REAL,
state TEXT); CREATE TABLE invoices (invoice_id TEXT PRIMARY KEY, order_id TEXT UNIQUE, customer_id INTEGER,
amount REAL, state TEXT); CREATE TABLE auth_events (event_id INTEGER PRIMARY KEY, customer_id INTEGER, kind
TEXT, days_ago INTEGER); CREATE TABLE articles (article_id TEXT PRIMARY KEY, kind TEXT, title TEXT, keywords
TEXT);
"""

_LOGIN = {"ok": 46, "locked": 14, "suspicious": 10, "sso_error": 10, "code_desync": 10}
_STATUS = {"active": 92, "closed": 8}
_PROFILE = {"ok": 68, "duplicate": 16, "sync_error": 16}
_OPEN_ORDER = {
    "processing": 14,
    "hold_payment": 9,
    "hold_fraud": 9,
    "backordered": 9,
    "shipped": 34,
    "delivered": 42,
    "cancelled": 10,
}
_PARCEL = {
    "in_transit": 8,
    "delayed": 5,
    "out_for_delivery": 5,
    "lost": 6,
    "customs": 5,
    "address_problem": 5,
}
_DELIVERED = {"delivered_signed": 5, "delivered_unsigned": 4, "damaged": 4}
_REFUND = {
    "none": 52,
    "pending": 9,
    "paid": 7,
    "payout_failed": 9,
    "return_missing": 9,
    "fraud_flag": 9,
    "identity_check": 12,
}
_INVOICE = {"clear": 8, "open": 3, "overdue": 4, "duplicate": 7, "generation_error": 6}


class World:
    """The shop's database, opened read-only for the services.

    Attributes:
        database: The SQLite connection (in memory).
        models: Lower-case model word of each product to its article number.
        answers: Service answers already worked out; the database never changes, so they stay true.
    """

    def __init__(self) -> None:
        """Build every table from the committed seeds."""
        self.database = sqlite3.connect(":memory:", check_same_thread=False)
        self.database.row_factory = sqlite3.Row
        self.database.executescript(_SCHEMA)
        seeds = yaml.safe_load((project_root() / "data/desk/world.yaml").read_text(encoding="utf-8"))
        _Builder(self.database, seeds).build()
        self.database.commit()
        self.answers: dict[tuple[Any, ...], Any] = {}
        self.models = {
            row["model"].lower(): row["sku"] for row in self.rows("SELECT model, sku FROM products")
        }

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Return all rows of a query as dictionaries."""
        return [dict(row) for row in self.database.execute(sql, values)]

    def row(self, sql: str, *values: Any) -> dict[str, Any] | None:
        """Return the first row of a query, or None."""
        found = self.database.execute(sql, values).fetchone()
        return dict(found) if found else None


@lru_cache(maxsize=1)
def default_world() -> World:
    """Return the one world that all tickets refer to, built at first use (about 0.1 s)."""
    return World()


class _Builder:
    """Fills the tables in a fixed order with one random generator, so ids never move between machines."""

    def __init__(self, database: sqlite3.Connection, seeds: dict[str, Any]) -> None:
        self.database, self.seeds = database, seeds
        self.rng = random.Random(seeds["seed"])
        self.next_order = 104000

    def build(self) -> None:
        self._products()
        self._articles()
        people = [(first, last) for first in self.seeds["first_names"] for last in self.seeds["last_names"]]
        self.rng.shuffle(people)
        for number in range(1, self.seeds["num_customers"] + 1):
            self._customer(number, *people[number])
            self._auth(number)
            for age_days in self._order_ages():
                self._order(number, age_days)

    def _insert(self, table: str, row: Sequence[Any]) -> None:
        marks = ", ".join("?" * len(row))
        self.database.execute(f"INSERT INTO {table} VALUES ({marks})", row)

    def _draw(self, weights: dict[str, int]) -> str:
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def _products(self) -> None:
        self.catalogue: list[tuple[str, float]] = []
        for number, line in enumerate(self.seeds["products"].splitlines()):
            model, kind, price, lifecycle, stock = line.split("|")
            sku = f"{model[:2].upper()}-{301 + 7 * number}"
            units = self.rng.randint(4, 90) if stock == "in_stock" else -3 if stock == "count_error" else 0
            restock = str(TODAY + timedelta(days=self.rng.randint(4, 30))) if stock == "restock_dated" else ""
            self._insert("products", (sku, model, kind, float(price), lifecycle, stock, units, restock))
            self.catalogue.append((sku, float(price)))

    def _articles(self) -> None:
        for number, line in enumerate(self.seeds["articles"].splitlines(), start=1):
            kind, title, keywords = line.split("|")
            self._insert("articles", (f"KB-{number:02d}", kind, title, keywords))

    def _customer(self, number: int, first: str, last: str) -> None:
        rng = self.rng
        email = f"{first.lower()}.{last.lower()}@{rng.choice(self.seeds['mail_hosts'])}"
        balance = round(rng.uniform(12, 240), 2) if rng.random() < 0.35 else 0.0
        recovery = "on_file" if rng.random() < 0.6 else "none"
        changed = rng.randint(0, 6) if rng.random() < 0.35 else rng.randint(40, 900)
        row = (number, f"{first} {last}", email, rng.choice(self.seeds["cities"]), self._draw(_STATUS))
        self._insert(
            "customers", (*row, self._draw(_PROFILE), balance, recovery, changed, rng.randint(0, 4200))
        )

    def _auth(self, number: int) -> None:
        login = self._draw(_LOGIN)
        events = ["identity_failed" if self.rng.random() < 0.2 else "identity_passed"]
        events += {"ok": ["login"], "locked": ["login_failed"] * 5, "suspicious": ["login_new_country"]}.get(
            login, [login]
        )
        for kind in events:
            self.database.execute(
                "INSERT INTO auth_events (customer_id, kind, days_ago) VALUES (?, ?, ?)",
                (number, kind, self.rng.randint(0, 5)),
            )

    def _order_ages(self) -> list[int]:
        rng = self.rng
        num_recent = rng.choices([0, 1, 2, 3], [8, 50, 26, 16])[0]
        recent = [rng.randint(3, 28) for _ in range(num_recent)]
        return [*recent, *(rng.randint(90, 1100) for _ in range(rng.randint(1, 2)))]

    def _order(self, customer: int, age_days: int) -> None:
        rng = self.rng
        self.next_order += rng.randint(11, 97)
        order_id = str(self.next_order)
        sku, price = rng.choice(self.catalogue)
        total = round(price * (quantity := rng.choices([1, 2, 3], [80, 15, 5])[0]), 2)
        status = self._draw(_OPEN_ORDER) if age_days < 60 else "delivered"
        placed = str(TODAY - timedelta(days=age_days))
        self._insert("orders", (order_id, customer, sku, quantity, total, status, placed))
        number = int(order_id)
        self._insert(
            "invoices", (f"INV-{number % 90000 + 10000}", order_id, customer, total, self._draw(_INVOICE))
        )
        if status in ("shipped", "delivered"):
            state = self._draw(_PARCEL if status == "shipped" else _DELIVERED)
            scan_days = rng.randint(11, 25) if state == "lost" else rng.randint(0, 4)
            parcel = f"PX{(number * 7919) % 90000000 + 10000000}"
            self._insert(
                "shipments", (parcel, order_id, rng.choice(self.seeds["carriers"]), state, scan_days)
            )
        self._refund(order_id, status, total)

    def _refund(self, order_id: str, status: str, total: float) -> None:
        state = self._draw(_REFUND)
        if status == "cancelled":
            state = (
                state
                if state in ("pending", "paid", "payout_failed")
                else self.rng.choice(["paid", "payout_failed"])
            )
        if status in ("delivered", "cancelled") and state != "none":
            self._insert("refunds", (f"RF-{order_id}", order_id, total, state))
