"""The phases of the GPU check: two steps of each training at the profile's sizes, and what each one took."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from trl import GRPOConfig, SFTConfig

from rlcas_utils import grpo, language
from rlcas_utils.language.sft import IGNORED, TokenRows
from rlcas_utils.machine import peak_rss_gib
from rlcas_utils.memory_plan import DESK_PROMPT, TELECOM_PROMPT
from rlcas_utils.rollouts import Sampling
from rlcas_utils.run.gpu_parts import Endless, Phase, StopAt, build_model, filler, free_memory

STEPS = 2
TURN_TOKENS = 32
REPLY_SHARE = 20  # replies fill the episode in about this many turns
SCALE = 16  # lengths are divided by it on a CPU


def run_phases(
    values: Mapping[str, Mapping[str, Any]], scratch: Path, on_gpu: bool, deadline: float
) -> list[Phase]:
    """Run all phases.

    Args:
        values: Parameters of the notebooks by stem.
        scratch: For weights and checkpoints.
        on_gpu: Real sizes.
        deadline: In `time.monotonic` seconds; later steps are left out.
    """
    phases: list[Phase] = []
    desk, telecom = values["04_qlora_sft"], values["06_tau2_telecom_grpo"]
    with _loaded_model(desk, scratch / "desk", on_gpu, phases) as loaded:
        phases += _sft(loaded, desk, scratch / "sft")
        settings = dict(values["05_grpo"], prompt=DESK_PROMPT)
        phases += _play(loaded, settings, scratch / "05", "05", deadline)
    with _loaded_model(telecom, scratch / "telecom", on_gpu, phases) as loaded:
        settings = {
            **telecom,
            "prompt": TELECOM_PROMPT,
            "GROUP_SIZE": telecom["MAX_BATCH"],
            "PROMPTS_PER_STEP": 1,
            "EPISODES_PER_PASS": telecom["GRPO_BATCH"],
            "ROLLOUT_BATCH": telecom["MAX_BATCH"],
            "BETA": telecom["GRPO_KL"],
            "CHECKPOINTING": True,
        }
        phases += _play(loaded, settings, scratch / "06", "06", deadline)
    return phases


@dataclass
class _Loaded:
    model: Any
    tokenizer: Any
    on_gpu: bool

    def length(self, tokens: int) -> int:
        return tokens if self.on_gpu else max(8, tokens // SCALE)

    @property
    def common(self) -> dict[str, Any]:
        return {
            "max_steps": STEPS,
            "bf16": self.on_gpu and torch.cuda.get_device_capability() >= (8, 0),
            "use_cpu": not self.on_gpu,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": "none",
            "disable_tqdm": True,
            "seed": 0,
        }


@contextmanager
def _loaded_model(
    values: Mapping[str, Any], folder: Path, on_gpu: bool, phases: list[Phase]
) -> Iterator[_Loaded]:
    """A policy loaded as the notebooks load it, gone afterwards."""
    name = values["MODEL"]
    with _measured() as seen:
        build_model(name, folder, on_gpu)
        model = language.load_model(folder, quantize=values["QUANTIZE"])
        model = language.attach_lora(model, r=values["LORA_R"], alpha=values["LORA_ALPHA"])
    phases.append(Phase(f"load {name.split('/')[-1][:16]}", "", 0, *seen()))
    loaded = _Loaded(model, language.load_tokenizer(folder), on_gpu)
    yield loaded
    loaded.model = None  # the caller still holds `loaded`
    del model
    free_memory()


def _sft(loaded: _Loaded, values: Mapping[str, Any], folder: Path) -> list[Phase]:
    length = loaded.length(values["MAX_TOKENS"])
    count = values["BATCH_SIZE"] * values["ACCUMULATION"] * STEPS
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(10, 400, (count, length), generator=generator).tolist()
    cut = length * 3 // 4  # about a quarter of a chat are answers
    rows = TokenRows([{"input_ids": i, "labels": [IGNORED] * cut + i[cut:]} for i in ids], 0, 0, 0)
    config = SFTConfig(
        output_dir=str(folder),
        per_device_train_batch_size=values["BATCH_SIZE"],
        gradient_accumulation_steps=values["ACCUMULATION"],
        learning_rate=values["LEARNING_RATE"],
        activation_checkpointing=values["CHECKPOINTING"],
        max_length=None,
        eval_strategy="no",
        **loaded.common,
    )
    quiet = lambda line: None
    with _measured() as seen:
        trainer = language.make_sft_trainer(loaded.model, loaded.tokenizer, config, rows, rows, quiet)
        language.train_or_resume(trainer)
    peak, _, seconds = seen()
    return [Phase("04 SFT", "04 training", STEPS, peak, count * length / seconds, seconds)]


def _play(
    loaded: _Loaded, values: Mapping[str, Any], folder: Path, number: str, deadline: float
) -> list[Phase]:
    length = loaded.length(values["MAX_EPISODE_TOKENS"])
    opening = filler(loaded.tokenizer, loaded.length(values["prompt"]))
    reply = filler(loaded.tokenizer, max(1, length // REPLY_SHARE - TURN_TOKENS))
    turn = min(TURN_TOKENS, values["MAX_TURN_TOKENS"], length // 2)
    episodes = values["GROUP_SIZE"] * values["PROMPTS_PER_STEP"]
    config = GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=values["EPISODES_PER_PASS"],
        gradient_accumulation_steps=episodes // values["EPISODES_PER_PASS"],
        num_generations=values["GROUP_SIZE"],
        max_completion_length=length,
        learning_rate=1e-6,
        beta=values["BETA"],
        temperature=1.0,
        activation_checkpointing=values["CHECKPOINTING"],
        **loaded.common,
    )
    sampling = Sampling(max_turn_tokens=turn, max_episode_tokens=length, max_batch=values["ROLLOUT_BATCH"])
    with _measured() as seen:
        trainer = grpo.make_grpo_trainer(
            loaded.model,
            loaded.tokenizer,
            [{} for _ in range(values["PROMPTS_PER_STEP"])],
            lambda row: Endless(opening, reply),
            lambda conversation: float(len(conversation.heard)),
            config,
            sampling,
            callbacks=[StopAt(deadline)],
        )
        trainer.train()
    peak, _, _ = seen()
    steps = grpo.read_steps(folder)
    trained = sum(row["episode_tokens"] for row in steps) * episodes
    playing, updating = (sum(row[name] for row in steps) for name in ("rollout_s", "update_s"))
    sampled = sum(row["tokens_per_s"] * row["rollout_s"] for row in steps)
    return [
        Phase(f"{number} GRPO, playing", f"{number} playing", len(steps), peak, sampled / playing, playing),
        Phase(f"{number} GRPO, update", f"{number} training", len(steps), peak, trained / updating, updating),
    ]


@contextmanager
def _measured() -> Iterator[Any]:
    """Yields a function that returns, after the block, (peak GiB, no tokens per second, seconds)."""
    free_memory()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    start, found = time.monotonic(), []

    def seen() -> tuple[float, float, float]:
        return tuple(found)

    yield seen
    gpu = torch.cuda.is_available()
    peak = torch.cuda.max_memory_allocated() / 2**30 if gpu else peak_rss_gib()
    found += [round(peak, 3), 0.0, round(time.monotonic() - start, 2)]
