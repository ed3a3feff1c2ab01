"""What a group of episodes says about each of its members: the arithmetic of GRPO, on plain tensors."""

import torch


def group_advantages(reward_PG: torch.Tensor, epsilon: float = 1e-4) -> torch.Tensor:
    """Compares every episode with the other episodes of the same prompt.

    NaN marks an episode that could not be scored: it gets advantage 0 and does not count for its group.

    Args:
        reward_PG: Reward of each episode, one row per prompt.
        epsilon: Keeps the division finite in a group without spread.

    Returns:
        Advantages, shape (P, G).

    Source: Shao et al. (2024), DeepSeekMath, section 4.1.2.
    """
    mean_P1 = reward_PG.nanmean(dim=1, keepdim=True)
    deviation_PG = reward_PG - mean_P1
    count_P1 = (~reward_PG.isnan()).sum(dim=1, keepdim=True)
    variance_P1 = deviation_PG.square().nansum(dim=1, keepdim=True) / (count_P1 - 1).clamp(min=1)
    return (deviation_PG / (variance_P1.sqrt() + epsilon)).nan_to_num(0.0)


def clipped_objective(ratio: torch.Tensor, advantage: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Caps how much one batch can be worth: beyond 1 +- epsilon a better ratio earns nothing more.

    Args:
        ratio: New over old probability of each token.
        advantage: Advantage of its episode, same shape or broadcast to it.
        epsilon: Half-width of the trusted band.

    Source: Schulman et al. (2017), PPO, equation 7.
    """
    return torch.minimum(ratio * advantage, ratio.clamp(1 - epsilon, 1 + epsilon) * advantage)


def dead_groups(reward_PG: torch.Tensor) -> torch.Tensor:
    """Tells which groups have no two different rewards: they move nothing; shape (P,)."""
    highest_P = reward_PG.nan_to_num(-torch.inf).amax(dim=1)
    lowest_P = reward_PG.nan_to_num(torch.inf).amin(dim=1)
    return highest_P <= lowest_P


def dead_group_rate(reward_PG: torch.Tensor) -> float:
    """Returns the share of dead groups."""
    return dead_groups(reward_PG).float().mean().item()


def dead_group_probability(success: float, group_size: int) -> float:
    """Returns how likely a group of pass-or-fail episodes is all pass or all fail.

    Example:
        >>> round(dead_group_probability(0.2, 4), 2)
        0.41
    """
    return success**group_size + (1 - success) ** group_size
