"""vLLM behind the rollout interface, driven with a stand-in that samples from the tiny model itself."""

import importlib.machinery
import json
import sys
import threading
import types
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from rollout_fixtures import Scripted, make_model, make_tokenizer, ragged_conversations
from trl import GRPOConfig
from trl.trainer import grpo_trainer  # noqa: F401 - TRL asks for vLLM's version while it is imported

from rlcas_utils import grpo
from rlcas_utils.config import ConfigError
from rlcas_utils.rollouts import Sampling, run_episodes
from rlcas_utils.rollouts.vllm_engine import make_engine

LIMITS = {"max_turn_tokens": 10, "max_episode_tokens": 160, "max_batch": 3}
SHIFT = 0.25  # nats that the stand-in's log-probabilities differ from the model's, where asked for


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


def adapted(tokenizer, seed=5):
    config = LoraConfig(r=4, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(make_model(tokenizer, "llama"), config)
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    model.peft_config["default"].base_model_name_or_path = "the-base"
    return model


class Sampler:
    """What vLLM would compute: the base, with the adapter that was loaded from its files."""

    def __init__(self, tokenizer, shift=0.0):
        self.tokenizer, self.shift, self.loaded, self.model = tokenizer, shift, [], None

    def load(self, path):
        self.loaded.append(sorted(p.name for p in Path(path).iterdir()))
        self.model = PeftModel.from_pretrained(make_model(self.tokenizer, "llama"), str(path)).eval()

    @torch.no_grad()
    def turn(self, ids, temperature, max_tokens, stops, seed):
        generator = torch.Generator().manual_seed(seed)
        ids, out, logprobs = list(ids), [], []
        while len(out) < max_tokens and not (out and out[-1] in stops):
            logits = self.model(torch.tensor([ids])).logits[0, -1].float()
            logp = (logits / (temperature or 1.0)).log_softmax(-1)
            token = int(
                logp.argmax() if temperature == 0 else torch.multinomial(logp.exp(), 1, generator=generator)
            )
            ids.append(token)
            out.append(token)
            logprobs.append(logp[token].item() + self.shift)
        return out, logprobs, "stop" if out[-1] in stops else "length"


@pytest.fixture
def fake_vllm(monkeypatch, tokenizer):
    """The parts of vLLM's interface that the engine uses; `made` keeps what it was opened with."""
    sampler, made = Sampler(tokenizer), {}

    class LLM:
        def __init__(self, **settings):
            made.update(settings)

        def generate(self, prompts, settings, lora_request, use_tqdm):
            if not sampler.loaded or made.get("number") != lora_request.number:
                made["number"] = lora_request.number
                sampler.load(lora_request.path)
            return [self.one(p["prompt_token_ids"], s) for p, s in zip(prompts, settings, strict=True)]

        def one(self, ids, s):
            out, logprobs, reason = sampler.turn(ids, s.temperature, s.max_tokens, s.stop_token_ids, s.seed)
            steps = [
                {token: types.SimpleNamespace(logprob=lp)} for token, lp in zip(out, logprobs, strict=True)
            ]
            done = types.SimpleNamespace(token_ids=tuple(out), logprobs=steps, finish_reason=reason)
            return types.SimpleNamespace(outputs=[made.get("spoil", lambda d: d)(done)])

    module, lora, request = (types.ModuleType(n) for n in ("vllm", "vllm.lora", "vllm.lora.request"))
    module.__spec__ = importlib.machinery.ModuleSpec("vllm", None)
    module.LLM, module.SamplingParams = LLM, lambda **settings: types.SimpleNamespace(**settings)
    request.LoRARequest = lambda name, number, path: types.SimpleNamespace(
        name=name, number=number, path=path
    )
    for name, part in {"vllm": module, "vllm.lora": lora, "vllm.lora.request": request}.items():
        monkeypatch.setitem(sys.modules, name, part)
    return types.SimpleNamespace(sampler=sampler, made=made)


def test_greedy_episodes_are_those_of_the_transformers_engine(tokenizer, fake_vllm):
    model = adapted(tokenizer)
    sampling = Sampling(temperature=0.0, seed=0, **LIMITS)
    mine = make_engine("vllm")(model, tokenizer, ragged_conversations(7), sampling)
    own = run_episodes(model, tokenizer, ragged_conversations(7), sampling)
    for a, b in zip(mine, own, strict=True):
        assert (a.prompt_ids, a.completion_ids, a.env_mask) == (b.prompt_ids, b.completion_ids, b.env_mask)
        assert (a.num_turns, a.end) == (b.num_turns, b.end)
        assert a.logprobs == pytest.approx(b.logprobs, abs=1e-4)
    assert {r.end for r in mine} == {"done", "token_budget"} or len({r.num_turns for r in mine}) > 2


def test_vllm_is_opened_for_long_prompts_an_adapter_and_tempered_probabilities(tokenizer, fake_vllm):
    make_engine("vllm")(adapted(tokenizer), tokenizer, ragged_conversations(2), Sampling(seed=0, **LIMITS))
    made = fake_vllm.made
    assert made["model"] == "the-base"
    assert made["enable_prefix_caching"]
    assert made["enable_lora"]
    assert made["logprobs_mode"] == "processed_logprobs"
    assert made["quantization"] is None
    assert made["max_model_len"] > LIMITS["max_episode_tokens"]
    assert "adapter_model.safetensors" in fake_vllm.sampler.loaded[0]


def test_each_call_plays_the_policy_as_it_is_now(tokenizer, fake_vllm):
    model, engine = adapted(tokenizer), make_engine("vllm")
    sampling = Sampling(temperature=0.0, seed=0, **LIMITS)
    first = engine(model, tokenizer, ragged_conversations(3), sampling)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.neg_()
    second = engine(model, tokenizer, ragged_conversations(3), sampling)
    own = run_episodes(model, tokenizer, ragged_conversations(3), sampling)
    assert [r.completion_ids for r in second] == [r.completion_ids for r in own]
    assert [r.completion_ids for r in second] != [r.completion_ids for r in first]
    assert len(fake_vllm.sampler.loaded) == 2


def test_members_of_a_group_draw_different_episodes_and_repeat_with_the_seed(tokenizer, fake_vllm):
    model, engine = adapted(tokenizer), make_engine("vllm")
    play = lambda: engine(
        model, tokenizer, [Scripted("same", ["go on"]) for _ in range(4)], Sampling(seed=3, **LIMITS)
    )
    first, again = play(), play()
    assert len({tuple(r.completion_ids) for r in first}) > 1
    assert [r.completion_ids for r in first] == [r.completion_ids for r in again]


def test_the_trainer_weighs_tokens_by_trainer_over_sampler_probability(tokenizer, fake_vllm, tmp_path):
    """The stand-in claims probabilities e^0.25 too high; the correction is then e^-0.25 on every token."""
    fake_vllm.sampler.shift = SHIFT
    config = GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        num_generations=4,
        max_completion_length=LIMITS["max_episode_tokens"],
        learning_rate=1e-3,
        beta=0.05,
        vllm_importance_sampling_mode="token_truncate",
        bf16=False,
        use_cpu=True,
        activation_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        seed=0,
    )
    trainer = grpo.make_grpo_trainer(
        adapted(tokenizer),
        tokenizer,
        [{"n": n} for n in range(4)],
        lambda row: Scripted(f"case {row['n']}", ["go on"]),
        lambda conversation: float(sum(map(len, conversation.heard))),
        config,
        Sampling(**LIMITS),
        engine=make_engine("vllm"),
    )
    trainer.train()
    for step in grpo.read_steps(tmp_path):
        assert step["sampling/importance_sampling_ratio/mean"] == pytest.approx(2.718281828**-SHIFT, abs=2e-3)
        assert step["sampling/sampling_logp_difference/mean"] == pytest.approx(SHIFT, abs=2e-3)


