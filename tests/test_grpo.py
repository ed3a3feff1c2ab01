"""GRPO: the arithmetic by hand, the batch rules, and the trainer on a tiny model in a live environment."""

import json
import math

import pytest
import torch
from peft import LoraConfig, get_peft_model
from rollout_fixtures import Scripted, make_model, make_tokenizer
from trl import GRPOConfig

from rlcas_utils import grpo
from rlcas_utils.rollouts import Sampling

NAN = math.nan


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


# ---- arithmetic -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([1, 1, 0, 0], [0.866, 0.866, -0.866, -0.866]),
        ([1, 1, 1, 1], [0, 0, 0, 0]),
        ([3 - 3, -3 + 3, 0, 0], [0, 0, 0, 0]),
        ([NAN, 1, 1, 1], [0, 0, 0, 0]),
        ([NAN, 1, 0, 1], [0, 0.577, -1.155, 0.577]),
        ([NAN, NAN, NAN, NAN], [0, 0, 0, 0]),
    ],
)
def test_group_advantages_by_hand(rewards, expected):
    """Case 16: equal rewards teach nothing; an episode without a score neither gains nor spoils its group."""
    advantages = grpo.group_advantages(torch.tensor([rewards], dtype=torch.float32))
    assert advantages[0].tolist() == pytest.approx(expected, abs=1e-3)


def test_groups_are_compared_only_within_themselves():
    advantages = grpo.group_advantages(torch.tensor([[0.0, 1.0], [10.0, 11.0]]))
    assert advantages[0].tolist() == pytest.approx(advantages[1].tolist())


def test_dead_groups():
    assert [round(grpo.dead_group_probability(0.2, n), 2) for n in (2, 4, 8)] == [0.68, 0.41, 0.17]
    assert grpo.dead_group_rate(torch.tensor([[1.0, 1.0], [0.0, 1.0], [NAN, 1.0], [2.0, 2.0]])) == 0.75


def test_clipped_objective_by_hand():
    ratio = torch.tensor([1.5, 0.5, 1.5, 0.5, 1.1])
    advantage = torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0])
    assert grpo.clipped_objective(ratio, advantage, 0.2).tolist() == pytest.approx(
        [1.2, 0.5, -1.5, -0.8, 1.1]
    )


# ---- batch rules (case 21) --------------------------------------------------------------------------------


def test_batch_plans_that_fit():
    assert grpo.plan_batches(1, 8, 8).num_prompts == 1
    assert grpo.plan_batches(4, 2, 4).num_prompts == 2
    assert grpo.plan_batches(1, 4, 4, num_processes=2).num_prompts == 2


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ((2, 1, 8), r"= 2 episodes per step.*Allowed group sizes: 2;"),
        ((1, 1, 1), "group size is 1; an episode needs others"),
        ((1, 1, 4), "Allowed group sizes: none"),
    ],
)
def test_batch_plans_that_do_not_fit(sizes, text):
    with pytest.raises(ValueError, match=text):
        grpo.plan_batches(*sizes)


def test_evaluation_batch_must_hold_whole_groups():
    with pytest.raises(ValueError, match="evaluation batch 3"):
        grpo.plan_batches(4, 1, 4, eval_batch=3)


@pytest.mark.parametrize(
    ("per_device", "accumulation", "group"), [(1, 8, 8), (2, 1, 8), (4, 2, 4), (1, 1, 1)]
)
def test_batch_rule_equals_that_of_the_pinned_trl(tmp_path, per_device, accumulation, group):
    def accepts(make):
        try:
            make()
        except ValueError:
            return False
        return True

    ours = accepts(lambda: grpo.plan_batches(per_device, accumulation, group))
    theirs = accepts(
        lambda: GRPOConfig(
            output_dir=str(tmp_path),
            per_device_train_batch_size=per_device,
            gradient_accumulation_steps=accumulation,
            num_generations=group,
            use_cpu=True,
            bf16=False,
        )
    )
    assert ours == theirs


# ---- trainer ----------------------------------------------------------------------------------------------

SAMPLING = Sampling(max_turn_tokens=8, max_episode_tokens=96, max_batch=16)


def make_config(folder, **changes):
    settings = {
        "output_dir": str(folder),
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 4,
        "num_generations": 4,
        "max_completion_length": SAMPLING.max_episode_tokens,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "beta": 0.0,
        "max_steps": 2,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "bf16": False,
        "use_cpu": True,
        "activation_checkpointing": False,
        "disable_tqdm": True,
        "seed": 0,
    }
    return GRPOConfig(**{**settings, **changes})


