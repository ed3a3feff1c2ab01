"""A language model small enough to train in minutes on a laptop: Qwen3's architecture, its own vocabulary.

Two choices make it cheap. The architecture is Qwen3's, so every tool of the course (TRL, PEFT, the
rollout engine) treats it like the 4B model. The vocabulary is learned from the demonstrations with a
pre-tokeniser that cuts at punctuation instead of at spaces, so a frequent clause such as ``Airplane Mode:
ON;`` is one token: episodes become about three times shorter, and a fact is one symbol. The price is said
openly: the model knows this domain's wording and nothing else. Unseen text falls back to smaller pieces,
down to bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, set_seed

PAD = "<|endoftext|>"
TURN_END = "<|im_end|>"
CONTROL_TOKENS = (PAD, "<|im_start|>", TURN_END)
# Like in Qwen3's vocabulary these are single tokens but ordinary text: decoding keeps them.
TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
VOCABULARY = 3000  # more than the demonstrations have clauses that occur often enough to be learned
# A piece is a clause with its closing punctuation, or a run of line breaks. BPE merges inside pieces only.
_CLAUSES = r"[^\n.?!;|,]+[.?!;|,]* ?|[.?!;|,]+ ?|\n+"
_UNBROKEN = re.compile("|".join(re.escape(token) for token in CONTROL_TOKENS + TAGS))

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def train_tokenizer(
    texts: Iterable[str], vocab_size: int = VOCABULARY, *, min_frequency: int = 10
) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE vocabulary of clauses.

    Args:
        texts: ChatML episodes (demonstrations of the train split only).
        vocab_size: Upper bound on the number of tokens; the 256 bytes, control tokens and tags count.
        min_frequency: A merge seen less often is not learned, so that no token is too rare to be trained.

    Returns:
        A tokenizer with ChatML template, ``<|im_end|>`` as end of turn and another token as padding.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_CLAUSES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(TAGS),
        min_frequency=min_frequency,
        special_tokens=list(CONTROL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    # Control tokens and tags are cut out first: merges across them would be learned and never apply later.
    parts = (part for text in texts for part in _UNBROKEN.split(text) if part)
    tokenizer.train_from_iterator(parts, trainer)
    tokenizer.add_tokens([AddedToken(tag, normalized=False) for tag in TAGS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=TURN_END,
        pad_token=PAD,
        additional_special_tokens=["<|im_start|>"],
        chat_template=CHAT_TEMPLATE,
        padding_side="right",
    )


def build_model(
    tokenizer: PreTrainedTokenizerFast,
    *,
    hidden_size: int,
    num_layers: int,
    num_heads: int,
    num_kv_heads: int,
    max_tokens: int = 8192,
    seed: int = 0,
) -> Qwen3ForCausalLM:
    """A Qwen3 model with random weights.

    Args:
        tokenizer: Fixes the vocabulary and the special token ids.
        hidden_size: Width; the MLP is three times as wide, as in Qwen3.
        num_layers: Depth. Copying a fact from earlier in the episode needs at least two.
        num_heads: Attention heads of 32 dimensions each.
        num_kv_heads: Key/value heads; fewer make the cache of a batch smaller.
        max_tokens: Longest episode.
        seed: Of the initial weights.
    """
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=hidden_size,
        num_hidden_layers=num_layers,
        num_attention_heads=num_heads,
        num_key_value_heads=num_kv_heads,
        head_dim=32,
        intermediate_size=3 * hidden_size,
        max_position_embeddings=max_tokens,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    set_seed(seed)
    return Qwen3ForCausalLM(config)


def load_small_tokenizer(folder: str) -> PreTrainedTokenizerFast:
    """Load a tokenizer saved with `save_pretrained`, unchanged.

    `AutoTokenizer` would see ``qwen3`` in the folder's config and put Qwen's own pre-tokeniser in place
    of the clauses, which silently changes every id.
    """
    return PreTrainedTokenizerFast.from_pretrained(folder)


def count_parameters(model: Qwen3ForCausalLM) -> int:
    """Number of weights, shared ones once."""
    return sum(parameter.numel() for parameter in model.parameters())
