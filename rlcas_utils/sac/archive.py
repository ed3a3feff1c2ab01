"""Failed tickets and the way back to where each failed: first return, then try another ending there.

With 13 actions and some two hundred ways a ticket can end, a policy that has grown sure of itself hardly
ever stumbles on the one ending that is right in a rare case; it stalls instead. The desk is deterministic,
so the useful steps up to the failure can be repeated and the endings be tried there, the policy's favourite
first. SAC learns off-policy
and takes these episodes like any others.

Source: Ecoffet et al. 2021, First return, then explore, arXiv:2004.12919 (the idea, on a small scale).
"""

from __future__ import annotations

from typing import Any

import numpy as np

NEWEST = 32  # failures to choose among; older ones came from a worse policy and tell less
STALE = 100  # episodes after which a failed ticket is simply played again: its way back is outdated


class Archive:
    """Keeps failed tickets; everything in it is JSON-able, for checkpoints."""

    def __init__(self, share: float) -> None:
        """Start empty.

        Args:
            share: Share of the episodes that return to a failure while there are any.
        """
        self.share = share
        self.entries: list[dict[str, Any]] = []
        self.endings: list[int] = []
        self.num_noted = 0

    def draw(self, rng: np.random.Generator) -> dict[str, Any] | None:
        """Take out a failure to return to, or None for a fresh episode.

        Args:
            rng: Source of the choices.

        Returns:
            `ticket_id`, `prefix` (actions that lead back) and `untried` (endings that are left to try there);
            both are empty when the ticket is to be played anew.
        """
        if not self.entries or rng.random() >= self.share:
            return None
        newest = min(NEWEST, len(self.entries))
        entry = self.entries.pop(len(self.entries) - 1 - int(rng.integers(newest)))
        if self.num_noted - entry["since"] > STALE:
            return {"ticket_id": entry["ticket_id"], "prefix": [], "untried": []}
        untried = [action for action in self.endings if action not in entry["tried"]]
        return entry | {"untried": untried}

    def note(
        self,
        ticket_id: str | None,
        actions: list[int],
        rewards: list[float],
        *,
        terminated: bool,
        resolved: bool,
        entry: dict[str, Any] | None,
    ) -> None:
        """Learn from a finished episode.

        Args:
            ticket_id: Its ticket; None for environments without tickets, which are never returned to.
            actions: All actions of the episode.
            rewards: Their rewards; of the way back, only steps that paid are kept, so that it has no detours.
            terminated: Whether the last one ended it.
            resolved: Whether it ended well.
            entry: What `draw` gave, if the episode was a return.
        """
        self.num_noted += 1
        if terminated and actions[-1] not in self.endings:
            self.endings = sorted([*self.endings, actions[-1]])
        if ticket_id is None or resolved:
            return
        if entry is not None and entry["untried"]:
            new = {name: entry[name] for name in ("ticket_id", "prefix", "since")}
            new["tried"] = [*entry["tried"], actions[-1]]
        else:
            way = list(zip(actions, rewards, strict=True))[: len(actions) - terminated]
            prefix = [action for action, reward in way if reward > 0]
            new = {"ticket_id": ticket_id, "prefix": prefix, "since": self.num_noted, "tried": []}
        if set(self.endings) - set(new["tried"]):
            self.entries.append(new)