# ---- refusals ----------------------------------------------------------------------------------------------


def test_where_vllm_is_missing_it_is_said_in_one_sentence():
    if "vllm" in sys.modules:
        pytest.skip("vLLM is installed here")
    with pytest.raises(
        ConfigError, match=r"vLLM is not installed here; it needs Linux with a CUDA GPU. Run pip"
    ):
        make_engine("vllm")
    with pytest.raises(ConfigError, match="engine 'sglang' is unknown; choose one of transformers, vllm"):
        make_engine("sglang")


def test_what_vllm_cannot_take_over_is_refused(tokenizer, fake_vllm):
    engine = make_engine("vllm")
    with pytest.raises(ConfigError, match="no adapter, and vLLM takes over nothing else"):
        engine(make_model(tokenizer), tokenizer, ragged_conversations(1), Sampling(seed=0, **LIMITS))
    with pytest.raises(ConfigError, match=r"top_p is 0.9.*Use top_p 1.0"):
        engine(adapted(tokenizer), tokenizer, ragged_conversations(1), Sampling(seed=0, top_p=0.9, **LIMITS))


def test_a_turn_without_its_stop_token_is_refused(tokenizer, fake_vllm):
    def cut(done):
        if done.finish_reason == "stop":
            done.token_ids, done.logprobs = done.token_ids[:-1], done.logprobs[:-1]
        return done

    fake_vllm.made["spoil"] = cut
    with pytest.raises(ConfigError, match="without handing over its stop token"):
        make_engine("vllm")(
            adapted(tokenizer), tokenizer, ragged_conversations(9), Sampling(seed=0, **LIMITS)
        )


