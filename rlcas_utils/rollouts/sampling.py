"""Draws the next token of every row, each row from its own random stream."""

import random
from dataclasses import dataclass

import torch


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How turns are drawn and how long they may get.

    Attributes:
        max_turn_tokens: A turn without an end token is cut here and reported as truncated.
        max_episode_tokens: All tokens after the opening prompt, the environment's included. A turn starts
            only if it still has its full `max_turn_tokens`; otherwise the episode is abandoned.
        temperature: 0 takes the most probable token.
        top_p: Probability mass to draw from; 1 draws from all tokens.
        max_batch: Episodes in flight at once.
        seed: Fixes every draw. None takes a seed from torch's global generator, which a trainer saves and
            restores.
        reply_threads: 0 asks the environment in line. More lets customers behind a network answer side by
            side.
    """

    max_turn_tokens: int
    max_episode_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    max_batch: int = 32
    seed: int | None = None
    reply_threads: int = 0

    def __post_init__(self) -> None:
        if self.temperature < 0 or not 0 < self.top_p <= 1:
            raise ValueError(
                f"temperature {self.temperature} and top_p {self.top_p}: no distribution to sample from. "
                "Use temperature >= 0 and 0 < top_p <= 1."
            )
        if not 1 <= self.max_turn_tokens <= self.max_episode_tokens:
            raise ValueError(
                f"max_turn_tokens {self.max_turn_tokens} does not fit max_episode_tokens "
                f"{self.max_episode_tokens}; no episode could hold one turn. Raise the episode budget."
            )
        if self.max_batch < 1:
            raise ValueError(f"max_batch is {self.max_batch}; no episode could run. Set it to 1 or more.")


def random_streams(seed: int | None, count: int) -> list[random.Random]:
    """Makes one random stream per episode, so that no draw depends on which other episodes are in the batch.

    Args:
        seed: None takes the seed from torch's global generator.
        count: Number of episodes.
    """
    base = int(torch.randint(0, 2**31 - 1, (1,)).item()) if seed is None else seed
    return [random.Random(f"{base}/{index}") for index in range(count)]


def draw_tokens(
    logits_BV: torch.Tensor, uniforms: list[float], sampling: Sampling
) -> tuple[list[int], list[float]]:
    """Draws one token per row and returns it with its log-probability.

    The log-probability is that of the tempered distribution before `top_p` cuts it: the number a trainer
    computes again from the same logits.

    Args:
        logits_BV: Next-token logits.
        uniforms: One number in [0, 1) per row; the draw inverts the cumulative distribution.
        sampling: Temperature and top_p.
    """
    greedy = sampling.temperature == 0
    logp_BV = torch.log_softmax(logits_BV.float() / (1.0 if greedy else sampling.temperature), dim=-1)
    if greedy:
        tokens_B1 = logp_BV.argmax(dim=-1, keepdim=True)
    else:
        tokens_B1 = _invert(_cut_tail(logp_BV.exp(), sampling.top_p), uniforms)
    return tokens_B1.squeeze(-1).tolist(), logp_BV.gather(-1, tokens_B1).squeeze(-1).tolist()


def _cut_tail(p_BV: torch.Tensor, top_p: float) -> torch.Tensor:
    """Sets to 0 the least probable tokens beyond a mass of `top_p`; the token that crosses it stays."""
    if top_p >= 1:
        return p_BV
    sorted_BV, order_BV = p_BV.sort(dim=-1, descending=True)
    before_BV = sorted_BV.cumsum(dim=-1) - sorted_BV
    kept_BV = sorted_BV.masked_fill(before_BV >= top_p, 0.0)
    return torch.zeros_like(p_BV).scatter(-1, order_BV, kept_BV)


def _invert(p_BV: torch.Tensor, uniforms: list[float]) -> torch.Tensor:
    """Finds the first token whose cumulative probability exceeds the row's uniform number."""
    cdf_BV = p_BV.cumsum(dim=-1)
    target_B1 = torch.tensor(uniforms, dtype=cdf_BV.dtype, device=cdf_BV.device)[:, None] * cdf_BV[:, -1:]
    return torch.searchsorted(cdf_BV, target_B1, right=True).clamp(max=p_BV.shape[-1] - 1)
