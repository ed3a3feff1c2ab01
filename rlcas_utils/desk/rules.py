"""The handbook's content: one tree per intent, and the category each intent belongs to.

Trees of one category share most of their wording in customers' mouths; the facts decide. Scenario names are
the leaves' names, prefixed by the intent when a ticket is made.
"""

from __future__ import annotations

from rlcas_utils.desk.handbook import Ask, End, Node
from rlcas_utils.desk.rules_orders import (
    CHANGE,
    DAMAGED,
    EXCHANGE,
    PARCEL,
    REFUND,
    STATUS,
    Branches,
    find_order,
    find_parcel,
    sign_in,
)

_PROFILE: Branches = {
    "status=closed": End("human", "closed_account"),
    "profile=duplicate|sync_error": End("technical", "profile_broken"),
}

_UPDATE = sign_in({"*": Ask("customer", {**_PROFILE, "*": End("resolve", "profile_updated")})})

_CLOSE = sign_in(
    {
        "*": Ask(
            "customer",
            {
                **_PROFILE,
                "balance=due": End("billing", "balance_due"),
                "*": End("resolve", "account_closed"),
            },
        )
    }
)

_RECOVER = Ask(
    "customer",
    {"recovery=on_file": End("resolve", "recovered"), "recovery=none": End("human", "no_recovery_contact")},
)

_LOGIN = sign_in(
    {
        "login=suspicious": End("human", "foreign_sign_in"),
        "login=sso_error|code_desync": End("technical", "sign_in_fault"),
        "login=locked": _RECOVER,
        "login=ok": Ask("knowledge", {"*": End("resolve", "guided_sign_in")}),
    }
)

_SECOND_FACTOR = sign_in(
    {
        "login=suspicious": End("human", "foreign_sign_in"),
        "login=sso_error|code_desync": End("technical", "sign_in_fault"),
        "*": _RECOVER,
    }
)

_HACKED = sign_in(
    {
        "login=suspicious": End("human", "foreign_sign_in"),
        "*": Ask(
            "customer",
            {
                "changes=recent": End("human", "details_changed"),
                "changes=none": End("resolve", "nothing_changed"),
            },
        ),
    }
)


_STOCK = Ask(
    "inventory",
    {
        "error=missing_product": End("ask", "which_product"),
        "lifecycle=recalled": End("human", "recalled_product"),
        "lifecycle=replaced|discontinued": End("resolve", "no_longer_sold"),
        "stock=count_error": End("technical", "stock_record_broken"),
        "stock=none_planned": End("human", "no_restock_date"),
        "*": End("resolve", "stock_told"),
    },
)

_PRODUCT = Ask(
    "inventory",
    {
        "error=missing_product": End("ask", "which_product"),
        "lifecycle=recalled": End("human", "recalled_product"),
        "*": Ask(
            "knowledge",
            {"match=how_to": End("resolve", "product_explained"), "*": End("technical", "not_documented")},
        ),
    },
)

_INVOICE: Branches = {
    "status=closed": End("human", "closed_account"),
    "invoice=duplicate": End("billing", "charged_twice"),
    "invoice=overdue": End("billing", "overdue_invoice"),
    "invoice=generation_error": End("technical", "invoice_not_generated"),
    "invoice=not_found": End("ask", "wrong_invoice_number"),
    "*": End("resolve", "invoice_explained"),
}

_CHARGE = sign_in({"*": Ask("customer", _INVOICE)})

_UNKNOWN_CHARGE = sign_in(
    {
        "login=suspicious": End("human", "foreign_sign_in"),
        "*": Ask(
            "customer",
            {
                "invoice=clear|open": Ask(
                    "order",
                    {
                        "status=hold_fraud": End("human", "fraud_hold"),
                        "error=missing_order_number": End("ask", "which_charge"),
                        "*": End("resolve", "charge_explained"),
                    },
                ),
                **_INVOICE,
            },
        ),
    }
)

_FAULT = Ask(
    "knowledge",
    {
        "match=known_fix|how_to": End("resolve", "known_fix"),
        "match=outage": End("resolve", "known_outage"),
        "match=no_fix": End("technical", "fault_without_fix"),
        "match=no_match": End("technical", "unknown_fault"),
        "match=details_needed": End("ask", "symptom_needed"),
        "match=safety_check": Ask(
            "inventory",
            {
                "error=missing_product": End("ask", "which_product"),
                "lifecycle=recalled": End("human", "recalled_and_unsafe"),
                "*": End("technical", "unsafe_not_recalled"),
            },
        ),
        "match=hardware_defect": find_order(
            {
                "warranty=valid": End("resolve", "exchange_under_warranty"),
                "warranty=expired": End("billing", "paid_repair"),
            }
        ),
    },
)

INTENTS: dict[str, tuple[str, Node]] = {
    "order_status": ("order", STATUS),
    "order_change": ("order", CHANGE),
    "refund_request": ("refund", REFUND),
    "refund_status": ("refund", REFUND),
    "account_update": ("account", _UPDATE),
    "account_close": ("account", _CLOSE),
    "login": ("auth", _LOGIN),
    "second_factor": ("auth", _SECOND_FACTOR),
    "hacked": ("auth", _HACKED),
    "parcel": ("shipping", find_parcel(PARCEL)),
    "damaged": ("shipping", DAMAGED),
    "stock": ("inventory", _STOCK),
    "product_info": ("inventory", _PRODUCT),
    "exchange": ("inventory", EXCHANGE),
    "charge": ("billing", _CHARGE),
    "unknown_charge": ("billing", _UNKNOWN_CHARGE),
    "fault": ("technical", _FAULT),
}
"""Intent to its category and its tree."""
