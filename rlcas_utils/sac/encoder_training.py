"""Tunes the sentence encoder on labelled training messages with the transformers Trainer, resumably."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from rlcas_utils.checkpoints import last_checkpoint
from rlcas_utils.desk.ticket import Ticket
from rlcas_utils.sac.encoder import KINDS, SentenceEncoder

REPORTS = 8  # lines of progress


def tune_encoder(
    encoder: SentenceEncoder,
    tickets: Sequence[Ticket],
    folder: Path,
    *,
    num_steps: int,
    learning_rate: float,
    batch_size: int = 32,
    seed: int = 0,
    report: Callable[[str], None] = print,
) -> float:
    """Train adapter and head to name the kind of request; a second call continues from the folder.

    Args:
        encoder: Changed in place.
        tickets: Training tickets; message and kind are read.
        folder: Checkpoints live here.
        num_steps: Optimiser steps.
        learning_rate: Peak of the linear schedule.
        batch_size: Messages per step.
        seed: Seed of the order.
        report: Takes lines of progress.

    Returns:
        Seconds of training in this call.
    """
    ids = encoder.tokens([ticket.query for ticket in tickets])
    rows = [
        {"input_ids": row, "labels": KINDS.index(ticket.intent)}
        for row, ticket in zip(ids, tickets, strict=True)
    ]
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=num_steps,
        learning_rate=learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=min(40, num_steps // 5),
        per_device_train_batch_size=batch_size,
        train_sampling_strategy="group_by_length",
        weight_decay=0.01,
        seed=seed,
        use_cpu=not torch.cuda.is_available(),
        bf16=not torch.cuda.is_available() or torch.cuda.is_bf16_supported(),  # half the time on a CPU too
        save_steps=max(1, num_steps // 4),
        save_total_limit=1,
        logging_steps=max(1, num_steps // REPORTS),
        disable_tqdm=True,
        report_to=[],
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(encoder, arguments, data_collator=encoder.collate, train_dataset=rows)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(_Report(report))
    started = time.perf_counter()
    trainer.train(resume_from_checkpoint=last_checkpoint(folder))
    return time.perf_counter() - started


class _Report(TrainerCallback):
    """One line per logged step, with the time that is left."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report, self.started, self.first = report, 0.0, 0

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        """Start the clock at the step the run continues from."""
        self.started, self.first = time.perf_counter(), state.global_step

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        """Report a step's loss."""
        if "loss" not in (logs or {}):
            return
        done = state.global_step - self.first
        left_s = (time.perf_counter() - self.started) / done * (state.max_steps - state.global_step)
        self.report(
            f"step {state.global_step}/{state.max_steps}  loss {logs['loss']:.3f}  {left_s:.0f} s left"
        )