class Counter(Scripted):
    """Asks twice; its return is the share of the model's characters that are lower-case letters."""

    def __init__(self, row):
        super().__init__(f"case {row['n']}", ["go on " * (row["n"] % 3 + 1)] * (row["n"] % 2 + 1))
        self.flat = row.get("flat", False)

    @property
    def score(self):
        text = "".join(self.heard)
        return 1.0 if self.flat else sum(c.islower() for c in text) / max(1, len(text))


def make_trainer(model, tokenizer, config, rows=None, **changes):
    return grpo.make_grpo_trainer(
        model,
        tokenizer,
        rows or [{"n": n} for n in range(8)],
        Counter,
        lambda conversation: conversation.score,
        config,
        SAMPLING,
        **{"metrics": lambda conversations: {"said": sum(len(c.heard) for c in conversations)}, **changes},
    )


def adapted(tokenizer, dropout=0.0):
    """A model whose adapter already differs from the base, as after SFT."""
    config = LoraConfig(r=4, lora_dropout=dropout, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(make_model(tokenizer, "llama"), config)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    return model


def test_reward_rises_and_every_step_is_logged(tokenizer, tmp_path, capsys):
    trainer = make_trainer(make_model(tokenizer), tokenizer, make_config(tmp_path, max_steps=16))
    trainer.train()
    steps = grpo.read_steps(tmp_path)
    assert [row["step"] for row in steps] == list(range(1, 17))
    rewards = [row["reward"] for row in steps]
    assert sum(rewards[-4:]) / 4 > sum(rewards[:4]) / 4 + 0.15
    wanted = {
        "reward",
        "dead_group_rate",
        "entropy",
        "episode_turns",
        "episode_tokens",
        "tokens_per_s",
        "said",
    }
    assert wanted | {"rollout_s", "update_s", "step_s", "grad_norm", "loss"} <= set(steps[0])
    assert all(len(row["rows"]) == 2 for row in steps)
    assert "s left" in capsys.readouterr().out


def test_trained_tokens_and_logprobs_are_the_sampled_ones(tokenizer, tmp_path, monkeypatch):
    trainer = make_trainer(make_model(tokenizer), tokenizer, make_config(tmp_path, max_steps=1))
    seen = []
    parent = type(trainer)._compute_loss

    def watch(self, model, inputs):
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)
        width = inputs["completion_ids"].shape[1]
        with torch.no_grad():
            logps, _, _ = self._get_per_token_logps_and_entropies(self.model, ids, mask, width)
        trained = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        gap = (logps - inputs["sampling_per_token_logps"])[trained].abs().max().item()
        seen.append((gap, tokenizer.decode(inputs["completion_ids"][0][~trained[0]]), logps.shape))
        return parent(self, model, inputs)

    monkeypatch.setattr(type(trainer), "_compute_loss", watch)
    trainer.train()
    assert len(seen) == 4
    assert max(gap for gap, _, _ in seen) < 1e-4
    assert all("go on" in masked and "case" not in masked for _, masked, _ in seen)


@pytest.mark.parametrize("kind", ["adapter", "full"])
def test_kl_is_measured_from_the_policy_handed_over(tokenizer, tmp_path, kind):
    model = adapted(tokenizer, dropout=0.5) if kind == "adapter" else make_model(tokenizer)
    start = {name: p.detach().clone() for name, p in model.named_parameters()}
    trainer = make_trainer(model, tokenizer, make_config(tmp_path, beta=0.05, max_steps=3))
    trainable = [p for p in trainer.model.parameters() if p.requires_grad]
    assert {p.dtype for p in trainable} == {torch.float32}
    trainer.train()
    kl = [row["kl"] for row in grpo.read_steps(tmp_path)]
    assert abs(kl[0]) < 1e-6, "at the first step the policy is the reference"
    assert kl[-1] > 1e-4
    reference = dict((trainer.ref_model or trainer.model).named_parameters())
    for name, value in start.items():
        copy = name.replace(".default.", ".ref.")
        assert torch.equal(reference[copy], value)
    assert any(not torch.equal(p, start[n]) for n, p in trainer.model.named_parameters() if n in start)
    if kind == "adapter":
        trainer.save_policy(tmp_path / "policy")
        assert sorted(p.name for p in (tmp_path / "policy").iterdir() if p.is_dir()) == []
        assert json.loads((tmp_path / "policy/adapter_config.json").read_text())["r"] == 4


