"""Which expert episodes become teaching material: filter, deduplicate, balance, split, with a report."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from rlcas_utils.trajectories.schema import Trajectory


def drop_reason(trajectory: Trajectory, min_reward: float) -> str | None:
    """Say why an episode is no teaching material, or None if it is.

    Args:
        trajectory: Episode to judge.
        min_reward: Smallest return kept.

    Returns:
        The first rule broken, or None.
    """
    ending = trajectory.steps[-1].signals
    if trajectory.truncated:
        return "truncated"
    if ending["right_route"] > 0.0 and ending["resolution"] == 0.0:
        return "right ending without the evidence"
    if not trajectory.resolved:
        return "wrong ending"
    if trajectory.total_reward < min_reward:
        return "return too low"
    return None


def duplicate_key(trajectory: Trajectory) -> tuple[str, tuple[int, ...]]:
    """Two episodes with the same key teach the same thing: same words apart from digits, same actions.

    Args:
        trajectory: Episode to describe.

    Returns:
        Masked query and actions.
    """
    words = re.sub(r"\d+", "0", trajectory.query.lower())
    return " ".join(re.findall(r"[^\W_]+", words)), trajectory.actions


@dataclasses.dataclass
class FilterReport:
    """What the filter kept and dropped.

    Attributes:
        num_collected: Episodes that came in.
        kept: Episodes kept, by category.
        dropped: Episodes dropped, by reason and then category.
    """

    num_collected: int
    kept: Counter[str]
    dropped: dict[str, Counter[str]]

    def rows(self) -> list[dict[str, int | str]]:
        """Return one row per reason and one for what was kept, largest first."""
        reasons = sorted(self.dropped, key=lambda reason: -self.dropped[reason].total())
        rows = [
            {"fate": f"dropped: {reason}", "episodes": self.dropped[reason].total()} for reason in reasons
        ]
        return [{"fate": "kept", "episodes": self.kept.total()}, *rows]


def select(
    trajectories: Sequence[Trajectory],
    min_reward: float,
    max_per_category: int,
) -> tuple[list[Trajectory], FilterReport]:
    """Filter, deduplicate and balance.

    Args:
        trajectories: Episodes collected.
        min_reward: Smallest return kept.
        max_per_category: Most episodes kept of one category.

    Returns:
        Episodes kept, category by category, and the report.
    """
    dropped: dict[str, Counter[str]] = defaultdict(Counter)
    seen: set[tuple[str, tuple[int, ...]]] = set()
    good = []
    # Best first, so that of two duplicates the better one stays.
    for trajectory in sorted(trajectories, key=lambda t: (-t.total_reward, t.ticket_id, t.seed)):
        reason = drop_reason(trajectory, min_reward)
        if reason is None and duplicate_key(trajectory) in seen:
            reason = "duplicate"
        if reason is not None:
            dropped[reason][trajectory.category] += 1
            continue
        seen.add(duplicate_key(trajectory))
        good.append(trajectory)
    # Clean ones first, then by a hash: by return, the scenarios that pay most would crowd out the others.
    preferred = sorted(good, key=lambda t: (wasted_steps(t), _shuffled(t.ticket_id), t.seed))
    kept = balance(preferred, max_per_category)
    surplus = Counter(t.category for t in good) - Counter(t.category for t in kept)
    if surplus:
        dropped["over the category's share"] = surplus
    return kept, FilterReport(len(trajectories), Counter(t.category for t in kept), dict(dropped))


def wasted_steps(trajectory: Trajectory) -> int:
    """Count the steps that a better agent would not have taken.

    Args:
        trajectory: Episode to look at.

    Returns:
        Number of redundant, irrelevant or failed calls.
    """
    waste = ("redundant_call", "irrelevant_tool", "failed_call")
    return sum(any(step.signals[name] < 0.0 for name in waste) for step in trajectory.steps)


def _shuffled(ticket_id: str) -> str:
    return hashlib.sha256(ticket_id.encode()).hexdigest()


def balance(trajectories: Sequence[Trajectory], max_per_category: int) -> list[Trajectory]:
    """Cap every category, taking its templates in turn so that none crowds out the others.

    Args:
        trajectories: Good episodes, in order of preference.
        max_per_category: Most episodes kept of one category.

    Returns:
        Episodes kept, category by category.

    Raises:
        ValueError: If the cap keeps nothing.
    """
    if max_per_category < 1:
        raise ValueError(
            f"max_per_category is {max_per_category}; nothing would be kept. Set it to 1 or more."
        )
    by_category: dict[str, dict[str, list[Trajectory]]] = defaultdict(lambda: defaultdict(list))
    for trajectory in trajectories:
        by_category[trajectory.category][trajectory.template_id].append(trajectory)
    kept = []
    for category in sorted(by_category):
        queues = [by_category[category][template] for template in sorted(by_category[category])]
        turns = [queue[i] for i in range(max(map(len, queues))) for queue in queues if i < len(queue)]
        kept += turns[:max_per_category]
    return kept


def split_by_template(
    trajectories: Sequence[Trajectory], validation_share: float, seed: int
) -> tuple[list[Trajectory], list[Trajectory]]:
    """Split so that no template lies on both sides, in every category that has two templates or more.

    Args:
        trajectories: Episodes to split.
        validation_share: Share of each category's templates held out, in (0, 1).
        seed: Seed of the draw.

    Returns:
        Training and validation episodes; a category with a single template stays in training.

    Raises:
        ValueError: If the share is outside (0, 1) or no category has two templates.
    """
    if not 0.0 < validation_share < 1.0:
        raise ValueError(
            f"validation_share is {validation_share}; one side would be empty. Set it to, say, 0.15."
        )
    rng = np.random.default_rng(seed)
    held_out: set[str] = set()
    for category in sorted({t.category for t in trajectories}):
        templates = sorted({t.template_id for t in trajectories if t.category == category})
        if len(templates) > 1:
            num_held_out = max(1, round(validation_share * len(templates)))
            held_out |= set(rng.permutation(templates)[:num_held_out].tolist())
    if not held_out:
        raise ValueError(
            f"{len(trajectories)} episodes have no category with two templates; none could be held out. "
            "Train the expert longer (NUM_EPISODES in 02_sac_training) or play more tickets (NUM_TICKETS)."
        )
    return _partition(trajectories, lambda t: t.template_id not in held_out)


def _partition(
    trajectories: Sequence[Trajectory], condition: Callable[[Trajectory], bool]
) -> tuple[list[Trajectory], list[Trajectory]]:
    yes, no = [], []
    for trajectory in trajectories:
        (yes if condition(trajectory) else no).append(trajectory)
    return yes, no
