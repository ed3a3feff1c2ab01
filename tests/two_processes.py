"""What `test_distributed.py` starts with torchrun: SFT, GRPO and split weights, with a tiny model on gloo."""

import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
sys.path.insert(0, str(Path(__file__).parent))

import torch
from accelerate import PartialState
from peft import LoraConfig, get_peft_model
from rollout_fixtures import Scripted, make_model, make_tokenizer
from trl import GRPOConfig, SFTConfig

from rlcas_utils import grpo
from rlcas_utils.checkpoints import last_checkpoint
from rlcas_utils.language.sft import TokenRows, make_sft_trainer, train_or_resume
from rlcas_utils.rollouts import Sampling, run_episodes
from rlcas_utils.run.launched import split_config

COMMON = {
    "bf16": False,
    "use_cpu": True,
    "activation_checkpointing": False,
    "logging_steps": 1,
    "save_total_limit": 1,
    "report_to": "none",
    "disable_tqdm": True,
    "seed": 0,
}
SAMPLING = Sampling(max_turn_tokens=8, max_episode_tokens=240)


def adapted(tokenizer):
    """A model whose adapter differs from the base, in float32 beside bfloat16."""
    config = LoraConfig(r=4, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(make_model(tokenizer, "llama"), config)
    generator = torch.Generator().manual_seed(5)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data = 0.2 * torch.randn(parameter.shape, generator=generator)
    return model


def token_rows():
    """Sixteen rows of uneven length."""
    generator = torch.Generator().manual_seed(3)
    lengths = [6 + 3 * (i % 5) for i in range(16)]
    ids = [torch.randint(3, 200, (length,), generator=generator).tolist() for length in lengths]
    return TokenRows([{"input_ids": i, "labels": [-100] * 3 + i[3:]} for i in ids], 0, 0, 0)


def sft(tokenizer, folder, processes):
    """Log rows of four steps; two chats a pass, four passes a step over all processes."""
    config = SFTConfig(
        output_dir=str(folder),
        max_steps=4,
        learning_rate=1e-2,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
        max_length=None,
        eval_strategy="no",
        save_steps=2,
        **COMMON,
    )
    rows = token_rows()
    quiet = lambda line: None
    trainer = make_sft_trainer(
        adapted(tokenizer), tokenizer, split_config(config, processes), rows, rows, quiet
    )
    return [row for row in train_or_resume(trainer) if "loss" in row]


def play_grpo(tokenizer, folder, state, group):
    """What each process saw in two GRPO steps: rewards, advantages, idle episodes, turns."""
    rank = state.process_index

    class Ragged(Scripted):
        """Row 0 is answered with silence for everybody; elsewhere the later process has longer episodes."""

        def __init__(self, row):
            self.row = row["n"]
            super().__init__(f"case {self.row}", ["go on "] * (1 + 3 * rank))

    config = GRPOConfig(
        output_dir=str(folder),
        max_steps=2,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=8,
        num_generations=group,
        max_completion_length=SAMPLING.max_episode_tokens,
        learning_rate=1e-2,
        beta=0.05,
        save_steps=1,
        temperature=1.0,
        **COMMON,
    )
    seen, rewards = [], []

    def reward(conversation):
        value = 1.0 if conversation.row == 0 else float(sum(map(len, conversation.heard)))
        rewards.append(value)
        return value

    trainer = grpo.make_grpo_trainer(
        adapted(tokenizer),
        tokenizer,
        [{"n": n} for n in range(2)],
        Ragged,
        reward,
        split_config(config, state.num_processes),
        SAMPLING,
    )
    score = trainer._generate_and_score_completions

    def watch(inputs):
        rewards.clear()
        batch = score(inputs)
        turns = [rollout.num_turns for rollout in trainer.played.rollouts]
        seen.append(
            {
                "rows": [int(row["prompt"]) for row in inputs],
                "rewards": list(rewards),
                "advantages": batch["advantages"].flatten().tolist(),
                "idle": list(trainer.idle),
                "turns": turns,
            }
        )
        return batch

    trainer._generate_and_score_completions = watch
    trainer.train(resume_from_checkpoint=last_checkpoint(folder))
    weights = [p.detach().double().sum().item() for p in trainer.model.parameters() if p.requires_grad]
    return {"steps": seen, "weights": weights, "resumes_from": last_checkpoint(folder) is not None}


def split_weights(tokenizer, rank):
    """Ragged episodes on weights that FSDP has split, compared with whole ones; then a backward pass."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from rlcas_utils.grpo.sharded import whole_weights

    whole, model = adapted(tokenizer), adapted(tokenizer)
    mesh = init_device_mesh("cpu", (2,))
    for layer in model.base_model.model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    conversations = lambda: [Scripted(f"case {i}", ["go on"] * (1 + 3 * rank + i)) for i in range(2)]
    sampling = Sampling(max_turn_tokens=6, max_episode_tokens=200, seed=rank)
    with whole_weights(model):
        mine = run_episodes(model, tokenizer, conversations(), sampling)
    expected = run_episodes(whole, tokenizer, conversations(), sampling)
    ids = torch.arange(3, 20)[None]
    model(ids).logits.sum().backward()
    whole(ids).logits.sum().backward()
    name = next(n for n, p in whole.named_parameters() if "lora_B" in n)
    gradient = model.get_parameter(name).grad.full_tensor()
    gap = (gradient - whole.get_parameter(name).grad).abs().max().item()
    return {
        "same": [r.completion_ids for r in mine] == [r.completion_ids for r in expected],
        "turns": sum(r.num_turns for r in mine),
        "gap": gap,
    }


def main(folder):
    """Do all three and leave one JSON file per process."""
    state = PartialState(cpu=True)
    tokenizer = make_tokenizer()
    found = {
        "world": state.num_processes,
        "sft": sft(tokenizer, folder / "sft", state.num_processes),
        "whole_groups": play_grpo(tokenizer, folder / "grpo4", state, 4),
        "split_groups": play_grpo(tokenizer, folder / "grpo8", state, 8),
        "fsdp": split_weights(tokenizer, state.process_index),
    }
    (folder / f"rank{state.process_index}.json").write_text(json.dumps(found), encoding="utf-8")
    state.wait_for_everyone()
    state.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
