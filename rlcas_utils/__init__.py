"""Shared code of the RL-CAS course: two service desks, and the agents trained on them."""

import logging
import warnings

__version__ = "0.1.0"

# Libraries say these about each other; a reader of a notebook can do nothing about them.
warnings.filterwarnings("ignore", message="`is_gradient_checkpointing` is deprecated", category=FutureWarning)
logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)  # it has a kernel of its own
