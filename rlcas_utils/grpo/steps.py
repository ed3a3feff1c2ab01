"""Credit for single turns: turns taken in the same state are compared with each other, as GiGPO does.

An episode's advantage says whether it went better than the others of its group, and all its turns get that
number. Where episodes of a group pass through the same state, their next turns can be compared directly: the
one that was followed by the better return did better. A conversation tells its states as `anchors`, one text
per model turn.

Departures from the paper: a dead group stays out of the update (see `trainer`), although a discount below 1
would tell its short episodes from its long ones; an episode that could not be scored takes no part.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlcas_utils.grpo.advantages import group_advantages


@dataclass(frozen=True)
class StepCredit:
    """How turns are credited.

    Attributes:
        weight: Of a turn's advantage beside the episode's; omega in the paper. 0 turns it off.
        discount: Of the return per turn that lies between; gamma in the paper.
    """

    weight: float = 1.0
    discount: float = 0.95


def step_advantages(
    anchors: Sequence[Sequence[str]], rewards: Sequence[float | None], discount: float
) -> list[list[float]]:
    """Compares the turns of one group that were taken in the same state.

    Args:
        anchors: State before each turn, one list per episode.
        rewards: Return of each episode, paid at its end; None if it could not be scored.
        discount: Per turn between a turn and the end.

    Returns:
        One advantage per turn; 0 where no other turn of the group was taken in that state.

    Source: Feng et al. (2025), GiGPO, equations 6 to 8.
    """
    found = [[0.0] * len(states) for states in anchors]
    same: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for episode, states in enumerate(anchors):
        for turn, state in enumerate(states if rewards[episode] is not None else ()):
            same[state].append((episode, turn))
    for places in same.values():
        to_come = [rewards[e] * discount ** (len(anchors[e]) - 1 - t) for e, t in places]
        values = group_advantages(torch.tensor([to_come], dtype=torch.float64))[0].tolist()
        for (episode, turn), value in zip(places, values, strict=True):
            found[episode][turn] = value
    return found


def spread_over_tokens(values: Sequence[float], env_mask: Sequence[int], length: int) -> torch.Tensor:
    """Gives each sampled token its turn's value; tokens of the environment and padding get 0.

    Args:
        values: One per model turn.
        env_mask: 1 on the model's tokens; the environment speaks between two turns.
        length: Width of the result.

    Returns:
        Shape (T,).

    Raises:
        ValueError: The tokens hold another number of turns than there are values.
    """
    mask_T = torch.zeros(length, dtype=torch.long)
    mask_T[: len(env_mask)] = torch.tensor(list(env_mask))
    starts_T = mask_T.diff(prepend=torch.zeros(1, dtype=torch.long)).clamp(min=0)
    if int(starts_T.sum()) != len(values):
        raise ValueError(
            f"{int(starts_T.sum())} turns in the tokens, but {len(values)} states were noted, so credit "
            "would go to the wrong turns. The conversation must add one anchor per reply."
        )
    turn_T = starts_T.cumsum(0)
    return torch.tensor([0.0, *values])[turn_T] * mask_T


class StepCredits:
    """Put before the scoring class among the bases of a trainer: advantages of shape (B, T) instead of (B,).

    Attributes:
        credit: How turns are credited; None leaves one advantage per episode.
        played: The episodes of the batch that was played last.
    """

    credit: StepCredit | None = None
    played: Any = None

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """Adds the turns' advantages to the episodes'."""
        batch = super()._generate_and_score_completions(inputs)
        if self.credit is not None and self.credit.weight:
            steps_BT = self._step_advantages(batch["completion_ids"].shape[1]).to(batch["advantages"].device)
            batch["advantages"] = batch["advantages"][:, None] + self.credit.weight * steps_BT
        return batch

    def _step_advantages(self, length: int) -> torch.Tensor:
        played, size = self.played, self.num_generations
        if len(played.rows) * size != len(played.rollouts):
            raise ValueError(
                f"this process holds parts of groups of {size}, so it cannot compare the turns of a group. "
                "Make the batch per process a multiple of the group size, or set the step weight to 0."
            )
        values: list[list[float]] = []
        for start in range(0, len(played.rollouts), size):
            group = slice(start, start + size)
            values += step_advantages(played.anchors[group], played.rewards[group], self.credit.discount)
        shared = [value != 0 for turns in values for value in turns]
        self._metrics["train"]["turns_with_credit"].append(sum(shared) / max(1, len(shared)))
        rows = zip(values, played.rollouts, self.idle, strict=True)
        return torch.stack(
            [spread_over_tokens(v, r.env_mask, length) * (0.0 if idle else 1.0) for v, r, idle in rows]
        )
