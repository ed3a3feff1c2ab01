"""Credit for single turns (GiGPO): by hand, the tokens of each turn, and what the trainer gets."""

import pytest
from rollout_fixtures import Scripted, make_model, make_tokenizer
from trl import GRPOConfig

from rlcas_utils import grpo
from rlcas_utils.grpo.steps import spread_over_tokens
from rlcas_utils.rollouts import Sampling


def test_turns_in_the_same_state_are_compared_by_hand():
    """Discount 1/2. First episode, return 2: states a, b, worth 2 * 1/2 = 1 and 2. Second, return 1: a alone.

    In state a both next turns are worth 1: no difference. State b has one visitor: nothing to compare.
    """
    assert grpo.step_advantages([["a", "b"], ["a"]], [2.0, 1.0], 0.5) == [[0.0, 0.0], [0.0]]
    # Return 4 instead: 2 against 1 in state a. Mean 1.5, standard deviation 0.7071, so plus and minus 0.7071.
    (first, alone), (second,) = grpo.step_advantages([["a", "b"], ["a"]], [4.0, 1.0], 0.5)
    assert (first, second) == pytest.approx((0.7071, -0.7071), abs=2e-4)
    assert alone == 0.0


def test_an_episode_that_returns_to_a_state_is_compared_with_itself_too():
    """Undiscounted 1, 1 (twice in a) and 0: mean 2/3, deviation 0.57735; +0.57735 twice and -1.1547."""
    found = grpo.step_advantages([["a", "a"], ["a"]], [1.0, 0.0], 1.0)
    assert found[0] == pytest.approx([0.57735, 0.57735], abs=2e-4)
    assert found[1] == pytest.approx([-1.1547], abs=3e-4)


def test_an_episode_without_a_score_neither_gains_nor_spoils_its_state():
    found = grpo.step_advantages([["a"], ["a", "b"], ["a"]], [1.0, None, 0.0], 1.0)
    assert found[1] == [0.0, 0.0]
    assert (found[0][0], found[2][0]) == pytest.approx((0.7071, -0.7071), abs=2e-4)


def test_each_turns_tokens_get_its_value_and_the_environments_none():
    values_T = spread_over_tokens([0.5, -1.0], [1, 1, 0, 0, 1, 0], 8)
    assert values_T.tolist() == [0.5, 0.5, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="2 turns in the tokens, but 1 states were noted"):
        spread_over_tokens([0.5], [1, 0, 1], 3)


class Stated(Scripted):
    """The scripted conversation; its state is the number of replies so far."""

    def __init__(self, row):
        super().__init__("case", ["go on"])
        self.anchors = []

    def reply(self, text, *, truncated=False):
        self.anchors.append(f"state {len(self.anchors)}")
        return super().reply(text, truncated=truncated)


def trained(folder, monkeypatch, credit):
    """One step of a trainer whose episodes are worth 1, 0, 1, 0: its advantages and its log."""
    tokenizer, played, seen = make_tokenizer(), [], []
    config = GRPOConfig(
        output_dir=str(folder),
        max_steps=1,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        num_generations=4,
        max_completion_length=96,
        beta=0.0,
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        save_strategy="no",
        report_to="none",
        logging_steps=1,
    )
    trainer = grpo.make_grpo_trainer(
        make_model(tokenizer),
        tokenizer,
        [{"n": 0}],
        Stated,
        lambda conversation: float(len(played.append(conversation) or played) % 2),
        config,
        Sampling(max_turn_tokens=8, max_episode_tokens=96, max_batch=4),
        credit=credit,
    )
    score = trainer._compute_loss
    monkeypatch.setattr(
        trainer, "_compute_loss", lambda model, inputs: seen.append(inputs) or score(model, inputs)
    )
    trainer.train()
    return seen, grpo.read_steps(folder)[0]


def test_the_trainer_learns_from_turns_beside_episodes(tmp_path, monkeypatch):
    """All four episodes pass the same states undiscounted: every turn's advantage is its episode's.

    Episodes: 0.5 over 0.57735, the deviation of 1, 0, 1, 0; with weight 1/2 a token has 1.5 times that.
    """
    seen, step = trained(tmp_path, monkeypatch, grpo.StepCredit(0.5, discount=1.0))
    assert len(seen) == 2
    for inputs in seen:
        size_BT = inputs["advantages"].abs()
        assert size_BT.shape == inputs["completion_ids"].shape
        sampled_BT = (inputs["tool_mask"] * inputs["completion_mask"]).bool()
        assert size_BT[sampled_BT].tolist() == pytest.approx([1.299] * int(sampled_BT.sum()), abs=1e-3)
    assert step["turns_with_credit"] == 1.0
    assert step["grad_norm"] > 0


@pytest.mark.parametrize("credit", [None, grpo.StepCredit(0.0)])
def test_without_weight_nothing_changes(tmp_path, monkeypatch, credit):
    seen, step = trained(tmp_path, monkeypatch, credit)
    assert [inputs["advantages"].shape for inputs in seen] == [(2,), (2,)]
    assert "turns_with_credit" not in step
