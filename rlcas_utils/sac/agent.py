"""The trained policy as an agent of the desk, and the file it travels in."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rlcas_utils.desk import features
from rlcas_utils.desk.episode import Episode
from rlcas_utils.sac.checkpoint import read_safetensors, write_safetensors
from rlcas_utils.sac.compression import TextCompression
from rlcas_utils.sac.networks import Actor

FORMAT = "rlcas-sac-expert/1"
REFERENCE_TEXT = "Hello, where is order 123456? My e-mail is a.b@c.example, the parcel never came!"


def observation_fingerprint() -> str:
    """Hash of how the desk turns text into numbers; a policy only fits the numbers it was trained on."""
    layout = json.dumps({name: [part.start, part.stop] for name, part in features.SLICES.items()})
    text = np.round(features.text_features(REFERENCE_TEXT), 5).tobytes()
    return hashlib.sha256(layout.encode() + text).hexdigest()[:16]


class SacAgent:
    """Acts on the desk's vector observation: by argmax, or by sampling when given a seed."""

    def __init__(self, actor: Actor, compression: TextCompression, seed: int | None = None) -> None:
        """Keep the policy.

        Args:
            actor: Trained policy.
            compression: What the policy was trained behind.
            seed: Seed of sampled actions; None acts by argmax.
        """
        self.actor, self.compression = actor, compression
        self.rng = None if seed is None else np.random.default_rng([seed, 2])

    @torch.no_grad()
    def log_policy(self, episode: Episode) -> NDArray[np.float32]:
        """Log-probabilities of all actions for what the episode shows so far, shape (A,)."""
        observation = self.compression(features.observation(episode))
        return self.actor(torch.from_numpy(observation).unsqueeze(0))[0].numpy()

    def act(self, episode: Episode) -> int:
        """Return an action id."""
        log_pi_A = self.log_policy(episode)
        if self.rng is not None:
            log_pi_A = log_pi_A + self.rng.gumbel(size=log_pi_A.shape)
        return int(np.argmax(log_pi_A))


def save_expert(path: Path, agent: SacAgent, facts: dict[str, Any]) -> None:
    """Write a policy as safetensors, its sizes and origin in the header.

    Args:
        path: File to write.
        agent: Trained agent.
        facts: JSON-able facts of its making, such as seed and episodes.
    """
    tensors = {f"actor.{name}": tensor for name, tensor in agent.actor.state_dict().items()}
    tensors["text.mean"] = torch.from_numpy(agent.compression.mean_T)
    tensors["text.basis"] = torch.from_numpy(agent.compression.basis_TK)
    header = {
        "format": FORMAT,
        "observation": observation_fingerprint(),
        "sizes": json.dumps(agent.actor.sizes),
    }
    write_safetensors(path, tensors, header | {"facts": json.dumps(facts, sort_keys=True)})


def load_expert(path: Path, seed: int | None = None) -> tuple[SacAgent, dict[str, Any]]:
    """Read a policy.

    Args:
        path: File written by `save_expert`.
        seed: Seed of sampled actions; None acts by argmax.

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
    if header["observation"] != observation_fingerprint():
        raise ValueError(
            f"{path.name} was trained on observation {header['observation']}, the desk now gives "
            f"{observation_fingerprint()}; its choices would be meaningless. "
            "Run notebook 02_sac_training (make course ONLY=02) again."
        )
    compression = TextCompression(tensors["text.mean"].numpy(), tensors["text.basis"].numpy())
    sizes = json.loads(header["sizes"])
    actor = Actor(sizes[0], sizes[-1], sizes[1:-1])
    weights = {k.removeprefix("actor."): v for k, v in tensors.items() if k.startswith("actor.")}
    actor.load_state_dict(weights)
    return SacAgent(actor, compression, seed), json.loads(header["facts"])
