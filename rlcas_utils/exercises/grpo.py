"""The exercises of notebook 05: a baseline without oneself, groups that teach nothing, the loss of a step."""

from __future__ import annotations

import torch

from rlcas_utils.exercises.checker import Exercise

NAN = float("nan")
TWO_EPISODES = torch.tensor([[1.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]])


def _leave_one_out(reward_PG: torch.Tensor) -> torch.Tensor:
    others_PG = reward_PG.sum(dim=1, keepdim=True) - reward_PG
    return reward_PG - others_PG / (reward_PG.shape[1] - 1)


def _dead_groups(reward_PG: torch.Tensor) -> torch.Tensor:
    highest_P = reward_PG.nan_to_num(-torch.inf).amax(dim=1)
    lowest_P = reward_PG.nan_to_num(torch.inf).amin(dim=1)
    return highest_P <= lowest_P


def _step_loss(advantage_B: torch.Tensor, env_mask_BT: torch.Tensor) -> torch.Tensor:
    return -(advantage_B[:, None] * env_mask_BT).sum() / env_mask_BT.sum()


def _spread_of_the_step(reward_PG: torch.Tensor) -> torch.Tensor:
    scores = reward_PG[~reward_PG.isnan()]
    alive = scores.numel() > 0 and bool(scores.max() > scores.min())
    return torch.full((len(reward_PG),), not alive)


leave_one_out = Exercise(
    reference=_leave_one_out,
    inputs=[
        (torch.tensor([[1.0, 0.0]]),),
        (torch.tensor([[1.0, 1.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]]),),
    ],
    mistakes={
        "the episode itself is part of its own baseline.": lambda reward_PG: (
            reward_PG - reward_PG.mean(dim=1, keepdim=True)
        ),
        "the sum of the others is divided by G, not by G - 1.": lambda reward_PG: (
            reward_PG - (reward_PG.sum(dim=1, keepdim=True) - reward_PG) / reward_PG.shape[1]
        ),
        "the baseline mixes the groups of all tickets.": lambda reward_PG: (
            reward_PG - (reward_PG.sum() - reward_PG) / (reward_PG.numel() - 1)
        ),
        "only the baseline comes back; take it off the reward.": lambda reward_PG: (
            (reward_PG.sum(dim=1, keepdim=True) - reward_PG) / (reward_PG.shape[1] - 1)
        ),
    },
)
dead_groups = Exercise(
    reference=_dead_groups,
    inputs=[
        (torch.tensor([[1.0, 1.0, 0.0, 0.0]]),),
        (torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]]),),
        (torch.tensor([[0.1, 0.1, 0.1], [NAN, 0.1, 0.1], [NAN, 0.1, 1.0], [NAN, NAN, NAN]]),),
    ],
    mistakes={
        "only failures are counted; a group in which all succeed teaches as little.": lambda reward_PG: (
            (reward_PG <= 0) | reward_PG.isnan()
        ).all(dim=1),
        "an episode without a score (NaN) makes its group look alive.": lambda reward_PG: (
            reward_PG == reward_PG[:, :1]
        ).all(dim=1),
        "the spread is taken over the whole step; every group is compared with itself only.": (
            _spread_of_the_step
        ),
        "the answer is turned round: true means that the group teaches nothing.": lambda reward_PG: (
            ~_dead_groups(reward_PG)
        ),
    },
)
step_loss = Exercise(
    reference=_step_loss,
    inputs=[
        (torch.tensor([0.866, -0.866]), TWO_EPISODES),
        (torch.tensor([1.0, 0.5]), TWO_EPISODES),
    ],
    mistakes={
        "the desk's tokens are in the sum; the mask belongs above the line too.": (
            lambda advantage_B, env_mask_BT: (
                -advantage_B[:, None].expand_as(env_mask_BT).sum() / env_mask_BT.sum()
            )
        ),
        "all episodes weigh the same, so a token of a long one counts less.": (
            lambda advantage_B, env_mask_BT: (
                -((advantage_B[:, None] * env_mask_BT).sum(dim=1) / env_mask_BT.sum(dim=1)).mean()
            )
        ),
        "the sum is divided by all tokens, masked ones included.": lambda advantage_B, env_mask_BT: (
            -(advantage_B[:, None] * env_mask_BT).sum() / env_mask_BT.numel()
        ),
        "the sign is flipped, so bad episodes become likelier.": lambda advantage_B, env_mask_BT: (
            (advantage_B[:, None] * env_mask_BT).sum() / env_mask_BT.sum()
        ),
    },
)
