"""Plays the episodes of one training step: groups of rows, and other rows for groups that taught nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlcas_utils.rollouts import Conversation, Engine, Rollout, Sampling, run_episodes


@dataclass(frozen=True)
class Played:
    """Episodes of one step, group after group.

    Attributes:
        rows: Row number of each group, in order.
        rollouts: Token ids of each episode.
        rewards: Its return; None if it could not be scored.
        idle: Whether its group is dead; False where this process does not hold whole groups.
        anchors: State before each model turn of an episode; empty where its conversation notes none.
        metrics: Numbers over the step.
    """

    rows: list[int]
    rollouts: list[Rollout]
    rewards: list[float | None]
    idle: list[bool]
    anchors: list[list[str]]
    metrics: dict[str, float]


@dataclass
class _Group:
    row: int
    conversations: list[Conversation]
    rollouts: list[Rollout]
    rewards: list[float | None]

    @property
    def dead(self) -> bool:
        return len({reward for reward in self.rewards if reward is not None}) < 2


@dataclass(frozen=True)
class Player:
    """Opens conversations for rows and lets a model play them.

    Attributes:
        tokenizer: ChatML tokenizer.
        rows: The training rows.
        make_conversation: Opens the environment for a row.
        reward: Return of a finished conversation.
        sampling: Temperature and limits.
        metrics: Extra numbers over a step's conversations.
        redraws: Rounds in which dead groups are replaced.
        engine: Who samples the tokens; the training model itself unless told otherwise.
    """

    tokenizer: Any
    rows: Sequence[dict[str, Any]]
    make_conversation: Callable[[dict[str, Any]], Conversation]
    reward: Callable[[Conversation], float | None]
    sampling: Sampling
    metrics: Callable[[list[Conversation]], dict[str, float]] | None
    redraws: int
    engine: Engine = run_episodes

    def play(self, model: Any, row_numbers: list[int], group_size: int) -> Played:
        """Plays one episode per row number.

        Args:
            model: The policy.
            row_numbers: Each row repeated once per group member, members side by side.
            group_size: Episodes per group.

        Raises:
            ValueError: Redraws are asked for, but this process holds parts of groups.
        """
        whole = len(row_numbers) % group_size == 0
        if self.redraws and not whole:
            raise ValueError(
                f"this process plays {len(row_numbers)} episodes of groups of {group_size}; it cannot see "
                "whether a group is dead. Set redraws to 0, or make the batch per process a multiple of the "
                "group size."
            )
        size = group_size if whole else 1
        groups = self._play_groups(model, row_numbers[::size], size)
        first_dead = sum(group.dead for group in groups) / len(groups)
        redrawn = 0
        for _ in range(self.redraws):
            dead = [index for index, group in enumerate(groups) if group.dead]
            if not dead:
                break
            redrawn += len(dead)
            others = self._other_rows(len(dead), {group.row for group in groups})
            for index, group in zip(dead, self._play_groups(model, others, size), strict=True):
                groups[index] = group
        metrics = self._describe(groups)
        if self.redraws:
            metrics |= {"dead_before_redraw": first_dead, "redrawn_groups": float(redrawn)}
        return Played(
            [group.row for group in groups],
            [rollout for group in groups for rollout in group.rollouts],
            [reward for group in groups for reward in group.rewards],
            [whole and group.dead for group in groups for _ in group.rewards],
            [list(getattr(c, "anchors", ())) for group in groups for c in group.conversations],
            metrics,
        )

    def _play_groups(self, model: Any, rows: list[int], size: int) -> list[_Group]:
        conversations = [self.make_conversation(self.rows[row]) for row in rows for _ in range(size)]
        rollouts = self.engine(model, self.tokenizer, conversations, self.sampling)
        rewards = [self.reward(conversation) for conversation in conversations]
        pieces = [slice(start, start + size) for start in range(0, len(conversations), size)]
        return [
            _Group(row, conversations[piece], rollouts[piece], rewards[piece])
            for row, piece in zip(rows, pieces, strict=True)
        ]

    def _other_rows(self, count: int, taken: set[int]) -> list[int]:
        """Draws rows that are not in the batch, from torch's generator, which checkpoints restore."""
        order = torch.randperm(len(self.rows)).tolist()
        free = [row for row in order if row not in taken] or order
        return [free[index % len(free)] for index in range(count)]

    def _describe(self, groups: list[_Group]) -> dict[str, float]:
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        conversations = [conversation for group in groups for conversation in group.conversations]
        count = len(rollouts)
        own = {
            "episode_turns": sum(r.num_turns for r in rollouts) / count,
            "episode_tokens": sum(len(r.completion_ids) for r in rollouts) / count,
            "out_of_budget_rate": sum(r.end == "token_budget" for r in rollouts) / count,
        }
        return own | (self.metrics(conversations) if self.metrics else {})
