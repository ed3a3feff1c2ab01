"""Language models of the course: load, adapt, fine-tune, merge, describe, and let them play at the desk.

``import rlcas_utils.language`` itself is light; each name loads its module when it is first used, because
transformers, peft and bitsandbytes take seconds to import.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "LanguageModelError": "errors",
    "attach_lora": "lora",
    "build_rows": "sft",
    "check_row": "sft",
    "compact_lm_head": "cpu",
    "compare": "merge",
    "count_parameters": "lora",
    "decision_points": "merge",
    "disable_bnb_cpu_packing": "cpu",
    "display_name": "sources",
    "evaluate_on_desk": "desk_agent",
    "failures_by_reason": "desk_agent",
    "answer_logits": "merge",
    "greedy_actions": "merge",
    "load_adapter": "lora",
    "load_model": "loader",
    "load_tokenizer": "loader",
    "make_sft_trainer": "sft",
    "merge_adapter": "merge",
    "precision": "precision",
    "require_agreement": "merge",
    "save_merged": "merge",
    "throughput": "sft",
    "token_row": "sft",
    "train_or_resume": "sft",
    "write_card": "card",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
