"""Shared code of the RL-CAS course: a customer-service desk, a telecom desk, and the agents trained on them."""

__version__ = "0.1.0"
