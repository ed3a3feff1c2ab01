"""The handbook's trees about orders: status, changes, money back, parcels, damage, exchange.

They share their entrance: the order is looked up by its number, or through the customer's account when the
message has an e-mail address only.
"""

from __future__ import annotations

from rlcas_utils.desk.handbook import Ask, Choice, End

Branches = dict[str, Ask | End]


def find_order(then: Branches) -> Choice:
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
    return Choice("order_id", order, Choice("email", sign_in({"*": account}), order))


def sign_in(then: Branches) -> Ask:
    """Check the customer's identity, then go on with `then`."""
    return Ask(
        "auth",
        {
            "error=missing_email": End("ask", "no_email"),
            "error=unknown_email": End("ask", "unknown_email"),
            "identity=mismatch": End("human", "identity_mismatch"),
            **then,
        },
    )


PARCEL: Branches = {
    "status=in_transit|delayed|out_for_delivery": End("resolve", "on_its_way"),
    "status=lost": End("human", "lost_parcel"),
    "status=customs": End("ask", "customs_papers"),
    "status=address_problem": End("ask", "address_needed"),
    "status=delivered_signed": End("resolve", "signed_for"),
    "status=delivered_unsigned": End("human", "no_signature"),
    "status=damaged": End("human", "damaged_on_the_way"),
    "error=tracking_not_found": End("ask", "wrong_tracking_number"),
}

HELD: Branches = {
    "status=hold_payment": End("billing", "payment_hold"),
    "status=hold_fraud": End("human", "fraud_hold"),
}

MONEY_BACK: Branches = {
    "decision=eligible": End("resolve", "refund_granted"),
    "decision=over_limit": End("billing", "over_limit"),
    "decision=window_closed": End("resolve", "window_closed"),
    "decision=not_delivered": End("resolve", "not_delivered_yet"),
    "decision=pending|paid": End("resolve", "already_refunded"),
    "decision=payout_failed": End("billing", "payout_failed"),
    "decision=return_missing": End("ask", "return_receipt_needed"),
    "decision=fraud_flag": End("human", "fraud_flag"),
    "decision=identity_check": sign_in({"*": End("resolve", "identity_confirmed")}),
}

STATUS = find_order(
    {
        "status=processing": End("resolve", "in_preparation"),
        **HELD,
        "status=backordered": Ask(
            "inventory",
            {
                "lifecycle=recalled": End("human", "backorder_recalled"),
                "lifecycle=discontinued|replaced": End("billing", "backorder_discontinued"),
                "stock=count_error": End("technical", "stock_record_broken"),
                "*": End("resolve", "backorder_explained"),
            },
        ),
        "status=shipped|delivered": Ask("logistics", PARCEL),
        "status=cancelled": Ask("refund", MONEY_BACK),
    }
)

CHANGE = find_order(
    {
        "status=processing|backordered": End("resolve", "changed_in_time"),
        **HELD,
        "status=shipped": Ask(
            "logistics",
            {
                "status=in_transit|delayed": End("human", "intercept_parcel"),
                "status=out_for_delivery": End("resolve", "too_late_to_change"),
                **PARCEL,
            },
        ),
        "status=delivered": End("resolve", "already_delivered"),
        "status=cancelled": End("resolve", "already_cancelled"),
    }
)

REFUND = find_order(
    {
        "status=processing|backordered": End("resolve", "cancel_instead"),
        **HELD,
        "status=shipped": Ask("logistics", PARCEL),
        "status=delivered|cancelled": Ask("refund", MONEY_BACK),
    }
)


def find_parcel(then: Branches) -> Choice:
    """Trace the parcel by its own number, or by its order's."""
    parcel = Ask("logistics", then)
    by_order = find_order(
        {
            "status=shipped|delivered": parcel,
            "status=processing|backordered": End("resolve", "not_sent_yet"),
            **HELD,
            "status=cancelled": End("resolve", "never_sent"),
        }
    )
    return Choice("parcel_id", parcel, by_order)


DAMAGED = find_order(
    {
        "status=delivered": Ask(
            "logistics",
            {"status=damaged": Ask("refund", MONEY_BACK), "*": End("ask", "photos_needed")},
        ),
        "status=shipped": Ask("logistics", PARCEL),
        "*": End("ask", "photos_needed"),
    }
)

EXCHANGE = find_order(
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
        **HELD,
        "*": End("resolve", "exchange_after_arrival"),
    }
)
