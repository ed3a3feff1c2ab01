"""The trained policy as an agent of the desk, and the file it travels in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from rlcas_utils.desk import features
from rlcas_utils.desk.episode import Episode
from rlcas_utils.sac.checkpoint import read_safetensors, write_safetensors
from rlcas_utils.sac.networks import Actor

FORMAT = "rlcas-sac-expert/1"


class SacAgent:
    """Acts by argmax on the desk's vector observation."""

    def __init__(self, actor: Actor) -> None:
        """Keep the policy.

        Args:
            actor: Trained policy.
        """
        self.actor = actor

    @torch.no_grad()
    def act(self, episode: Episode) -> int:
        """Return the most probable action for what the episode shows so far."""
        observation_1O = torch.from_numpy(features.observation(episode)).unsqueeze(0)
        return int(self.actor(observation_1O).argmax())


def save_expert(path: Path, actor: Actor, facts: dict[str, Any]) -> None:
    """Write a policy as safetensors, its sizes and origin in the header.

    Args:
        path: File to write.
        actor: Trained policy.
        facts: JSON-able facts of its making (seed, episodes, validation return).
    """
    header = {"format": FORMAT, "sizes": json.dumps(actor.sizes), "facts": json.dumps(facts, sort_keys=True)}
    write_safetensors(path, actor.state_dict(), header)


def load_expert(path: Path) -> tuple[SacAgent, dict[str, Any]]:
    """Read a policy.

    Args:
        path: File written by `save_expert`.

    Returns:
        The agent and the facts stored with it.

    Raises:
        ValueError: If the file is damaged, of another format, or made for another observation.
    """
    tensors, header = read_safetensors(path)
    if header.get("format") != FORMAT:
        raise ValueError(
            f"{path.name} has format {header.get('format')!r}, expected {FORMAT!r}; it cannot act on the "
            "desk. Run notebook 02_sac_training (make course ONLY=02) to make a new one."
        )
    sizes = json.loads(header["sizes"])
    if sizes[0] != features.OBSERVATION_SIZE:
        raise ValueError(
            f"{path.name} expects observations of length {sizes[0]}, the desk now gives "
            f"{features.OBSERVATION_SIZE}; its choices would be meaningless. "
            "Run notebook 02_sac_training (make course ONLY=02) again."
        )
    actor = Actor(sizes[0], sizes[-1], sizes[1:-1])
    actor.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return SacAgent(actor), json.loads(header["facts"])
