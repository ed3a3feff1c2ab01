"""The handbook's content: one tree per intent, and the category each intent belongs to.

Trees of one category share most of their wording in customers' mouths; the facts decide. Scenario names are
the leaves' names, prefixed by the intent when a ticket is made.
"""

from __future__ import annotations

from rlcas_utils.desk.handbook import Ask, Choice, End, Node

Branches = dict[str, Ask | End]


def _find_order(then: Branches) -> Choice:
    """Look the order up; with an e-mail but no number, find it through the customer's account first."""
    order = Ask(
        "order",
        {
            "error=missing_order_number": End("ask", "no_order_number"),
            "error=order_not_found": End("ask", "wrong_order_number"),
            **then,
        },
    )
    account = Ask(
        "customer",
        {
            "recent_orders=many": End("ask", "which_order"),
            "recent_orders=none": End("ask", "no_recent_order"),
            "*": order,
        },
    )
    return Choice("order_id", order, Choice("email", _sign_in({"*": account}), order))


def _sign_in(then: Branches) -> Ask:
    return Ask(
        "auth",
        {
            "error=missing_email": End("ask", "no_email"),
            "error=unknown_email": End("ask", "unknown_email"),
            "identity=mismatch": End("human", "identity_mismatch"),
            **then,
        },
    )


_PARCEL: Branches = {
    "status=in_transit|delayed|out_for_delivery": End("resolve", "on_its_way"),
    "status=lost": End("human", "lost_parcel"),
    "status=customs": End("ask", "customs_papers"),
    "status=address_problem": End("ask", "address_needed"),
    "status=delivered_signed": End("resolve", "signed_for"),
    "status=delivered_unsigned": End("human", "no_signature"),
    "status=damaged": End("human", "damaged_on_the_way"),
    "error=tracking_not_found": End("ask", "wrong_tracking_number"),
}

_HELD: Branches = {
    "status=hold_payment": End("billing", "payment_hold"),
    "status=hold_fraud": End("human", "fraud_hold"),
}

_MONEY_BACK: Branches = {
    "decision=eligible": End("resolve", "refund_granted"),
    "decision=over_limit": End("billing", "over_limit"),
    "decision=window_closed": End("resolve", "window_closed"),
    "decision=not_delivered": End("resolve", "not_delivered_yet"),
    "decision=pending|paid": End("resolve", "already_refunded"),
    "decision=payout_failed": End("billing", "payout_failed"),
    "decision=return_missing": End("ask", "return_receipt_needed"),
    "decision=fraud_flag": End("human", "fraud_flag"),
    "decision=identity_check": _sign_in({"*": End("resolve", "identity_confirmed")}),
}

_STATUS = _find_order(
    {
        "status=processing": End("resolve", "in_preparation"),
        **_HELD,
        "status=backordered": Ask(
            "inventory",
            {
                "lifecycle=recalled": End("human", "backorder_recalled"),
                "lifecycle=discontinued|replaced": End("billing", "backorder_discontinued"),
                "stock=count_error": End("technical", "stock_record_broken"),
                "*": End("resolve", "backorder_explained"),
            },
        ),
        "status=shipped|delivered": Ask("logistics", _PARCEL),
        "status=cancelled": Ask("refund", _MONEY_BACK),
    }
)

_CHANGE = _find_order(
    {
        "status=processing|backordered": End("resolve", "changed_in_time"),
        **_HELD,
        "status=shipped": Ask(
            "logistics",
            {
                "status=in_transit|delayed": End("human", "intercept_parcel"),
                "status=out_for_delivery": End("resolve", "too_late_to_change"),
                **_PARCEL,
            },
        ),
        "status=delivered": End("resolve", "already_delivered"),
        "status=cancelled": End("resolve", "already_cancelled"),
    }
)

_REFUND = _find_order(
    {
        "status=processing|backordered": End("resolve", "cancel_instead"),
        **_HELD,
        "status=shipped": Ask("logistics", _PARCEL),
        "status=delivered|cancelled": Ask("refund", _MONEY_BACK),
    }
)

