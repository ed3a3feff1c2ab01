"""Language models of the course: load, adapt, fine-tune, merge, describe, and let them play at the desk."""

from rlcas_utils.language.card import write_card
from rlcas_utils.language.cpu import compact_lm_head, disable_bnb_cpu_packing
from rlcas_utils.language.desk_agent import evaluate_on_desk, every_fifth, failures_by_reason
from rlcas_utils.language.embedding import mean_embeddings
from rlcas_utils.language.errors import LanguageModelError
from rlcas_utils.language.loader import load_model, load_tokenizer
from rlcas_utils.language.lora import attach_lora, count_parameters, load_adapter, train_in_float32
from rlcas_utils.language.merge import Agreement, compare, merge_adapter, require_agreement, save_merged
from rlcas_utils.language.precision import precision
from rlcas_utils.language.probing import answer_logits, decision_points, greedy_actions, greedy_texts
from rlcas_utils.language.sft import (
    IGNORED,
    build_rows,
    check_row,
    make_sft_trainer,
    token_row,
    train_or_resume,
)
from rlcas_utils.language.sft_log import curves, throughput
from rlcas_utils.language.sources import display_name

__all__ = [
    "IGNORED",
    "Agreement",
    "LanguageModelError",
    "answer_logits",
    "attach_lora",
    "build_rows",
    "check_row",
    "compact_lm_head",
    "compare",
    "count_parameters",
    "curves",
    "decision_points",
    "disable_bnb_cpu_packing",
    "display_name",
    "evaluate_on_desk",
    "every_fifth",
    "failures_by_reason",
    "greedy_actions",
    "greedy_texts",
    "load_adapter",
    "load_model",
    "load_tokenizer",
    "make_sft_trainer",
    "mean_embeddings",
    "merge_adapter",
    "precision",
    "require_agreement",
    "save_merged",
    "throughput",
    "token_row",
    "train_in_float32",
    "train_or_resume",
    "write_card",
]
