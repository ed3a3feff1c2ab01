"""The verl recipe without verl: a stand-in of its interface plays the expert, and the settings agree."""

import asyncio
import importlib
import sys
import types
from types import SimpleNamespace

import pytest
import yaml
from rollout_fixtures import make_tokenizer

from rlcas_utils.config import project_root
from rlcas_utils.parameters import read_parameters
from rlcas_utils.telecom import agents, tau2
from rlcas_utils.telecom.prompt import render_call

ROOT = project_root()
FOLDER = ROOT / "recipes" / "verl"


def read(name):
    return yaml.safe_load((FOLDER / name).read_text("utf-8"))


@pytest.fixture
def recipe(monkeypatch):
    """The recipe's modules, imported with a stand-in of the two classes that verl gives."""

    class AgentLoopBase:
        def __init__(self, trainer_config, server_manager, tokenizer):
            self.config, self.server_manager, self.tokenizer = trainer_config, server_manager, tokenizer

    module = types.ModuleType("verl.experimental.agent_loop.agent_loop")
    module.AgentLoopBase, module.AgentLoopOutput = AgentLoopBase, SimpleNamespace
    module.register = lambda name: lambda loop: loop
    for name in ("verl", "verl.experimental", "verl.experimental.agent_loop"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.syspath_prepend(str(ROOT))
    yield importlib.import_module("recipes.verl.telecom_loop")
    for name in [name for name in sys.modules if name.startswith("recipes")]:
        del sys.modules[name]


class ExpertServer:
    """Answers as a model would that follows the scripted expert: reads the last turn, writes one call."""

    def __init__(self, tokenizer, task):
        self.tokenizer, self.act, self.calls = tokenizer, agents.expert(task, 0), []

    async def generate(self, request_id, *, prompt_ids, sampling_params):
        text = self.tokenizer.decode(prompt_ids, skip_special_tokens=False)
        seen = text.rsplit("<|im_start|>user\n", 1)[1].split("<|im_end|>")[0]
        seen = seen.removeprefix("<tool_response>").removesuffix("</tool_response>")
        ids = self.tokenizer.encode(render_call(*self.act(seen)) + "<|im_end|>", add_special_tokens=False)
        self.calls.append((request_id, list(prompt_ids), sampling_params, ids))
        return SimpleNamespace(token_ids=ids, log_probs=[-0.5] * len(ids))


def play(recipe, task, length=40000, **changes):
    (entry,) = read("agent.yaml")
    settings = entry["settings"] | {"customer": "scripted", "max_turn_tokens": 4000} | changes
    tokenizer = make_tokenizer()
    server = ExpertServer(tokenizer, task)
    config = SimpleNamespace(
        actor_rollout_ref=SimpleNamespace(rollout=SimpleNamespace(response_length=length))
    )
    loop = recipe.TelecomAgentLoop(config, server, tokenizer, settings=settings)
    info = {"task_id": task.id, "seed": 500}
    return asyncio.run(loop.run({"temperature": 1.0, "logprobs": True}, extra_info=info)), server, tokenizer


@pytest.fixture(scope="module")
def task():
    fixable = [t for t in tau2.tasks("train") if not tau2.is_transfer_task(t)]
    return min(fixable, key=lambda t: t.id.count("|"))


def test_the_loop_plays_a_scripted_episode_to_the_full_reward(recipe, task):
    output, server, _ = play(recipe, task)
    assert output.extra_fields["tau2_reward"] == 1.0
    assert output.reward_score == pytest.approx(1.4), "tau2's 1 and 0.4 times a whole partial score"
    assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs)
    spoken = [token for token, own in zip(output.response_ids, output.response_mask, strict=True) if own]
    assert spoken == [token for _, _, _, ids in server.calls for token in ids]
    heard = [lp for lp, own in zip(output.response_logprobs, output.response_mask, strict=True) if not own]
    assert set(heard) == {0.0}
    assert output.response_mask[-1] == 1, "an episode ends on the model's own tokens"
    assert output.num_turns == 2 * len(server.calls)


def test_what_was_sampled_stays_as_it_was_and_on_one_server(recipe, task):
    output, server, _ = play(recipe, task)
    whole = output.prompt_ids + output.response_ids
    assert all(whole[: len(prompt)] == prompt for _, prompt, _, _ in server.calls)
    assert len({session for session, *_ in server.calls}) == 1
    assert {params["max_tokens"] for *_, params, _ in server.calls} == {4000}


def test_an_episode_without_room_for_a_turn_ends_and_fails(recipe, task):
    output, server, _ = play(recipe, task, length=6000)
    assert output.extra_fields["tau2_reward"] == 0.0
    assert len(output.response_ids) <= 6000
    assert len(server.calls) > 1


def test_nothing_is_trained_on_when_the_customer_failed(recipe, task, monkeypatch):
    monkeypatch.setattr(recipe.arms, "training_reward", lambda *_: None)
    output, _, _ = play(recipe, task)
    assert set(output.response_mask) == {0}
    assert output.reward_score == 0.0


def test_the_settings_are_those_of_the_notebook():
    """Published values stand once in notebook 06; the recipe must not drift from them."""
    published = {
        name: parameter.default
        for name, parameter in read_parameters(ROOT / "notebooks" / "06_tau2_telecom_grpo.ipynb").items()
    }
    config, (agent,) = read("telecom.yaml"), read("agent.yaml")
    actor, rollout = (config["actor_rollout_ref"][name] for name in ("actor", "rollout"))
    assert config["data"]["train_batch_size"] == published["GRPO_TASKS"]
    assert rollout["n"] == published["GRPO_GROUP"]
    assert config["trainer"]["total_training_steps"] == published["GRPO_STEPS"]
    assert actor["optim"]["lr"] == published["GRPO_LR"]
    assert actor["kl_loss_coef"] == published["GRPO_KL"]
    assert config["data"]["max_response_length"] == published["MAX_EPISODE_TOKENS"]
    assert config["actor_rollout_ref"]["model"]["path"] == published["MODEL"]
    assert rollout["val_kwargs"]["n"] == published["EVAL_TRIALS"]
    assert rollout["val_kwargs"]["temperature"] == published["EVAL_TEMPERATURE"]
    room = config["data"]["max_prompt_length"] + config["data"]["max_response_length"]
    assert rollout["max_model_len"] == actor["ppo_max_token_len_per_gpu"] == room
    names = {"policy_arm", "max_turns", "max_turn_tokens", "partial_weight", "customer", "customer_url"}
    assert {name: agent["settings"][name] for name in names} == {n: published[n.upper()] for n in names}


def test_the_data_are_the_tasks_of_the_split(recipe):
    make_data = importlib.import_module("recipes.verl.make_data")
    train, test = make_data.rows("train"), make_data.rows("test")
    assert (len(train), len(test)) == (74, 40)
    assert not {r["extra_info"]["task_id"] for r in train} & {r["extra_info"]["task_id"] for r in test}
    assert {row["agent_name"] for row in train} == {read("agent.yaml")[0]["name"]}


def test_the_configuration_composes_where_verl_is_installed():
    """With verl and Hydra at hand the configuration is put together as verl does it."""
    hydra = pytest.importorskip("hydra")
    pytest.importorskip("verl.trainer.config")
    with hydra.initialize_config_dir(config_dir=str(FOLDER), version_base=None):
        config = hydra.compose(config_name="telecom")
    assert config.algorithm.adv_estimator == "grpo"
    assert config.actor_rollout_ref.rollout.response_length == config.data.max_response_length
