"""Entry point of `python -m rlcas_utils.run`."""

import sys

from rlcas_utils.run.command import main

sys.exit(main())
