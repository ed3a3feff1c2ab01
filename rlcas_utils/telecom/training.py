"""Supervised training on expert episodes: one episode a forward pass, one weight per token."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from rlcas_utils.checkpoints import already_trained, last_checkpoint


def weighted_nll(
    logits_BTV: torch.Tensor, input_ids_BT: torch.Tensor, weights_BT: torch.Tensor
) -> torch.Tensor:
    """Mean negative log-likelihood of the next token under per-token weights.

    Args:
        logits_BTV: Scores of the next token at each position.
        input_ids_BT: The episode.
        weights_BT: Weight of each token *as a target*; the first token is never a target.

    Returns:
        Scalar loss in nats.
    """
    logits = logits_BTV[:, :-1].float().flatten(0, 1)
    nll = torch.nn.functional.cross_entropy(logits, input_ids_BT[:, 1:].flatten(), reduction="none")
    weights = weights_BT[:, 1:].flatten()
    return (nll * weights).sum() / weights.sum()


class EpisodeTrainer(SFTTrainer):
    """TRL's SFTTrainer with per-token weights and without padding.

    TRL's masks are all or nothing; here the agent's tokens weigh 1 and the others little, because
    predicting the customer teaches a model without pre-training what the facts mean. One episode a
    forward pass needs no padding and no attention mask, so attention takes its causal fast path (four
    times faster on a CPU).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Each episode is a mean of its own, so the trainer must average over accumulated episodes.
        self.model_accepts_loss_kwargs = False

    def compute_loss(
        self,
        model: torch.nn.Module,
        inputs: dict[str, torch.Tensor],
        return_outputs: bool = False,
        num_items_in_batch: int | None = None,
    ) -> torch.Tensor:
        """Weighted loss of one episode (see `weighted_nll`)."""
        logits_BTV = model(input_ids=inputs["input_ids"], use_cache=False).logits
        return weighted_nll(logits_BTV, inputs["input_ids"], inputs["weights"])


class _Progress(TrainerCallback):
    """A line every tenth of the run: step, loss, time left."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.first_step = 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.start, self.first_step = time.perf_counter(), state.global_step

    def on_log(self, args: Any, state: Any, control: Any, logs: dict | None = None, **kwargs: Any) -> None:
        if not logs or "loss" not in logs or not state.is_world_process_zero:
            return
        done = state.global_step - self.first_step
        left_s = (time.perf_counter() - self.start) / max(1, done) * (state.max_steps - state.global_step)
        loss = f"loss {logs['loss']:.4f}"
        print(
            f"  step {state.global_step:5d} of {state.max_steps}   {loss}   {left_s:4.0f} s left", flush=True
        )


def _one_episode(rows: list[dict[str, list]]) -> dict[str, torch.Tensor]:
    (row,) = rows
    return {"input_ids": torch.tensor([row["input_ids"]]), "weights": torch.tensor([row["weights"]])}


def _settings(
    folder: Path, num_steps: int, episodes_per_step: int, learning_rate: float, bf16: bool, seed: int
) -> SFTConfig:
    return SFTConfig(
        output_dir=str(folder),
        max_steps=num_steps,
        per_device_train_batch_size=1,
        gradient_accumulation_steps=episodes_per_step,
        learning_rate=learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=max(1, num_steps // 20),
        adam_beta2=0.95,
        weight_decay=0.1,
        max_grad_norm=1.0,
        bf16=bf16,
        use_cpu=not torch.cuda.is_available(),
        activation_checkpointing=False,
        logging_steps=max(1, num_steps // 12),
        save_steps=max(1, num_steps // 6),
        save_total_limit=1,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataset_kwargs={"skip_prepare_dataset": True},
        dataloader_pin_memory=False,
        seed=seed,
    )


def train_on_episodes(
    model: torch.nn.Module,
    tokenizer: Any,
    rows: Sequence[dict[str, list]],
    folder: Path,
    *,
    num_steps: int,
    episodes_per_step: int,
    learning_rate: float,
    bf16: bool,
    seed: int,
) -> dict[str, float]:
    """Train a model on token rows; resumes from a checkpoint in the folder.

    Args:
        model: Causal language model, changed in place.
        tokenizer: Its tokenizer.
        rows: From `demonstrations.token_row`.
        folder: For checkpoints and logs.
        num_steps: Optimizer steps.
        episodes_per_step: Episodes per optimizer step and process, one forward pass each.
        learning_rate: Peak; 5 % warm-up, then linear to 0.
        bf16: Autocast to bfloat16 (where the processor has it, it is about twice as fast).
        seed: Of the order of episodes.

    Returns:
        ``loss`` of the last logged steps, ``tokens_per_s`` and ``time_s`` of this process's part.
    """
    config = _settings(folder, num_steps, episodes_per_step, learning_rate, bf16, seed)
    trainer = EpisodeTrainer(
        model=model,
        args=config,
        train_dataset=Dataset.from_list(list(rows)),
        data_collator=_one_episode,
        processing_class=tokenizer,
        callbacks=[_Progress()],
    )
    trainer.remove_callback(PrinterCallback)
    checkpoint = last_checkpoint(folder)
    first = int(checkpoint.rsplit("-", 1)[1]) if checkpoint else 0
    start = time.perf_counter()
    if not already_trained(trainer, checkpoint):
        trainer.train(resume_from_checkpoint=checkpoint)
    seconds = time.perf_counter() - start
    processes = trainer.accelerator.num_processes
    mean_tokens = sum(len(row["input_ids"]) for row in rows) / len(rows)
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return {
        "loss": losses[-1],
        "tokens_per_s": mean_tokens * episodes_per_step * processes * (num_steps - first) / seconds,
        "time_s": seconds,
    }


def run_settings(folder: Path, *, save_steps: int, seed: int, report_to: str) -> dict[str, Any]:
    """What a trainer must be told about this machine and about its bookkeeping; no recipe is in it.

    Args:
        folder: For checkpoints and logs.
        save_steps: Optimizer steps between checkpoints, of which the newest is kept.
        seed: Of the trainer.
        report_to: Tracker, or "none".

    Returns:
        Keyword arguments of TRL's configurations.
    """
    on_gpu = torch.cuda.is_available()
    return {
        "output_dir": str(folder),
        "bf16": has_fast_bf16(),
        "use_cpu": not on_gpu,
        "activation_checkpointing": on_gpu,
        "save_steps": save_steps,
        "save_total_limit": 1,
        "logging_steps": 1,
        "report_to": report_to,
        "disable_tqdm": True,
        "seed": seed,
    }


def has_fast_bf16() -> bool:
    """True where bfloat16 autocast pays: a GPU from Ampere on, or a processor with AVX512-BF16 or AMX."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_capability() >= (8, 0)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
