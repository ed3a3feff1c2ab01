"""Shared code of the RL-CAS course: two service desks, and the agents trained on them."""

import warnings

__version__ = "0.1.0"

# Libraries say this about each other; a reader of a notebook can do nothing about it.
warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning)
