"""The seven services: each reads the database and answers with a few JSON facts and one line of text.

A call needs no arguments. The service takes the identifiers the customer wrote and those that earlier calls
revealed. It fails with a reason when an identifier is missing or unknown, or when a prerequisite has not
been met: the refund service wants the order looked up first, the customer service wants the identity
verified first.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from rlcas_utils.desk.actions import SERVICES
from rlcas_utils.desk.facts import FACTS as FACTS
from rlcas_utils.desk.facts import Answer
from rlcas_utils.desk.identifiers import Identifiers, normalise
from rlcas_utils.desk.world import TODAY, World

REFUND_LIMIT: float = 200.0
REFUND_WINDOW_DAYS: int = 30
WARRANTY_DAYS: int = 730


def call(world: World, service: str, query: str, known: Identifiers, facts: dict[str, str]) -> Answer:
    """Ask one service.

    Args:
        world: The database. It never changes, so answers are remembered in `world.answers`.
        service: Short name, one of `actions.SERVICES`.
        query: The customer's message, searched by the knowledge base.
        known: Identifiers known so far.
        facts: Facts revealed so far (prerequisites are read from them).

    Returns:
        The answer; a failure is an answer with `ok` False and the fact `<service>.error`.
    """
    key = answer_key(service, query, known, facts)
    answer = world.answers.get(key)
    if answer is None:
        answer = world.answers[key] = _CALLS[service](world, query, known, facts)
    return answer


def answer_key(service: str, query: str, known: Identifiers, facts: dict[str, str]) -> tuple[Any, ...]:
    """Everything an answer depends on; a second call with an equal key can only repeat the first."""
    if service == "knowledge":
        return (service, query, known.fault, known.sku)
    return (service, known, "order.status" in facts, facts.get("auth.identity"))


def _failure(service: str, reason: str, text: str) -> Answer:
    return Answer(
        service, False, {f"{service}.error": reason}, {}, f"{service} service failed: {reason} - {text}"
    )


def _order(world: World, query: str, known: Identifiers, facts: dict[str, str]) -> Answer:
    if not known.order_id:
        return _failure("order", "missing_order_number", "no order number in the message.")
    row = world.row("SELECT * FROM orders NATURAL JOIN products WHERE order_id = ?", known.order_id)
    if row is None:
        return _failure("order", "order_not_found", f"there is no order {known.order_id}.")
    parcel = world.row("SELECT parcel_id FROM shipments WHERE order_id = ?", known.order_id)
    age_days = (TODAY - TODAY.fromisoformat(row["placed_on"])).days
    warranty = "valid" if age_days <= WARRANTY_DAYS else "expired"
    parcel_id = parcel["parcel_id"] if parcel else ""
    what = f"{row['model']} {row['kind']}, {row['total']:.2f} EUR, warranty {warranty}"
    text = f"order {known.order_id}: status {row['status']}, {what}"
    return Answer(
        "order",
        True,
        {"order.status": row["status"], "order.warranty": warranty},
        {"order_id": known.order_id, "product": row["model"], "total": row["total"], "age_days": age_days},
        text + (f", parcel {parcel_id}." if parcel_id else "."),
        {"parcel_id": parcel_id, "sku": row["sku"]},
    )


def _refund(world: World, query: str, known: Identifiers, facts: dict[str, str]) -> Answer:
    if "order.status" not in facts:
        return _failure("refund", "order_first", "look the order up before asking for its refund.")
    order = world.row("SELECT * FROM orders WHERE order_id = ?", known.order_id)
    refund = world.row("SELECT * FROM refunds WHERE order_id = ?", known.order_id)
    decision = refund["state"] if refund else _refund_check(order)
    amount = f"amount {order['total']:.2f} EUR, limit {REFUND_LIMIT:.0f} EUR"
    text = f"refund for order {known.order_id}: {decision}, {amount}."
    details = {"order_id": known.order_id, "amount": order["total"], "limit": REFUND_LIMIT}
    return Answer("refund", True, {"refund.decision": decision}, details, text)


def _refund_check(order: dict[str, Any]) -> str:
    if order["status"] not in ("delivered", "cancelled"):
        return "not_delivered"
    if (TODAY - TODAY.fromisoformat(order["placed_on"])).days > REFUND_WINDOW_DAYS:
        return "window_closed"
    return "over_limit" if order["total"] > REFUND_LIMIT else "eligible"


def _customer(world: World, query: str, known: Identifiers, facts: dict[str, str]) -> Answer:
    identity = facts.get("auth.identity")
    if identity != "verified":
        reason = "identity_mismatch" if identity else "identity_first"
        return _failure("customer", reason, "account data needs a verified identity.")
    row = world.row("SELECT * FROM customers WHERE email = ?", known.email)
    recent = world.rows(
        "SELECT order_id FROM orders WHERE customer_id = ? AND julianday(?) - julianday(placed_on) < 60",
        row["customer_id"],
        str(TODAY),
    )
    invoice = _invoice(world, row["customer_id"], known)
    state = {
        "status": row["status"],
        "profile": row["profile"],
        "balance": "due" if row["balance"] else "clear",
        "recovery": row["recovery"],
        "changes": "recent" if row["changed_days"] < 7 else "none",
        "recent_orders": ("none", "one", "many")[min(len(recent), 2)],
        "invoice": invoice["state"] if invoice else "not_found",
    }
    only_order = recent[0]["order_id"] if len(recent) == 1 else ""
    found = {"order_id": invoice["order_id"] if invoice and known.invoice_id else only_order}
    text = "account: " + ", ".join(f"{name} {value}" for name, value in state.items()) + "."
    details = {"balance_due": row["balance"], "points": row["points"]}
    return Answer("customer", True, {f"customer.{k}": v for k, v in state.items()}, details, text, found)


def _invoice(world: World, customer_id: int, known: Identifiers) -> dict[str, Any] | None:
    """The invoice meant: by its number, by the order's number, else the customer's newest one."""
    sql = "SELECT i.* FROM invoices i JOIN orders USING (order_id) WHERE i.customer_id = ? "
    if known.invoice_id:
        return world.row(sql + "AND invoice_id = ?", customer_id, known.invoice_id)
    if known.order_id:
        return world.row(sql + "AND order_id = ?", customer_id, known.order_id)
    return world.row(sql + "ORDER BY placed_on DESC, order_id DESC LIMIT 1", customer_id)


def _auth(world: World, query: str, known: Identifiers, facts: dict[str, str]) -> Answer:
    if not known.email:
        return _failure("auth", "missing_email", "no e-mail address in the message.")
    row = world.row("SELECT customer_id FROM customers WHERE email = ?", known.email)
    if row is None:
        return _failure("auth", "unknown_email", f"no account uses {known.email}.")
    events = [
        e["kind"]
        for e in world.rows("SELECT kind FROM auth_events WHERE customer_id = ?", row["customer_id"])
    ]
    identity = "mismatch" if "identity_failed" in events else "verified"
    login = next((kind for kind in ("sso_error", "code_desync") if kind in events), "ok")
    if events.count("login_failed") >= 5:
        login = "locked"
    if "login_new_country" in events:
        login = "suspicious"
    text = f"sign-in check: identity {identity}, login {login}."
    return Answer(
        "auth", True, {"auth.identity": identity, "auth.login": login}, {"email": known.email}, text
    )


def _logistics(world: World, query: str, known: Identifiers, facts: dict[str, str]) -> Answer:
    if not known.parcel_id:
        return _failure("logistics", "missing_tracking", "no tracking number known yet.")
    row = world.row("SELECT * FROM shipments WHERE parcel_id = ?", known.parcel_id)
    if row is None:
        return _failure("logistics", "tracking_not_found", f"no parcel {known.parcel_id}.")
    details = {"parcel_id": known.parcel_id, "carrier": row["carrier"], "last_scan_days": row["scan_days"]}
    scan = f"last scan {row['scan_days']} days ago"
    text = f"parcel {known.parcel_id} ({row['carrier']}): {row['status']}, {scan}."
    return Answer(
        "logistics", True, {"logistics.status": row["status"]}, details, text, {"order_id": row["order_id"]}
    )


def _inventory(world: World, query: str, known: Identifiers, facts: dict[str, str]) -> Answer:
    row = world.row("SELECT * FROM products WHERE sku = ?", known.sku) if known.sku else None
    if row is None:
        return _failure("inventory", "missing_product", "no product of our range in the message.")
    state = {"inventory.lifecycle": row["lifecycle"], "inventory.stock": row["stock"]}
    details = {
        "sku": known.sku,
        "model": row["model"],
        "units": row["units"],
        "restock_on": row["restock_on"],
    }
    units = f"{row['units']} units" + (f", restock {row['restock_on']}" if row["restock_on"] else "")
    text = f"{row['model']} {row['kind']}: {row['lifecycle']}, stock {row['stock']} ({units})."
    return Answer("inventory", True, state, details, text)


def _knowledge(world: World, query: str, known: Identifiers, facts: dict[str, str]) -> Answer:
    article = search_articles(world, query, known.fault)
    if article:
        text = f"article {article['article_id']} ({article['kind']}): {article['title']}."
        details = {"article": article["article_id"], "title": article["title"]}
        return Answer("knowledge", True, {"knowledge.match": article["kind"]}, details, text)
    match = "no_match" if known.fault or known.sku else "details_needed"
    reason = "the fault is not described" if match == "no_match" else "neither product nor symptom is named"
    return Answer("knowledge", True, {"knowledge.match": match}, {}, f"knowledge base: {match}, {reason}.")


def search_articles(world: World, query: str, fault: str) -> dict[str, Any] | None:
    """Find the article for a message: by its fault code, else by the most keywords (first on a tie)."""
    rows = world.rows("SELECT * FROM articles ORDER BY article_id")
    if fault:
        return next((row for row in rows if row["keywords"] == fault), None)
    plain = normalise(query)

    def score(row: dict[str, Any]) -> int:
        keys = _keyword_groups(row["keywords"])
        return sum(all(word in plain for word in key) for key in keys if key[0] in plain)

    best = max(rows, key=score)
    return best if score(best) else None


@lru_cache(maxsize=256)
def _keyword_groups(keywords: str) -> tuple[tuple[str, ...], ...]:
    """Words that must all occur, per group: `a, b+c` means a, or b and c."""
    return tuple(tuple(key.split("+")) for key in keywords.split(", "))


_CALLS = dict(
    zip(SERVICES, (_order, _refund, _customer, _auth, _logistics, _inventory, _knowledge), strict=True)
)
