"""The scripted customer: language understanding, wording and behaviour."""

from rlcas_utils.telecom.customer.behaviour import ScriptedCustomer
from rlcas_utils.telecom.customer.requests import Request
from rlcas_utils.telecom.customer.understanding import understand

__all__ = ["Request", "ScriptedCustomer", "understand"]
