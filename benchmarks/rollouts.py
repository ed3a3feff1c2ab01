"""Times the rollout engine beside plain `generate` that reads the whole context again at every turn.

Both play the same scripted episodes with the same random-weight model under greedy decoding, in one process,
and the tokens are compared. Presets: `desk` is 16 short episodes with a model of SmolLM2-135M's shape,
`telecom` is 8 episodes of about 20 turns with a small Qwen3.

    python benchmarks/rollouts.py --preset telecom
"""

import argparse
import time
from dataclasses import dataclass
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM

from rlcas_utils import language
from rlcas_utils.rollouts import Sampling, render_prompt, run_episodes, turn_suffix

WORDS = ("the", "order", "is", "late", "please", "check", "the", "line", "again", "and", "tell", "me", "what")


@dataclass(frozen=True)
class Preset:
    """Shape of the model and of the episodes; lengths in tokens or words."""

    config: Any
    model_class: type[PreTrainedModel]
    num_episodes: int
    turns: tuple[int, int]
    prompt_words: int
    line_words: int
    turn_tokens: int


PRESETS = {
    "desk": Preset(
        LlamaConfig(
            hidden_size=576,
            intermediate_size=1536,
            num_hidden_layers=30,
            num_attention_heads=9,
            num_key_value_heads=3,
            initializer_range=0.06,
        ),
        LlamaForCausalLM,
        num_episodes=16,
        turns=(2, 4),
        prompt_words=80,
        line_words=8,
        turn_tokens=32,
    ),
    "telecom": Preset(
        Qwen3Config(
            hidden_size=256,
            intermediate_size=768,
            num_hidden_layers=6,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=64,
            initializer_range=0.08,
        ),
        Qwen3ForCausalLM,
        num_episodes=8,
        turns=(17, 23),
        prompt_words=200,
        line_words=10,
        turn_tokens=32,
    ),
}


class ScriptedEpisode:
    """Says a prepared number of lines."""

    def __init__(self, preset: Preset, index: int) -> None:
        """Spreads the number of turns evenly over the preset's range."""
        low, high = preset.turns
        self.num_lines = low + index % (high - low + 1) - 1
        self.line = words(preset.line_words, index)
        system = words(preset.prompt_words, 0)
        self.messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": f"case {index}: {self.line}"},
        ]
        self.heard = 0

    def reply(self, text: str, *, truncated: bool = False) -> str | None:
        """Answers with the same line until there are no more."""
        self.heard += 1
        return f"{self.heard}: {self.line}" if self.heard <= self.num_lines else None

    def abandon(self, reason: str) -> None:
        """The budget is ample; running out of it would spoil the comparison."""
        raise RuntimeError(f"episode abandoned: {reason}")


def make_episodes(preset: Preset, count: int) -> list[ScriptedEpisode]:
    """Returns `count` fresh episodes, the same at every call."""
    return [ScriptedEpisode(preset, index) for index in range(count)]


def words(count: int, start: int) -> str:
    """Returns `count` words of filler."""
    return " ".join(WORDS[(start + k) % len(WORDS)] for k in range(count))


@torch.no_grad()
def reread_episodes(
    model: PreTrainedModel, tokenizer: Any, episodes: list[ScriptedEpisode], sampling: Sampling
) -> list[list[int]]:
    """Plays all episodes with one left-padded `generate` call per turn over every live episode."""
    prompts = [render_prompt(tokenizer, episode.messages) for episode in episodes]
    completions: list[list[int]] = [[] for _ in episodes]
    live = list(range(len(episodes)))
    while live:
        contexts = [prompts[i] + completions[i] for i in live]
        width = max(map(len, contexts))
        ids = torch.tensor([[0] * (width - len(c)) + c for c in contexts])
        mask = torch.tensor([[0] * (width - len(c)) + [1] * len(c) for c in contexts])
        out = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=sampling.max_turn_tokens,
            do_sample=False,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
        still_live = []
        for i, row in zip(live, out[:, width:].tolist(), strict=True):
            end = row.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in row else len(row)
            new = row[:end]
            completions[i] += new
            line = episodes[i].reply(tokenizer.decode(new), truncated=new[-1] != tokenizer.eos_token_id)
            if line is not None:
                closing = [] if new[-1] == tokenizer.eos_token_id else [tokenizer.eos_token_id]
                completions[i] += closing + turn_suffix(tokenizer, line)
                still_live.append(i)
        live = still_live
    return completions


def build_model(preset: Preset, tokenizer: Any) -> PreTrainedModel:
    """Makes the preset's model with random weights and the tokenizer's vocabulary."""
    config = preset.config
    config.vocab_size = len(tokenizer)
    config.max_position_embeddings = 8192
    config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    config.bos_token_id = tokenizer.bos_token_id
    torch.manual_seed(0)
    return preset.model_class(config).eval()


def main() -> None:
    """Runs both ways once and prints seconds, tokens and the ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--preset", choices=sorted(PRESETS), default="telecom")
    parser.add_argument("--tokenizer", default="tiny", help="name or folder; its size sets the vocabulary")
    parser.add_argument("--episodes", type=int, default=0, help="0 keeps the preset's number")
    arguments = parser.parse_args()
    preset = PRESETS[arguments.preset]
    count = arguments.episodes or preset.num_episodes
    tokenizer = language.load_tokenizer(arguments.tokenizer)
    model = build_model(preset, tokenizer)
    sampling = Sampling(temperature=0, max_turn_tokens=preset.turn_tokens, max_episode_tokens=6000)

    start = time.perf_counter()
    rollouts = run_episodes(model, tokenizer, make_episodes(preset, count), sampling)
    engine_s = time.perf_counter() - start
    start = time.perf_counter()
    plain = reread_episodes(model, tokenizer, make_episodes(preset, count), sampling)
    reread_s = time.perf_counter() - start

    same = sum(r.completion_ids == p for r, p in zip(rollouts, plain, strict=True))
    sampled = sum(sum(r.env_mask) for r in rollouts)
    longest = max(len(r.prompt_ids) + len(r.completion_ids) for r in rollouts)
    size = sum(p.numel() for p in model.parameters()) / 1e6
    print(f"{arguments.preset}: {count} episodes, {size:.1f}M parameters")
    print(f"{sampled} sampled tokens, longest episode {longest} tokens")
    print(f"engine {engine_s:.2f} s   re-reading generate {reread_s:.2f} s   ratio {reread_s / engine_s:.2f}")
    print(f"same tokens in {same} of {count} episodes")


if __name__ == "__main__":
    main()
