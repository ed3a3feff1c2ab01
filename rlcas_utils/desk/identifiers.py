"""Finds what a customer mentions: order, parcel and invoice numbers, e-mail, product, fault code.

Services call this themselves, so an action needs no arguments: what the customer wrote (and what earlier
calls revealed) says which record is meant.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace

_EMAIL = re.compile(r"[a-z0-9._+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+")
_PARCEL = re.compile(r"\bpx[ -]?(\d{8})\b")
_INVOICE = re.compile(r"\binv[ -]?(\d{5})\b")
_ORDER = re.compile(r"(?<![\d@.+-])(\d{3})[ -]?(\d{3})(?![\d@-])")
_FAULT = re.compile(r"\b([ef])[ -]?(\d{2})\b")


@dataclass(frozen=True, slots=True)
class Identifiers:
    """What is known about the records a ticket refers to; empty string means not known."""

    order_id: str = ""
    email: str = ""
    parcel_id: str = ""
    invoice_id: str = ""
    sku: str = ""
    fault: str = ""

    def merged(self, **found: str) -> Identifiers:
        """Return a copy with every still unknown field filled from `found`."""
        fresh = {name: value for name, value in found.items() if value and not getattr(self, name)}
        return replace(self, **fresh) if fresh else self


def normalise(text: str) -> str:
    """Lower-case text with compatibility forms, odd dashes, quotes and zero-width marks made plain."""
    text = unicodedata.normalize("NFKC", text).lower()
    text = re.sub(r"[\u200b-\u200f\u2060\ufeff\u00ad]", "", text)
    text = re.sub(r"[\u2010-\u2015\u2212]", "-", text)
    return text.replace("\u2019", "'").replace("\u2018", "'")


def extract(text: str, models: dict[str, str]) -> Identifiers:
    """Read the identifiers out of a customer's message.

    Args:
        text: The message as written.
        models: Lower-case model word of every product to its article number (sku).

    Returns:
        The first identifier of each kind; e-mail addresses are removed before numbers are read.
    """
    plain = normalise(text)
    email = _EMAIL.search(plain)
    rest = _EMAIL.sub(" ", plain)
    parcel, invoice = _PARCEL.search(rest), _INVOICE.search(rest)
    order = _ORDER.search(_INVOICE.sub(" ", _PARCEL.sub(" ", rest)))
    fault = _FAULT.search(rest)
    skus = [models[word] for word in re.findall(r"[a-z]+", rest) if word in models]
    return Identifiers(
        order_id="".join(order.groups()) if order else "",
        email=email.group().rstrip(".") if email else "",
        parcel_id=f"PX{parcel.group(1)}" if parcel else "",
        invoice_id=f"INV-{invoice.group(1)}" if invoice else "",
        sku=skus[0] if skus else "",
        fault="".join(fault.groups()) if fault else "",
    )
