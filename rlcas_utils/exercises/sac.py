"""The exercises of notebook 02: the critics' target, the temperature's gradient, the choices left open."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rlcas_utils.exercises.checker import Exercise


def _critic_target(reward_B, terminated_B, truncated_B, next_q_B, next_entropy_B, alpha, gamma):
    next_value_B = next_q_B + alpha * next_entropy_B
    return reward_B + gamma * (1.0 - terminated_B) * next_value_B


def _log_alpha_gradient(logits_BA: Tensor, log_alpha: float, target_entropy: float) -> Tensor:
    log_pi_BA = torch.log_softmax(logits_BA, dim=-1)
    entropy_B = -(log_pi_BA.exp() * log_pi_BA).sum(dim=-1)
    return math.exp(log_alpha) * (entropy_B - target_entropy).mean()


def _choices_left(log_pi_BA: Tensor) -> Tensor:
    entropy_B = -(log_pi_BA.exp() * log_pi_BA).sum(dim=-1)
    return entropy_B.exp()


def _entropy(log_pi_BA: Tensor) -> Tensor:
    return -(log_pi_BA.exp() * log_pi_BA).sum(dim=-1)


def _column(*values: float) -> Tensor:
    return torch.tensor(values)


critic_target = Exercise(
    reference=_critic_target,
    inputs=[
        (_column(1.0), _column(1.0), _column(0.0), _column(2.5), _column(1.3863), 0.2, 0.99),
        (_column(1.0), _column(0.0), _column(1.0), _column(2.5), _column(1.3863), 0.2, 0.99),
        (
            *(_column(1.0, 1.0), _column(0.0, 1.0), _column(0.0, 0.0)),
            *(_column(2.5, 2.5), _column(1.3863, 0.0), 0.2, 0.99),
        ),
    ],
    mistakes={
        "a truncation is treated as an ending.": lambda r, end, cut, q, h, alpha, gamma: (
            r + gamma * (1.0 - torch.maximum(end, cut)) * (q + alpha * h)
        ),
        "the entropy bonus survives the end of the episode.": lambda r, end, cut, q, h, alpha, gamma: (
            r + gamma * ((1.0 - end) * q + alpha * h)
        ),
        "the entropy bonus is missing.": lambda r, end, cut, q, h, alpha, gamma: r + gamma * (1.0 - end) * q,
        "the target bootstraps through the termination.": lambda r, end, cut, q, h, alpha, gamma: (
            r + gamma * (q + alpha * h)
        ),
    },
)
log_alpha_gradient = Exercise(
    reference=_log_alpha_gradient,
    inputs=[
        (torch.zeros(1, 4), 0.0, 1.0),
        (torch.zeros(2, 4), math.log(0.5), 1.0),
        (torch.tensor([[9.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]), 0.0, 1.0),
    ],
    mistakes={
        "the factor alpha is missing: the loss holds exp(log alpha).": (
            lambda logits_BA, log_alpha, target: (_entropy(logits_BA.log_softmax(-1)) - target).mean()
        ),
        "the entropy is a sum over actions, here it was averaged.": lambda logits_BA, log_alpha, target: (
            math.exp(log_alpha) * (_entropy(logits_BA.log_softmax(-1)) / logits_BA.shape[-1] - target).mean()
        ),
        "the entropy's sign is flipped, so alpha would run away.": lambda logits_BA, log_alpha, target: (
            math.exp(log_alpha) * (-_entropy(logits_BA.log_softmax(-1)) - target).mean()
        ),
        "the difference is taken the wrong way round, so alpha would grow with the entropy.": (
            lambda logits_BA, log_alpha, target: -_log_alpha_gradient(logits_BA, log_alpha, target)
        ),
    },
)
choices_left = Exercise(
    reference=_choices_left,
    inputs=[
        (torch.tensor([[0.5, 0.5]]).log(),),
        (torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.97, 0.01, 0.01, 0.01]]).log(),),
    ],
    mistakes={
        "the entropy is a sum over actions, here it was averaged.": (
            lambda log_pi_BA: (_entropy(log_pi_BA) / log_pi_BA.shape[-1]).exp()
        ),
        "the minus sign of the entropy is missing, so more choices give a smaller number.": (
            lambda log_pi_BA: (-_entropy(log_pi_BA)).exp()
        ),
        "the base is 2, but the logarithms are natural ones.": lambda log_pi_BA: 2.0 ** _entropy(log_pi_BA),
        "one number for the whole batch: every state has its own.": (
            lambda log_pi_BA: _entropy(log_pi_BA).mean().exp()
        ),
    },
)
