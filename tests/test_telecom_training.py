"""Demonstrations as token rows, the small model's vocabulary, and the weighted loss."""

import math

import pytest
import torch

from rlcas_utils.rollouts import render_prompt, turn_suffix
from rlcas_utils.telecom import agents, small_model, tau2
from rlcas_utils.telecom import demonstrations as demos
from rlcas_utils.telecom.customers import scripted_customer

TRAIN = tau2.tasks("train")


@pytest.fixture(scope="module")
def recorded():
    def make_expert(seed):
        return agents.expert(TRAIN[0], seed)

    kept, dropped = demos.collect(TRAIN[::12], [0, 1], make_expert, scripted_customer)
    assert (len(kept), dropped) == (14, 0)
    return kept


@pytest.fixture(scope="module")
def tokenizer(recorded):
    return small_model.train_tokenizer([demos.chatml(d, "none") for d in recorded], 1200, min_frequency=3)


def test_test_tasks_are_refused_before_anything_is_recorded():
    with pytest.raises(demos.ContaminationError, match="40 of the training tasks belong to the test split"):
        demos.collect(tau2.tasks("base"), [0], None, None)
    demos.refuse_test_tasks(tau2.split_ids("train"))


def test_unsolved_episodes_are_dropped():
    fixable = next(t for t in TRAIN if not tau2.is_transfer_task(t))
    kept, dropped = demos.collect(
        [fixable], [0], lambda seed: agents.always_transfer(fixable, seed), scripted_customer
    )
    assert (kept, dropped) == ([], 1)


def test_demonstrations_survive_the_disk(recorded, tmp_path):
    demos.write_demonstrations(tmp_path / "d.jsonl", recorded)
    assert demos.read_demonstrations(tmp_path / "d.jsonl") == recorded


@pytest.mark.parametrize("arm", ["none", "compact"])
def test_a_token_row_is_what_a_rollout_would_hold(recorded, tokenizer, arm):
    demonstration = recorded[0]
    row = demos.token_row(demonstration, tokenizer, arm)
    system = demos.system_prompt(arm)
    opening = [{"role": "system", "content": system}] if system else []
    first, *later = demonstration.turns
    expected = render_prompt(tokenizer, [*opening, {"role": "user", "content": first.observation}])
    weights = [0.1] * len(expected)
    for index, turn in enumerate(demonstration.turns):
        said = demos.render_call(turn.thought, turn.name, turn.arguments) + "<|im_end|>"
        suffix = turn_suffix(tokenizer, later[index].observation) if index < len(later) else []
        said_ids = tokenizer.encode(said, add_special_tokens=False)
        expected += said_ids + suffix
        weights += [1.0] * len(said_ids) + [0.1] * len(suffix)
    assert row["input_ids"] == expected
    assert row["weights"] == weights
    assert tokenizer.decode(row["input_ids"]) == demos.chatml(demonstration, arm)


def test_tokens_are_clauses_and_unknown_text_falls_back_to_bytes(tokenizer, tmp_path):
    status = "next: find customer</think><tool_call>{"
    assert tokenizer.decode(tokenizer.encode(status), skip_special_tokens=True) == status
    assert len(tokenizer.encode('"arguments": {"customer_id": "C1001", ')) == 1
    strange = "Žluťoučký kůň 🐎\n\n<tool_call>"
    assert tokenizer.decode(tokenizer.encode(strange)) == strange
    assert len(tokenizer.encode("<tool_response></tool_response><|im_end|>")) == 3
    tokenizer.save_pretrained(tmp_path)
    loaded = small_model.load_small_tokenizer(str(tmp_path))
    assert loaded.encode(status + strange) == tokenizer.encode(status + strange)
    assert loaded.pad_token_id != loaded.eos_token_id == loaded.encode("<|im_end|>")[0]


def test_weighted_nll_by_hand():
    from rlcas_utils.telecom.training import weighted_nll

    logits_BTV = torch.log(torch.tensor([[[0.5, 0.5], [0.25, 0.75], [1.0, 1.0]]]))
    ids_BT = torch.tensor([[0, 1, 0]])  # targets 1 (p = 1/2) and 0 (p = 1/4)
    weights_BT = torch.tensor([[9.0, 1.0, 0.5]])  # the first token is never a target
    expected = (1.0 * math.log(2) + 0.5 * math.log(4)) / 1.5
    assert weighted_nll(logits_BTV, ids_BT, weights_BT).item() == pytest.approx(expected)


def test_training_learns_and_resumes_where_it_was(recorded, tokenizer, tmp_path):
    from rlcas_utils.telecom.training import train_on_episodes

    def fresh():
        return small_model.build_model(tokenizer, hidden_size=32, num_layers=2, num_heads=2, num_kv_heads=1)

    rows = [demos.token_row(d, tokenizer, "none") for d in recorded]
    common = {"episodes_per_step": 2, "learning_rate": 3e-3, "bf16": False, "seed": 0}
    whole = fresh()
    result = train_on_episodes(whole, tokenizer, rows, tmp_path / "a", num_steps=6, **common)
    assert result["loss"] < 0.97 * math.log(len(tokenizer))
    again = fresh()  # a later process finds the checkpoint of the last step and has nothing left to do
    train_on_episodes(again, tokenizer, rows, tmp_path / "a", num_steps=6, **common)
    for ours, theirs in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_a_half_written_checkpoint_is_passed_over(tmp_path):
    from rlcas_utils.telecom.training import last_checkpoint

    assert last_checkpoint(tmp_path) is None
    for step in (900, 1000, 1100):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if step < 1100:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text("{}")
    assert last_checkpoint(tmp_path).endswith("checkpoint-1000")
