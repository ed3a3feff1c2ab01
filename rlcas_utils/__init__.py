"""Shared code of the RL-CAS course: a customer-service desk, a telecom desk, and the agents trained on them."""

import warnings

__version__ = "0.1.0"

# Libraries say these about each other at import; a reader of a notebook can do nothing about them.
warnings.filterwarnings("ignore", message="IProgress not found")
warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning)