_PROFILE: Branches = {
    "status=closed": End("human", "closed_account"),
    "profile=duplicate|sync_error": End("technical", "profile_broken"),
}

_UPDATE = _sign_in({"*": Ask("customer", {**_PROFILE, "*": End("resolve", "profile_updated")})})

_CLOSE = _sign_in(
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

_LOGIN = _sign_in(
    {
        "login=suspicious": End("human", "foreign_sign_in"),
        "login=sso_error|code_desync": End("technical", "sign_in_fault"),
        "login=locked": _RECOVER,
        "login=ok": Ask("knowledge", {"*": End("resolve", "guided_sign_in")}),
    }
)

_SECOND_FACTOR = _sign_in(
    {
        "login=suspicious": End("human", "foreign_sign_in"),
        "login=sso_error|code_desync": End("technical", "sign_in_fault"),
        "*": _RECOVER,
    }
)

_HACKED = _sign_in(
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


def _find_parcel(then: Branches) -> Choice:
    parcel = Ask("logistics", then)
    by_order = _find_order(
        {
            "status=shipped|delivered": parcel,
            "status=processing|backordered": End("resolve", "not_sent_yet"),
            **_HELD,
            "status=cancelled": End("resolve", "never_sent"),
        }
    )
    return Choice("parcel_id", parcel, by_order)


_DAMAGED = _find_order(
    {
        "status=delivered": Ask(
            "logistics",
            {"status=damaged": Ask("refund", _MONEY_BACK), "*": End("ask", "photos_needed")},
        ),
        "status=shipped": Ask("logistics", _PARCEL),
        "*": End("ask", "photos_needed"),
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

_EXCHANGE = _find_order(
    {
        "status=processing|delivered": Ask(
            "inventory",
            {
                "lifecycle=recalled": End("human", "recalled_product"),
                "lifecycle=replaced|discontinued": End("billing", "money_instead"),
                "stock=count_error": End("technical", "stock_record_broken"),
                "stock=none_planned": End("billing", "money_instead"),
                "*": End("resolve", "exchange_arranged"),
            },
        ),
        **_HELD,
        "*": End("resolve", "exchange_after_arrival"),
    }
)

_INVOICE: Branches = {
    "status=closed": End("human", "closed_account"),
    "invoice=duplicate": End("billing", "charged_twice"),
    "invoice=overdue": End("billing", "overdue_invoice"),
    "invoice=generation_error": End("technical", "invoice_not_generated"),
    "invoice=not_found": End("ask", "wrong_invoice_number"),
    "*": End("resolve", "invoice_explained"),
}

_CHARGE = _sign_in({"*": Ask("customer", _INVOICE)})

_UNKNOWN_CHARGE = _sign_in(
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
        "match=hardware_defect": _find_order(
            {
                "warranty=valid": End("resolve", "exchange_under_warranty"),
                "warranty=expired": End("billing", "paid_repair"),
            }
        ),
    },
)

INTENTS: dict[str, tuple[str, Node]] = {
    "order_status": ("order", _STATUS),
    "order_change": ("order", _CHANGE),
    "refund_request": ("refund", _REFUND),
    "refund_status": ("refund", _REFUND),
    "account_update": ("account", _UPDATE),
    "account_close": ("account", _CLOSE),
    "login": ("auth", _LOGIN),
    "second_factor": ("auth", _SECOND_FACTOR),
    "hacked": ("auth", _HACKED),
    "parcel": ("shipping", _find_parcel(_PARCEL)),
    "damaged": ("shipping", _DAMAGED),
    "stock": ("inventory", _STOCK),
    "product_info": ("inventory", _PRODUCT),
    "exchange": ("inventory", _EXCHANGE),
    "charge": ("billing", _CHARGE),
    "unknown_charge": ("billing", _UNKNOWN_CHARGE),
    "fault": ("technical", _FAULT),
}
"""Intent to its category and its tree."""