def test_dead_groups_stay_out_of_scoring_and_kl(tokenizer, tmp_path, monkeypatch):
    """One episode per pass: the passes of dead groups are not made, and their empty scores reach no KL."""
    from rlcas_utils.grpo import scoring

    passes = []
    score = scoring.LeanScoring._score
    monkeypatch.setattr(
        scoring.LeanScoring, "_score", lambda self, *rest: passes.append(1) or score(self, *rest)
    )
    rows = [{"n": n, "flat": n % 2 == 0} for n in range(8)]
    sizes = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8}
    config = make_config(tmp_path, beta=0.05, max_steps=4, learning_rate=1e-3, **sizes)
    make_trainer(make_model(tokenizer), tokenizer, config, rows).train()
    steps = grpo.read_steps(tmp_path)
    dead = [row["dead_group_rate"] for row in steps]
    assert 0.0 < sum(dead) < 4.0
    assert len(passes) == sum(2 * 8 * (1 - rate) for rate in dead)
    kl = [row["kl"] for row in steps if row.get("kl") is not None]
    assert abs(kl[0]) < 1e-6
    assert max(kl) < 0.1, "an empty score in the KL term would be worth more than 100"


@pytest.mark.parametrize("kind", ["adapter", "full"])
def test_resume_goes_on_as_if_unbroken(tokenizer, tmp_path, kind):
    def run(folder, steps, resume=None):
        model = adapted(tokenizer) if kind == "adapter" else make_model(tokenizer)
        config = make_config(folder, max_steps=steps, beta=0.02, save_strategy="steps", save_steps=2)
        make_trainer(model, tokenizer, config).train(resume_from_checkpoint=resume)
        return grpo.read_steps(folder)

    unbroken = run(tmp_path / "a", 4)
    run(tmp_path / "b", 3)  # killed after a step that no checkpoint holds
    resumed = run(tmp_path / "b", 4, resume=str(tmp_path / "b" / "checkpoint-2"))
    assert [row["step"] for row in resumed] == [1, 2, 3, 4]
    assert [row["rows"] for row in resumed] == [row["rows"] for row in unbroken]
    assert [row["reward"] for row in resumed] == pytest.approx([row["reward"] for row in unbroken])
    assert [row["kl"] for row in resumed] == pytest.approx([row["kl"] for row in unbroken], abs=1e-6)


def test_an_all_equal_group_moves_nothing_and_is_announced(tokenizer, tmp_path, capsys):
    model = make_model(tokenizer)
    before = [p.detach().clone() for p in model.parameters()]
    rows = [{"n": n, "flat": True} for n in range(8)]
    make_trainer(model, tokenizer, make_config(tmp_path, max_steps=1), rows).train()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert grpo.read_steps(tmp_path)[0]["dead_group_rate"] == 1.0
    assert "more than half of the groups are dead" in capsys.readouterr().out


def test_redraws_replace_dead_groups_and_are_logged(tokenizer, tmp_path):
    rows = [{"n": n, "flat": n % 4 != 0} for n in range(12)]
    config = make_config(tmp_path, max_steps=3, save_strategy="no")
    make_trainer(make_model(tokenizer), tokenizer, config, rows, redraws=6).train()
    steps = grpo.read_steps(tmp_path)
    assert sum(row["dead_before_redraw"] for row in steps) > sum(row["dead_group_rate"] for row in steps)
    assert sum(row["redrawn_groups"] for row in steps) >= 1


def test_an_episode_without_a_score_stays_out(tokenizer, tmp_path):
    trainer = grpo.make_grpo_trainer(
        make_model(tokenizer),
        tokenizer,
        [{"n": 1}, {"n": 2}],
        Counter,
        lambda conversation: None if conversation.messages[1]["content"] == "case 1" else conversation.score,
        make_config(tmp_path, max_steps=1),
        SAMPLING,
    )
    trainer.train()
    (step,) = grpo.read_steps(tmp_path)
    assert step["reward"] is not None
    assert step["dead_group_rate"] == 0.5


def test_settings_that_do_not_fit_are_refused(tokenizer, tmp_path):
    model = make_model(tokenizer)
    for changes, text in [
        ({"temperature": 0.5}, "GRPOConfig.temperature is 0.5"),
        ({"max_completion_length": 50}, "GRPOConfig.max_completion_length is 50"),
        ({"use_vllm": True}, "use_vllm is set"),
    ]:
        with pytest.raises(ValueError, match=text):
            make_trainer(model, tokenizer, make_config(tmp_path, **changes))
