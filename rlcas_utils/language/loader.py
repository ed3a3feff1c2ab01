"""One way to load every language model of the course: tiny, SmolLM2, a folder or a hub id, NF4 or not."""

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig
from transformers.utils import logging as transformers_logging

from rlcas_utils.language.cpu import disable_bnb_cpu_packing
from rlcas_utils.language.errors import LanguageModelError
from rlcas_utils.language.precision import device_capability, precision, weights_gib
from rlcas_utils.language.sources import resolve_source
from rlcas_utils.rollouts import render_prompt, turn_suffix

PAD_TOKEN = "<|endoftext|>"
HEADROOM = 1.2  # memory asked for over the weights, for what loading itself needs

_EXCHANGE = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "Bye"},
]


def load_tokenizer(source: str | Path) -> Any:
    """Load a tokenizer whose padding differs from its turn end and whose chat template is plain ChatML.

    Args:
        source: As for ``load_model``.

    Raises:
        LanguageModelError: It cannot be loaded, has no padding token, or speaks another chat format.
    """
    location = resolve_source(source)
    tokenizer = _from_pretrained(AutoTokenizer, location, source)
    if tokenizer.pad_token is None or tokenizer.pad_token_id == tokenizer.eos_token_id:
        if PAD_TOKEN not in tokenizer.get_vocab():
            raise LanguageModelError(
                f"{source}: padding is the token that ends a turn, and there is no {PAD_TOKEN} to use "
                "instead; the model would never learn to stop. Add a padding token to the tokenizer."
            )
        tokenizer.pad_token = PAD_TOKEN
    check_chat_template(tokenizer, str(source))
    return tokenizer


def check_chat_template(tokenizer: Any, name: str) -> None:
    """Check that rendering a whole chat equals putting it together turn by turn, as rollouts do.

    Raises:
        LanguageModelError: They differ, so training and rollout would see different contexts.
    """
    rendered = tokenizer.apply_chat_template(_EXCHANGE, add_generation_prompt=True, tokenize=False)
    opening = tokenizer.decode(render_prompt(tokenizer, _EXCHANGE[:2]), skip_special_tokens=False)
    suffix = tokenizer.decode(turn_suffix(tokenizer, "Bye"), skip_special_tokens=False)
    by_turns = f"{opening}Hi.<|im_end|>{suffix}"
    if rendered != by_turns:
        raise LanguageModelError(
            f"{name}: the chat template renders {rendered!r}, turn by turn it is {by_turns!r}; what is "
            "sampled would not be what is trained. Use a model that speaks plain ChatML (Qwen2.5, "
            "Qwen3-2507, SmolLM2)."
        )


def nf4_config(dtype: torch.dtype) -> BitsAndBytesConfig:
    """Return the 4-bit settings of QLoRA: NF4 with double quantisation.

    Args:
        dtype: Format that weights are expanded to for computing.

    Source: Dettmers et al. (2023), QLoRA, section 3.
    """
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


def load_model(
    source: str | Path,
    *,
    quantize: bool = False,
    dtype: str = "auto",
    device: str = "auto",
    for_training: bool = True,
) -> Any:
    """Load a causal language model.

    Args:
        source: ``"tiny"``, ``"smollm2-135m"``, a folder with a saved model, or a hub id.
        quantize: NF4 through bitsandbytes, on CPU and GPU alike.
        dtype: ``"float32"``, ``"bfloat16"``, ``"float16"``, or ``"auto"`` for what the device does best.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for CUDA where there is one; ``"launcher"`` leaves the
            weights in main memory, for FSDP or ZeRO-3 to split.
        for_training: The process will train. Then 4-bit layers stay on the path that has a gradient (see
            ``language.cpu``). False allows a faster path on some CPUs, for processes that only generate.

    Returns:
        The model in evaluation mode; its padding and turn-end ids are set.

    Raises:
        LanguageModelError: Hub not reachable, package missing, or not enough memory.
    """
    transformers_logging.disable_progress_bar()
    location = resolve_source(source)
    place = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    capability = None if place == "cpu" else device_capability()
    number_format = getattr(torch, precision(capability).dtype if dtype == "auto" else dtype)
    _check_memory(location, source, number_format, quantize, place)
    options: dict[str, Any] = {"dtype": number_format}
    if place != "launcher":
        options["device_map"] = {"": place}
    if quantize:
        options["quantization_config"] = nf4_config(number_format)
    model = _from_pretrained(AutoModelForCausalLM, location, source, **options)
    if quantize and for_training:
        disable_bnb_cpu_packing(model)
    _set_token_ids(model, load_tokenizer(source))
    return model.eval()


def _set_token_ids(model: Any, tokenizer: Any) -> None:
    for config in (model.config, model.generation_config):
        config.pad_token_id = tokenizer.pad_token_id
    if model.generation_config.eos_token_id is None:
        model.generation_config.eos_token_id = tokenizer.eos_token_id


def _from_pretrained(kind: Any, location: str, source: str | Path, **options: Any) -> Any:
    try:
        return kind.from_pretrained(location, **options)
    except torch.OutOfMemoryError as error:
        raise LanguageModelError(
            f"{source} does not fit the GPU: {error}. Set QUANTIZE, or a smaller model."
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a folder without a usable config
        if Path(location).is_dir():
            raise LanguageModelError(
                f"{source} holds no complete model: {error}. Delete the folder and make it again."
            ) from error
        if isinstance(error, ValueError):
            raise
        raise LanguageModelError(
            f"{source} is not on this machine and the model hub cannot be reached ({type(error).__name__}). "
            "Connect to the network once, or set MODEL to smollm2-135m, which needs none."
        ) from error


def _check_memory(location: str, source: str | Path, dtype: torch.dtype, quantize: bool, place: str) -> None:
    config = _from_pretrained(AutoConfig, location, source)
    with torch.device("meta"):
        skeleton = AutoModelForCausalLM.from_config(config)
    total = sum(p.numel() for p in skeleton.parameters())
    embedding = skeleton.get_input_embeddings().weight.numel() * (1 if config.tie_word_embeddings else 2)
    needed = weights_gib(total, embedding, dtype.itemsize, quantize) * HEADROOM
    free = _free_gib(place)
    if needed > free:
        raise LanguageModelError(
            f"{source} needs about {needed:.1f} GiB to load and {free:.1f} GiB are free on {place}; it "
            "would be killed half-way. Close other programs, set QUANTIZE to True, or choose a smaller MODEL."
        )


def _free_gib(place: str) -> float:
    if place == "cuda":
        return torch.cuda.mem_get_info()[0] / 2**30
    import psutil

    return psutil.virtual_memory().available / 2**30
