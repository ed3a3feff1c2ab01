"""One learner: the networks, their optimisers, and the update that turns a batch into a better policy."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import Tensor

from rlcas_utils.sac.buffer import Batch
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.losses import (
    actor_loss,
    alpha_loss,
    clamp_log_alpha,
    critic_loss,
    entropy_target,
    policy_entropy,
    soft_target,
    soft_value,
)
from rlcas_utils.sac.networks import Actor, TwinCritic, track


class SacLearner:
    """Actor, twin critics, target critics and temperature, trained together."""

    def __init__(self, observation_size: int, num_actions: int, config: SacConfig, seed: int) -> None:
        """Build everything from the seed.

        Args:
            observation_size: Length O of an observation.
            num_actions: Number of actions A.
            config: Settings of the run.
            seed: Seed of the initial weights.
        """
        self.config = config
        self.entropy_ends = tuple(
            entropy_target(fraction, num_actions)
            for fraction in (config.initial_entropy_fraction, config.target_entropy_fraction)
        )
        self.target_entropy = self.entropy_ends[0]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.actor = Actor(observation_size, num_actions, config.hidden_sizes)
            self.critic = TwinCritic(observation_size, num_actions, config.hidden_sizes)
        self.target_critic = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_alpha = torch.tensor(math.log(config.initial_alpha), requires_grad=True)
        self.optimisers = {
            "actor": self._adamw(self.actor.parameters(), config.actor_lr),
            "critic": self._adamw(self.critic.parameters(), config.critic_lr),
            "alpha": torch.optim.Adam([self.log_alpha], lr=config.alpha_lr),
        }

    def _adamw(self, parameters, lr: float) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=lr, weight_decay=self.config.weight_decay, fused=True)

    def schedule(self, share_done: float) -> None:
        """Set target entropy and learning rates for this point of the run.

        Args:
            share_done: Episodes done as a share of all, 0 to 1.
        """
        first, last = self.entropy_ends
        self.target_entropy = first + (last - first) * min(1.0, share_done / self.config.anneal_share)
        factor = 1.0 - (1.0 - self.config.final_lr_share) * max(0.0, 2.0 * share_done - 1.0)
        for name, lr in (("actor", self.config.actor_lr), ("critic", self.config.critic_lr)):
            for group in self.optimisers[name].param_groups:
                group["lr"] = lr * factor

    @property
    def alpha(self) -> float:
        """Current temperature."""
        return math.exp(self.log_alpha.item())

    @torch.no_grad()
    def log_policy(self, observation: np.ndarray) -> np.ndarray:
        """Log-probabilities of all actions for one observation, shape (A,)."""
        return self.actor(torch.from_numpy(observation).unsqueeze(0))[0].numpy()

    def update(self, batch: Batch) -> None:
        """Take one gradient step on critics, actor and temperature, and move the target critics.

        Args:
            batch: Transitions from the replay buffer, rewards in environment units.
        """
        alpha = self.alpha
        q_2BA = self.critic(batch.observation_BO)
        self._step("critic", critic_loss(q_2BA, batch.action_B, self._target(batch, alpha)))
        log_pi_BA = self.actor(batch.observation_BO)
        # The critics' values from just before their step: saves a third forward pass a round.
        self._step("actor", actor_loss(log_pi_BA, q_2BA.detach().amin(dim=0), alpha))
        entropy_B = policy_entropy(log_pi_BA.detach())
        self._step("alpha", alpha_loss(self.log_alpha, entropy_B, self.target_entropy))
        clamp_log_alpha(self.log_alpha, self.config.alpha_range)
        track(self.target_critic, self.critic, self.config.tau)

    @torch.no_grad()
    def _target(self, batch: Batch, alpha: float) -> Tensor:
        next_q_BA = self.target_critic(batch.next_observation_BO).amin(dim=0)
        next_value_B = soft_value(next_q_BA, self.actor(batch.next_observation_BO), alpha)
        return soft_target(batch.reward_B, batch.terminated_B, next_value_B, self.config.gamma)

    def _step(self, name: str, loss: Tensor) -> None:
        optimiser = self.optimisers[name]
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
