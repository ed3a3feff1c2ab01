"""The two networks: a policy over the actions, and two critics computed as one batched matrix product.

Hidden layers are normalised before the ReLU. Without that the critics' errors on actions that were never
tried grow with every update, and more updates per step make the policy worse instead of better.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm


class Actor(nn.Module):
    """Multi-layer perceptron from an observation to log-probabilities of all actions."""

    def __init__(self, observation_size: int, num_actions: int, hidden_sizes: Sequence[int]) -> None:
        """Build the layers.

        Args:
            observation_size: Length O of an observation.
            num_actions: Number of actions A.
            hidden_sizes: Widths of the hidden layers, for example (256, 256).
        """
        super().__init__()
        self.sizes = [observation_size, *hidden_sizes, num_actions]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(self.sizes))

    def forward(self, observation_BO: Tensor) -> Tensor:
        """Return log-probabilities, shape (B, A); log-softmax stays finite where log(softmax) would not."""
        hidden = observation_BO
        for layer in self.layers[:-1]:
            hidden = torch.relu(_normalised(layer(hidden)))
        return torch.log_softmax(self.layers[-1](hidden), dim=-1)


class TwinCritic(nn.Module):
    """Two independent Q-networks whose weights are stacked, so that one `baddbmm` a layer serves both."""

    def __init__(self, observation_size: int, num_actions: int, hidden_sizes: Sequence[int]) -> None:
        """Build the stacked layers with the initialisation of `nn.Linear`.

        Args:
            observation_size: Length O of an observation.
            num_actions: Number of actions A.
            hidden_sizes: Widths of the hidden layers.
        """
        super().__init__()
        sizes = [observation_size, *hidden_sizes, num_actions]
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for size_in, size_out in itertools.pairwise(sizes):
            bound = 1.0 / math.sqrt(size_in)
            self.weights.append(nn.Parameter(torch.empty(2, size_in, size_out).uniform_(-bound, bound)))
            self.biases.append(nn.Parameter(torch.empty(2, 1, size_out).uniform_(-bound, bound)))

    def forward(self, observation_BO: Tensor) -> Tensor:
        """Return the values of both critics, shape (2, B, A)."""
        hidden_2BH = observation_BO.expand(2, *observation_BO.shape)
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden_2BH = torch.baddbmm(bias, hidden_2BH, weight)
            if i < last:
                hidden_2BH = torch.relu(_normalised(hidden_2BH))
        return hidden_2BH


def _normalised(hidden: Tensor) -> Tensor:
    """Zero mean and unit variance over the last axis, without learned scale (Ba et al. 2016, section 3)."""
    return layer_norm(hidden, hidden.shape[-1:])


def track(target: nn.Module, source: nn.Module, tau: float) -> None:
    """Move the target network a small step towards its source: target += tau * (source - target).

    Args:
        target: Slow copy, changed in place.
        source: Network being trained.
        tau: Step, 0 < tau <= 1.

    Source: Haarnoja et al. 2018 (arXiv:1801.01290), algorithm 1.
    """
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), source.parameters(), strict=True):
            slow.lerp_(fast, tau)
