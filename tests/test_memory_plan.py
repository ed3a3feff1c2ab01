"""The memory plan: by hand, by PyTorch's own count on fake tensors, and refused with the value to change."""

import dataclasses

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, AutoModelForCausalLM

from rlcas_utils import memory_plan, memory_tables
from rlcas_utils.architectures import CONFIGS, sizes
from rlcas_utils.config import ConfigError, load_profile
from rlcas_utils.run import command
from rlcas_utils.run.plan import make_plan
from rlcas_utils.run.preflight import memory_findings

QWEN25, QWEN3 = CONFIGS
GIB = 2**30


def plan(profile, tmp_path, *settings):
    return memory_plan.plan_memory(make_plan(load_profile(profile), tmp_path, settings))


class PeakBytes(TorchDispatchMode):
    """Most bytes that the results of operations held at once; tensors that were there before do not count."""

    def __init__(self, before):
        super().__init__()
        self.before = {t.untyped_storage()._cdata for t in before}
        self.held, self.peak = [], 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.held = [item for item in self.held if not item[0].expired()]
        known = self.before | {ref.cdata for ref, _ in self.held}
        for tensor in (leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)):
            storage = tensor.untyped_storage()
            if storage._cdata not in known:
                self.held.append((StorageWeakRef(storage), storage.nbytes()))
                known.add(storage._cdata)
        self.peak = max(self.peak, sum(size for _, size in self.held))
        return out


class Adapted(nn.Module):
    """LoRA written out: a frozen layer and two float32 factors."""

    def __init__(self, base, rank=16):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, rank, bias=False, dtype=torch.float32)
        self.up = nn.Linear(rank, base.out_features, bias=False, dtype=torch.float32)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x.float())) * 2.0


def adapt(module):
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear) and name != "lm_head":
            setattr(module, name, Adapted(child))
        else:
            adapt(child)


def counted_gib(config, layers, tokens, checkpointing):
    """Peak of a forward and backward pass through a few layers, on tensors that hold nothing."""
    short = AutoConfig.for_model(**{**config, "num_hidden_layers": layers, "vocab_size": 64})
    with FakeTensorMode():
        model = AutoModelForCausalLM.from_config(short, dtype=torch.bfloat16).requires_grad_(False)
        adapt(model)
        model.train()
        if checkpointing:
            model.enable_input_require_grads()
            model.gradient_checkpointing_enable({"use_reentrant": False})
        ids = torch.zeros((1, tokens), dtype=torch.long)
        with PeakBytes(model.parameters()) as counter, torch.autocast("cpu", dtype=torch.bfloat16):
            model.model(input_ids=ids, use_cache=False).last_hidden_state.float().sum().backward()
    return counter.peak / GIB


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("checkpointing", [True, False])
def test_activations_are_what_fake_tensors_count(name, checkpointing):
    """Case 23: the estimate is checked against PyTorch's own shapes, without a GPU."""
    model = dataclasses.replace(sizes(CONFIGS[name]), layers=4)
    planned = memory_plan.training_activations(model, 2048, checkpointing)
    counted = counted_gib(CONFIGS[name], 4, 2048, checkpointing)
    assert 0.9 < planned / counted < 1.3, f"planned {planned:.3f} GiB, counted {counted:.3f} GiB"


@pytest.mark.parametrize(("name", "billions"), [(QWEN25, 3.09), (QWEN3, 4.02)])
def test_the_sizes_give_the_published_number_of_parameters(name, billions):
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**CONFIGS[name]))
    exact = sum(p.numel() for p in model.parameters())
    own = sizes(CONFIGS[name])
    assert round(exact / 1e9, 2) == billions
    assert (own.num_linear + own.num_embedding) == pytest.approx(exact, rel=1e-3)  # all but norms and biases
    factors = [m for m in model.modules() if isinstance(m, nn.Linear)][:-1]
    assert own.num_adapter(16) == 16 * sum(m.in_features + m.out_features for m in factors)


def test_cache_by_hand():
    """One token of Qwen3-4B: keys and values of 8 heads x 128 in 36 layers, 2 bytes each = 147,456 bytes."""
    assert memory_plan.cache_gib(sizes(CONFIGS[QWEN3]), 1, 1) * GIB == 147_456
    assert memory_plan.cache_gib(sizes(CONFIGS[QWEN25]), 2, 10) * GIB == 2 * 10 * 36_864


@pytest.mark.parametrize("profile", ["a10g", "multi_gpu"])
def test_the_large_profiles_fit_their_card(profile, tmp_path):
    moments = plan(profile, tmp_path)
    assert {m.name[:2] for m in moments} == {"04", "05", "06"}
    assert all(m.total < memory_plan.LIMIT_GIB for m in moments), memory_tables.memory_table(moments)


@pytest.mark.parametrize(
    ("setting", "moment", "knob"),
    [
        ("06.MAX_BATCH=16", "06 playing", "Lower MAX_BATCH"),
        ("04.CHECKPOINTING=false", "04 training", "Set CHECKPOINTING to true"),
        ("04.BATCH_SIZE=64", "04 training", "Lower BATCH_SIZE"),
        ("05.EPISODES_PER_PASS=48", "05 training", "Lower EPISODES_PER_PASS"),
        ("06.MAX_EPISODE_TOKENS=60000", "06 training", "Lower MAX_EPISODE_TOKENS"),
        ("06.SFT_STEPS=10", "06 SFT", "Set SFT_STEPS to 0"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_value_to_change(setting, moment, knob, tmp_path):
    settings = [setting, "04.BATCH_SIZE=16"] if "CHECKPOINTING" in setting else [setting]
    stages = make_plan(load_profile("a10g"), tmp_path, settings)
    refused = [str(f) for f in memory_findings(stages) if not f.ok]
    assert any(line.startswith(f"NO  {moment}") and knob in line for line in refused), refused


def test_the_table_of_a_notebook_by_hand():
    """r 16 on every linear layer of Qwen2.5-3B: 29.9 million numbers, two moments of 4 bytes each."""
    frame = memory_tables.memory_frame("04_qlora_sft")
    assert list(frame.index) == ["04 training", "04 playing", "04 merging"]
    assert frame.loc["04 training", "optimizer"] == pytest.approx(29_933_568 * 8 / GIB)
    assert frame["sum"].tolist() == pytest.approx(frame.drop(columns="sum").sum(axis=1).tolist())
    larger = memory_tables.memory_frame("04_qlora_sft", BATCH_SIZE=8)
    ratio = larger.loc["04 training", "activations"] / frame.loc["04 training", "activations"]
    assert ratio == pytest.approx(2)  # all of them grow with the tokens of a pass


def test_the_table_refuses_what_it_does_not_know():
    with pytest.raises(ConfigError, match=r"has no parameter BATCHSIZE. Did you mean BATCH_SIZE"):
        memory_tables.memory_frame("04_qlora_sft", BATCHSIZE=8)
    with pytest.raises(ConfigError, match=r"'smollm2-135m' has no memory plan.*Choose profile a10g"):
        memory_tables.memory_frame("05_grpo", "cpu")


def test_small_models_have_no_plan(tmp_path):
    assert plan("cpu", tmp_path) == []


@pytest.mark.parametrize("profile", ["a10g", "multi_gpu"])
def test_check_prints_the_plan(profile, capsys, tmp_path):
    command.main(["--check", "--profile", profile, "--runs-dir", str(tmp_path / "runs")])
    printed = capsys.readouterr().out
    assert "KV cache" in printed
    assert "06 playing" in printed
    assert "ok  06 training:" in printed
