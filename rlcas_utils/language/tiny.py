"""A Qwen2-type model of a tenth of a million parameters with its own small vocabulary, built in a second.

It has random weights, so it knows nothing; it exists to run every line of the language-model half in seconds.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

VOCABULARY = 1024  # upper bound; a small text yields fewer merges
CONTEXT = 4096  # tokens
INITIAL_SCALE = 0.1  # standard deviation of the weights
EMBEDDING_SCALE = 0.3  # of the frozen head too: at the usual 0.02 no adapter can move the logits
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def build_tiny(target: Path, texts: Iterable[str], seed: int = 0) -> None:
    """Train a byte-level BPE on ``texts``, draw random weights, and save both as a transformers folder.

    Args:
        target: An existing empty folder.
        texts: What the vocabulary should be good at.
        seed: Of the weights.
    """
    from transformers import Qwen2Config, Qwen2ForCausalLM

    tokenizer = _train_tokenizer(texts)
    tokenizer.save_pretrained(target)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        initializer_range=INITIAL_SCALE,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(config)
        model.get_input_embeddings().weight.data.mul_(EMBEDDING_SCALE / INITIAL_SCALE)
        model.save_pretrained(target)


def _train_tokenizer(texts: Iterable[str]) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    bpe.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        unk_token="<|endoftext|>",
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
