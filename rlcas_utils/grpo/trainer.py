"""TRL's GRPO trainer with whole episodes as completions, played by the rollout engine in a live environment.

Departures from TRL's defaults, each for a measured reason:

1. Rollouts run with dropout off and keep the sampled token ids; nothing is tokenised again.
2. The KL reference is the policy as it was handed over. TRL would load full weights again from the hub name.
3. Adapter weights stay in float32. TRL casts them to bfloat16 over a 4-bit base, where small steps are lost.
4. Episodes of dead groups are left out of the update, KL term included, as in DAPO's dynamic sampling. With
   one episode per pass that saves their passes too.
5. Micro-batches lose the padding that only longer episodes of other micro-batches need; on a CPU, where rows
   side by side save nothing, each row goes through alone.
6. The head scores the policy's own tokens only; on a CPU, 4-bit weights are expanded once per training.
"""

import copy
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback

from rlcas_utils.checkpoints import already_trained
from rlcas_utils.grpo.advantages import dead_group_rate, dead_groups
from rlcas_utils.grpo.batches import plan_batches
from rlcas_utils.grpo.playing import Player
from rlcas_utils.grpo.scoring import LeanScoring
from rlcas_utils.grpo.sharded import whole_weights
from rlcas_utils.grpo.step_log import StepReport
from rlcas_utils.grpo.steps import StepCredit, StepCredits
from rlcas_utils.language.cpu import compact_lm_head, refuse_gpu_optimizer
from rlcas_utils.rollouts import Conversation, Engine, Sampling, run_episodes
from rlcas_utils.rollouts.expanded import expanded_weights

os.environ.setdefault(
    "TRL_EXPERIMENTAL_SILENCE", "1"
)  # rollout_func is announced as experimental at each start

from trl import GRPOConfig, GRPOTrainer
from trl.models import unwrap_model_for_generation
from trl.trainer.utils import add_fused_lm_head