# ---- the server --------------------------------------------------------------------------------------------


@pytest.fixture
def server(tokenizer):
    """An HTTP stand-in of `vllm serve`; `calls` keeps every request."""
    sampler, calls, lock = Sampler(tokenizer), [], threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                calls.append((self.path, body))
                answer = self.answer(body)
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def answer(self, body):
            if self.path == "/v1/load_lora_adapter":
                sampler.load(body["lora_path"])
            if self.path != "/v1/completions":
                return {}
            ids, logprobs, reason = sampler.turn(
                body["prompt"], body["temperature"], body["max_tokens"], body["stop_token_ids"], body["seed"]
            )
            return {
                "choices": [
                    {
                        "index": 0,
                        "token_ids": ids,
                        "logprobs": {"token_logprobs": logprobs},
                        "finish_reason": reason,
                    }
                ]
            }

        def log_message(self, *args):
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield types.SimpleNamespace(url=f"http://127.0.0.1:{serving.server_port}", calls=calls)
    serving.shutdown()
    serving.server_close()


def test_a_server_plays_the_same_greedy_episodes_and_gets_each_adapter(tokenizer, server):
    model, engine = adapted(tokenizer), make_engine("vllm-server", server.url)
    sampling = Sampling(temperature=0.0, seed=0, reply_threads=2, **LIMITS)
    for _ in range(2):
        mine = engine(model, tokenizer, ragged_conversations(4), sampling)
    own = run_episodes(model, tokenizer, ragged_conversations(4), sampling)
    assert [r.completion_ids for r in mine] == [r.completion_ids for r in own]
    loads = [body["lora_name"] for path, body in server.calls if path == "/v1/load_lora_adapter"]
    drops = [body["lora_name"] for path, body in server.calls if path == "/v1/unload_lora_adapter"]
    assert len(set(loads)) == 2
    assert drops == loads[:1]
    used = {body["model"] for path, body in server.calls if path == "/v1/completions"}
    assert used == set(loads)
    assert all(body["return_token_ids"] for path, body in server.calls if path == "/v1/completions")


def test_a_server_that_is_not_there_is_said_in_one_sentence(tokenizer):
    engine = make_engine("vllm-server", "http://127.0.0.1:9")
    with pytest.raises(
        ConfigError, match=r"no vLLM server answers at http://127.0.0.1:9 .*Start `vllm serve`"
    ):
        engine(adapted(tokenizer), tokenizer, ragged_conversations(1), Sampling(seed=0, **LIMITS))
