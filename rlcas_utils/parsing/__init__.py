"""Parse what language models write: desk answers and tool calls, strict first, repair second, typed reasons.

One parser serves rollout, reward and benchmark, so that an answer counts the same everywhere. The rules
stand in ``parse_action`` and ``parse_tool_call``.
"""

from rlcas_utils.parsing.answer import Parsed, parse_action
from rlcas_utils.parsing.call import ParsedCall, parse_tool_call
from rlcas_utils.parsing.reasons import REASONS, Invalid

__all__ = ["REASONS", "Invalid", "Parsed", "ParsedCall", "parse_action", "parse_tool_call"]