class EpisodicGRPOTrainer(StepCredits, LeanScoring, GRPOTrainer):
    """GRPO on episodes. Made by `make_grpo_trainer`."""

    def __init__(self, model: Any, player: Player, num_rows: int, config: GRPOConfig, **kwargs: Any) -> None:
        """Takes the policy, who plays its episodes, and TRL's own arguments."""
        weights = {name: p.detach().clone() for name, p in model.named_parameters() if _is_adapter(name)}
        beta, is_adapter = config.beta, hasattr(model, "peft_config")
        config = copy.copy(config)
        config.disable_dropout = True
        reference = None
        if beta and not is_adapter:
            reference = copy.deepcopy(model)
            config.beta = 0.0
        super().__init__(
            model=model,
            args=config,
            reward_funcs=env_return,
            # A prompt is only the number of its row: messages are rendered by the rollout engine.
            train_dataset=Dataset.from_dict({"prompt": [str(n) for n in range(num_rows)]}),
            rollout_func=lambda prompts, trainer: trainer.play([int(prompt) for prompt in prompts]),
            **kwargs,
        )
        for name, parameter in self.model.named_parameters():
            if name in weights:
                parameter.data = weights[name].to(parameter.device, torch.float32)
        if reference is not None:
            self._use_reference(reference, beta)
        self.remove_callback(PrinterCallback)
        self.player = player
        self._report = StepReport(Path(config.output_dir))

    def _use_reference(self, reference: Any, beta: float) -> None:
        """Sets a frozen copy of the starting policy as KL reference."""
        reference.requires_grad_(False)
        add_fused_lm_head(reference, temperature=self.temperature)
        self.ref_model = self.accelerator.prepare_model(reference, evaluation_mode=True)
        self.beta = self.args.beta = beta

    def play(self, rows: list[int]) -> dict[str, list]:
        """Plays one episode per received row number and returns what TRL trains on.

        Args:
            rows: Row numbers, each repeated once per group member.
        """
        start = time.monotonic()
        with self._playing_policy() as model:
            played = self.player.play(model, rows, self.num_generations)
        seconds = time.monotonic() - start
        for name, value in played.metrics.items():
            self._log_metric(name, value)
        sampled = sum(sum(rollout.env_mask) for rollout in played.rollouts)
        self._log_metric("tokens_per_s", sampled / max(seconds, 1e-9))
        self._report.add_rollout(seconds, played.rows)
        self.played, self.idle = played, played.idle
        masks = [torch.tensor(rollout.env_mask) for rollout in played.rollouts]
        self.spoken = torch.nn.utils.rnn.pad_sequence(masks, batch_first=True)
        # From here on TRL weighs tokens by trainer over sampler probability, as with a vLLM of its own.
        self.use_vllm = self.player.engine is not run_episodes
        return {
            "prompt_ids": [rollout.prompt_ids for rollout in played.rollouts],
            "completion_ids": [rollout.completion_ids for rollout in played.rollouts],
            "logprobs": [rollout.logprobs for rollout in played.rollouts],
            "env_mask": [rollout.env_mask for rollout in played.rollouts],
            "env_return": played.rewards,
        }

    @contextmanager
    def _playing_policy(self) -> Iterator[Any]:
        """The policy with all its weights on this process, so that each can play turns of its own."""
        with (
            unwrap_model_for_generation(
                self.model_wrapped,
                self.accelerator,
                gather_deepspeed3_params=self.args.ds3_gather_for_generation,
                gradient_checkpointing_kwargs=self.args.gradient_checkpointing_kwargs,
            ) as model,
            whole_weights(model),
        ):
            yield model

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Notes which groups are dead, seen over all processes; TRL's own count leaves out unscored ones."""
        rewards = super()._calculate_rewards(*args, **kwargs)
        reward_PG = rewards[:, 0].view(-1, self.num_generations)
        self._metrics["train"]["dead_group_rate"].append(dead_group_rate(reward_PG))
        dead = dead_groups(reward_PG).repeat_interleave(self.num_generations).tolist()
        own = len(dead) // self.accelerator.num_processes
        self.idle = dead[own * self.accelerator.process_index :][:own]
        return rewards

    def train(self, resume_from_checkpoint: str | bool | None = None, **kwargs: Any) -> Any:
        """Trains; the step log keeps only what the checkpoint knows.

        On a CPU, 4-bit weights stay expanded from the first step to the last: an update would expand them
        three times per episode, and playing needs them expanded anyway.
        """
        done = int(str(resume_from_checkpoint).rsplit("-", 1)[-1]) if resume_from_checkpoint else 0
        self._report.start(done, write=self.accelerator.is_main_process)
        if already_trained(self, resume_from_checkpoint):
            return None
        with compact_lm_head(), expanded_weights(self.model):
            return super().train(resume_from_checkpoint=resume_from_checkpoint, **kwargs)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Logs as TRL does, and writes the row of a training step to the step log."""
        is_step = "loss" in logs
        super().log(logs, start_time)
        if is_step and self.accelerator.is_main_process:
            self._report.finish(self.state.global_step, self.state.max_steps, logs)

    def save_policy(self, folder: Path) -> None:
        """Saves the policy alone: of an adapter without its frozen reference copy.

        Args:
            folder: Target folder.
        """
        model = self.accelerator.unwrap_model(self.model)
        only = {"selected_adapters": ["default"]} if hasattr(model, "peft_config") else {}
        model.save_pretrained(str(folder), **only)


def make_grpo_trainer(
    model: Any,
    tokenizer: Any,
    rows: Sequence[dict[str, Any]],
    make_conversation: Callable[[dict[str, Any]], Conversation],
    reward: Callable[[Conversation], float | None],
    config: GRPOConfig,
    sampling: Sampling,
    metrics: Callable[[list[Conversation]], dict[str, float]] | None = None,
    redraws: int = 0,
    callbacks: Sequence[Any] = (),
    engine: Engine = run_episodes,
    credit: StepCredit | None = None,
) -> EpisodicGRPOTrainer:
    """Makes a trainer whose completions are whole episodes.

    Args:
        model: Policy: a PEFT model with its adapter trainable (from SFT), or a plain model to train in full.
            With `config.beta` above 0 the KL reference is this policy as it is now.
        tokenizer: Its ChatML tokenizer.
        rows: One per prompt. All members of a group get the same row, so a seed in it is shared by the group.
        make_conversation: Opens the environment for a row.
        reward: Return of a finished conversation. None: could not be scored; it then moves nothing.
        config: TRL's settings. `max_completion_length` must be the sampling's `max_episode_tokens`.
        sampling: Temperature and limits; its seed is ignored, the trainer's generator decides.
        metrics: Extra numbers over the conversations of a step, logged each step.
        redraws: How often a dead group may be replaced by a group of another row before it is accepted.
        callbacks: Of transformers.
        engine: Who samples the tokens. With another than the default, the loss weighs each token by trainer
            over sampler probability (`GRPOConfig.vllm_importance_sampling_mode`).
        credit: How turns are credited beside their episode; conversations must then note `anchors`.

    Raises:
        ValueError: Settings that do not fit together.
    """
    _check_settings(config, sampling)
    player = Player(
        tokenizer, rows, make_conversation, reward, replace(sampling, seed=None), metrics, redraws, engine
    )
    trainer = EpisodicGRPOTrainer(
        model, player, len(rows), config, processing_class=tokenizer, callbacks=list(callbacks)
    )
    trainer.credit = credit
    return trainer


def env_return(completions: list[str], env_return: list[float | None], **_: Any) -> list[float | None]:
    """Hands the episodes' returns to TRL; its name is the reward's name in the log."""
    return env_return


def _check_settings(config: GRPOConfig, sampling: Sampling) -> None:
    refuse_gpu_optimizer(config.optim)
    plan_batches(
        config.per_device_train_batch_size,
        config.steps_per_generation,
        config.num_generations,
        num_processes=config.world_size,
    )
    pairs = {
        "temperature": (config.temperature, sampling.temperature),
        "top_p": (config.top_p, sampling.top_p),
        "max_completion_length": (config.max_completion_length, sampling.max_episode_tokens),
    }
    for name, (trainer, sampler) in pairs.items():
        if trainer != sampler:
            raise ValueError(
                f"GRPOConfig.{name} is {trainer} and the sampling's is {sampler}; the trainer would score "
                "another distribution than the one sampled from. Give both the same value."
            )
    if sampling.temperature == 0:
        raise ValueError("temperature is 0; a group would be copies of one episode. Use about 1.")
    if config.use_vllm:
        raise ValueError(
            "use_vllm is set; TRL's own vLLM plays no episodes, and it would merge the adapter into 4-bit "
            "weights. Leave it off and pass a vLLM engine."
        )


def _is_adapter(name: str) -> bool:
    return ".lora_" in name and ".default." in name
