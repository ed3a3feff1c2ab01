"""The equations of SAC-Discrete, each a function of tensors that can be checked with four numbers by hand."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

NEAR_UNIFORM_FRACTION = 0.98  # Christodoulou's value; a policy at this entropy is still close to uniform


def check_target_entropy(target_entropy: float, num_actions: int) -> float:
    """Refuse target entropies that no useful discrete policy can hold.

    Args:
        target_entropy: Wanted policy entropy in nats.
        num_actions: Number of actions A.

    Returns:
        The same target entropy.

    Raises:
        ValueError: If the target is not inside (0, ln A).
    """
    largest = math.log(num_actions)
    if not 0.0 < target_entropy < largest:
        raise ValueError(
            f"target entropy {target_entropy:.4f} nats lies outside (0, ln {num_actions} = {largest:.4f}); "
            "the temperature would run to its clamp and the policy would end uniform or frozen. "
            "Set TARGET_ENTROPY_FRACTION between 0 and 1, for example 0.3."
        )
    # A small tolerance, because 0.98 * ln A is usually typed with four decimals.
    if target_entropy >= (NEAR_UNIFORM_FRACTION - 1e-4) * largest:
        warnings.warn(
            f"target entropy {target_entropy:.4f} is {target_entropy / largest:.3f} of ln {num_actions}: "
            "the policy is held near uniform for the whole run. Lower TARGET_ENTROPY_FRACTION "
            "unless you want to see that.",
            stacklevel=2,
        )
    return target_entropy


def entropy_target(fraction: float, num_actions: int) -> float:
    """Turn a fraction of the largest entropy into nats.

    Args:
        fraction: Share of ln A, strictly between 0 and 1.
        num_actions: Number of actions A.

    Returns:
        fraction * ln A in nats.

    Raises:
        ValueError: If the fraction is not inside (0, 1).
    """
    return check_target_entropy(fraction * math.log(num_actions), num_actions)


def soft_value(q_BA: Tensor, log_pi_BA: Tensor, alpha: float) -> Tensor:
    """Value of a state under the policy, entropy bonus included: a sum over all actions, no sampling.

    Args:
        q_BA: Action values, shape (B, A).
        log_pi_BA: Log-probabilities from log-softmax, shape (B, A).
        alpha: Temperature.

    Returns:
        Soft state value, shape (B,).

    Source: Christodoulou 2019, equation 10.
    """
    return (log_pi_BA.exp() * (q_BA - alpha * log_pi_BA)).sum(dim=-1)


def soft_target(reward_B: Tensor, terminated_B: Tensor, next_value_B: Tensor, gamma: float) -> Tensor:
    """What the critics are trained towards: bootstraps through a truncation, never through a termination.

    Args:
        reward_B: Rewards, shape (B,).
        terminated_B: 1.0 where the episode really ended, else 0.0, shape (B,). A time limit is 0.0.
        next_value_B: Soft value of the next state, shape (B,); its entropy bonus is dropped with it.
        gamma: Discount per step.

    Returns:
        Targets, shape (B,).

    Source: Haarnoja et al. 2018 (arXiv:1801.01290), equation 8.
    """
    return reward_B + gamma * (1.0 - terminated_B) * next_value_B


def critic_loss(q_2BA: Tensor, action_B: Tensor, target_B: Tensor) -> Tensor:
    """Squared error of both critics at the actions taken, averaged over the batch, summed over the critics.

    Args:
        q_2BA: Values of both critics, shape (2, B, A).
        action_B: Actions taken, int64, shape (B,).
        target_B: Targets without gradient, shape (B,).

    Returns:
        Scalar loss.

    Source: Haarnoja et al. 2018 (arXiv:1801.01290), equation 7.
    """
    index_2B1 = action_B.expand(2, -1).unsqueeze(-1)
    q_taken_2B = q_2BA.gather(-1, index_2B1).squeeze(-1)
    return 0.5 * (q_taken_2B - target_B).pow(2).mean(dim=-1).sum()


def actor_loss(log_pi_BA: Tensor, q_BA: Tensor, alpha: float) -> Tensor:
    """Move probability towards actions with a high value, against the pull of the entropy bonus.

    Args:
        log_pi_BA: Log-probabilities with gradient, shape (B, A).
        q_BA: Smaller of the two critics' values, without gradient, shape (B, A).
        alpha: Temperature.

    Returns:
        Scalar loss: the exact expectation over actions, averaged over the batch.

    Source: Christodoulou 2019, equation 12.
    """
    return (log_pi_BA.exp() * (alpha * log_pi_BA - q_BA)).sum(dim=-1).mean()


def alpha_loss(log_alpha: Tensor, entropy_B: Tensor, target_entropy: float) -> Tensor:
    """Raise the temperature while the policy is below its target entropy, lower it while above.

    Args:
        log_alpha: Logarithm of the temperature, scalar with gradient.
        entropy_B: Policy entropies without gradient, shape (B,).
        target_entropy: Wanted entropy in nats.

    Returns:
        Scalar loss.

    Source: Christodoulou 2019, equation 11.
    """
    return log_alpha.exp() * (entropy_B - target_entropy).mean()


def policy_entropy(log_pi_BA: Tensor) -> Tensor:
    """Entropy of each row's distribution in nats.

    Args:
        log_pi_BA: Log-probabilities, shape (B, A).

    Returns:
        Entropies, shape (B,).
    """
    return -(log_pi_BA.exp() * log_pi_BA).sum(dim=-1)


def clamp_log_alpha(log_alpha: Tensor, alpha_range: tuple[float, float]) -> None:
    """Keep the temperature finite whatever the entropy does, in place.

    Args:
        log_alpha: Logarithm of the temperature, scalar.
        alpha_range: Smallest and largest temperature allowed.
    """
    low, high = alpha_range
    with torch.no_grad():
        log_alpha.clamp_(math.log(low), math.log(high))
