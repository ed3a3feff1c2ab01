"""What a GRPO step no longer computes: the same episodes, losses and weights come out, with less work."""

import contextlib

import pytest
import torch
import trl.trainer.utils as trl_utils
from rollout_fixtures import Scripted, make_model, make_tokenizer
from trl import GRPOConfig, SFTConfig

from rlcas_utils import grpo, language
from rlcas_utils.grpo import scoring, trainer
from rlcas_utils.rollouts import Sampling, expanded

STEPS = 2


class Talkative(Scripted):
    """Says more than the model; its return is the share of lower-case letters that it heard."""

    def __init__(self, row):
        super().__init__(f"case {row['n']}", ["go on and tell me all of it " * 3] * (row["n"] % 2 + 1))

    @property
    def score(self):
        text = "".join(self.heard)
        return sum(c.islower() for c in text) / max(1, len(text))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Folder of a tiny model whose 4-bit copy can be loaded."""
    folder, tokenizer = tmp_path_factory.mktemp("base"), make_tokenizer()
    make_model(tokenizer, "llama").save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def two_steps(base, folder, monkeypatch, rows_per_pass=2):
    """Trains; returns the log, the episodes, the trained weights and the rows that the head worked on."""
    model = language.load_model(base, quantize=True, dtype="float32", device="cpu")
    policy = language.attach_lora(model, r=4, alpha=8)
    torch.manual_seed(7)
    for name, parameter in policy.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    config = GRPOConfig(
        output_dir=str(folder),
        max_steps=STEPS,
        per_device_train_batch_size=rows_per_pass,
        gradient_accumulation_steps=8 // rows_per_pass,
        num_generations=4,
        max_completion_length=300,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        beta=0.05,
        bf16=False,
        use_cpu=True,
        activation_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=0,
    )
    sampling = Sampling(max_turn_tokens=8, max_episode_tokens=300, max_batch=8)
    rows = [{"n": n} for n in range(4)]
    trained = grpo.make_grpo_trainer(
        policy, make_tokenizer(), rows, Talkative, lambda c: c.score, config, sampling
    )
    episodes, head_rows = [], []
    play, head = trained.play, trl_utils._ChunkedLogProbFunction.forward
    monkeypatch.setattr(trained, "play", lambda r: [episodes.append(out := play(r)), out][1])
    counted = lambda ctx, hidden, *rest: head_rows.append(len(hidden)) or head(ctx, hidden, *rest)
    with monkeypatch.context() as patch:
        patch.setattr(trl_utils._ChunkedLogProbFunction, "forward", staticmethod(counted))
        trained.train()
    weights = {n: p.detach().clone() for n, p in policy.named_parameters() if p.requires_grad}
    return grpo.read_steps(folder), episodes, weights, head_rows


def undo_savings(patch):
    """As TRL and bitsandbytes do it: rows padded, all positions scored, weights expanded at every call."""
    patch.setattr(scoring, "_labelled", lambda model, spoken_BT: model)
    patch.setattr(scoring, "_rows_at_once", lambda size, device: size)
    patch.setattr(trainer, "compact_lm_head", contextlib.nullcontext)
    patch.setattr(trainer, "expanded_weights", lambda model: contextlib.nullcontext())


@pytest.mark.parametrize("rows_per_pass", [1, 2])
def test_the_same_episodes_losses_and_weights_come_out(base, tmp_path, monkeypatch, rows_per_pass):
    steps, episodes, weights, rows = two_steps(base, tmp_path / "lean", monkeypatch, rows_per_pass)
    with monkeypatch.context() as patch:
        undo_savings(patch)
        plain = two_steps(base, tmp_path / "plain", monkeypatch, rows_per_pass)
    for own, other in zip(episodes, plain[1], strict=True):
        logps, expected = ([p for row in out.pop("logprobs") for p in row] for out in (own, other))
        assert logps == pytest.approx(expected, abs=1e-5)
        assert own == other, "the same token ids, masks and returns"
    for name in ("loss", "grad_norm", "kl", "entropy", "reward", "clip_ratio/region_mean"):
        expected = [step[name] for step in plain[0]]
        assert [step[name] for step in steps] == pytest.approx(expected, rel=1e-4, abs=1e-6), name
    assert steps[-1]["kl"] > 1e-6
    for name, weight in weights.items():
        assert torch.allclose(weight, plain[2][name], atol=2e-5), name
    spoken = sum(sum(mask) for out in episodes for mask in out["env_mask"])
    said = sum(len(mask) for out in episodes for mask in out["env_mask"])
    assert spoken < said / 3, "the test must have much to leave out"
    assert sum(rows) == 2 * spoken, "each sampled token once for the policy and once for the reference"
    assert sum(plain[3]) > 2 * said


def test_the_head_meets_exactly_the_labels_of_the_policy():
    """Three tokens of prompt, then two sampled, one heard, one sampled; the second row is padded by one."""
    labels = torch.tensor([[-100, -100, -100, 11, 12, 13, 14], [-100, -100, -100, 21, 22, 23, -100]])
    spoken_BT = torch.tensor([[1, 1, 0, 1], [1, 0, 1, 0]])
    seen = scoring._labelled(lambda labels, **inputs: (labels, inputs), spoken_BT)(labels=labels, input_ids=1)
    assert seen[0].tolist() == [
        [-100, -100, -100, 11, 12, -100, 14],
        [-100, -100, -100, 21, -100, 23, -100],
    ]
    assert seen[1] == {"input_ids": 1}


def test_a_rollout_within_a_training_leaves_the_weights_expanded(base):
    model = language.load_model(base, quantize=True, dtype="float32", device="cpu")
    layer, inputs = model.model.layers[0].mlp.up_proj, torch.randn(3, 32)
    gradients = []
    for context in (expanded.expanded_weights(model), contextlib.nullcontext()):
        with context:
            leaf = inputs.clone().requires_grad_()
            layer(leaf).square().sum().backward()
            gradients.append(leaf.grad)
    assert torch.allclose(*gradients, atol=1e-5)
    with expanded.expanded_weights(model):
        outer = layer.forward
        with expanded.expanded_weights(model):
            assert layer.forward is outer
        assert layer.forward is outer
    assert "forward" not in vars(layer)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU takes these optimizers")
@pytest.mark.parametrize("optim", ["paged_adamw_8bit", "adamw_bnb_8bit"])
def test_an_optimizer_that_needs_a_gpu_is_refused_before_training(tmp_path, optim):
    common = {"output_dir": str(tmp_path), "optim": optim, "bf16": False, "use_cpu": True}
    with pytest.raises(ValueError, match=f"optim is {optim}.*no step could be taken. Leave optim out"):
        language.make_sft_trainer(None, None, SFTConfig(**common), None, None)
    config, sampling = GRPOConfig(**common), Sampling(max_turn_tokens=8, max_episode_tokens=256)
    with pytest.raises(ValueError, match=f"optim is {optim}"):
        grpo.make_grpo_trainer(None, None, [], None, None, config, sampling)
