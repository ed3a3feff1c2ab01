"""What a service can say: every fact by name, failures an agent causes itself, the form of an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FACTS: tuple[str, ...] = tuple(
    f"{name}={value}"
    for name, values in {
        "order.error": "missing_order_number order_not_found",
        "order.status": "processing hold_payment hold_fraud backordered shipped delivered cancelled",
        "order.warranty": "valid expired",
        "refund.error": "order_first",
        "refund.decision": "eligible over_limit window_closed not_delivered pending paid payout_failed "
        "return_missing fraud_flag identity_check",
        "customer.error": "identity_first identity_mismatch",
        "customer.status": "active closed",
        "customer.profile": "ok duplicate sync_error",
        "customer.balance": "clear due",
        "customer.recovery": "on_file none",
        "customer.changes": "recent none",
        "customer.recent_orders": "none one many",
        "customer.invoice": "clear open overdue duplicate generation_error not_found",
        "auth.error": "missing_email unknown_email",
        "auth.identity": "verified mismatch",
        "auth.login": "ok locked suspicious sso_error code_desync",
        "logistics.error": "missing_tracking tracking_not_found",
        "logistics.status": "in_transit delayed out_for_delivery lost customs address_problem "
        "delivered_signed delivered_unsigned damaged",
        "inventory.error": "missing_product",
        "inventory.lifecycle": "current replaced discontinued recalled",
        "inventory.stock": "in_stock restock_dated none_planned count_error",
        "knowledge.match": "how_to known_fix no_fix outage hardware_defect safety_check "
        "no_match details_needed",
    }.items()
    for value in values.split()
)
"""Every fact a service can reveal, as `service.name=value`; what the vector observation flags."""

PREREQUISITE_ERRORS = frozenset({"order_first", "identity_first", "identity_mismatch"})
"""Failures the agent causes by calling too early; the other failures are facts about the ticket."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call returns.

    Attributes:
        service: Short service name.
        ok: False for a typed failure.
        facts: Deciding facts, `name` (with service prefix) to value.
        details: Further small JSON values for the reader.
        text: One line for language models, at most about 40 tokens.
        found: Identifiers that this answer reveals to later calls.
    """

    service: str
    ok: bool
    facts: dict[str, str]
    details: dict[str, Any]
    text: str
    found: dict[str, str] = field(default_factory=dict)

    def result(self) -> dict[str, Any]:
        """Return the small JSON object: service, ok, facts without prefix, details."""
        facts = {name.partition(".")[2]: value for name, value in self.facts.items()}
        return {"service": self.service, "ok": self.ok, **facts, **self.details}
