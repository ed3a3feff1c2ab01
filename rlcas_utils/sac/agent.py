"""The trained policy as an agent of the desk, and the file it travels in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rlcas_utils.desk import features
from rlcas_utils.desk.episode import Episode
from rlcas_utils.desk.facts import FACTS
from rlcas_utils.sac.checkpoint import read_safetensors, write_safetensors
from rlcas_utils.sac.encoder import KINDS, SentenceEncoder
from rlcas_utils.sac.networks import Actor
from rlcas_utils.sac.text import TextFunction, table, with_text

FORMAT = "rlcas-sac-expert/2"


def observation_fingerprint() -> str:
    """Hash of the layout of the desk's observation and of the kinds the encoder knows."""
    layout = {name: [part.start, part.stop] for name, part in features.SLICES.items()}
    return hashlib.sha256(json.dumps([layout, FACTS, KINDS]).encode()).hexdigest()[:16]


class SacAgent:
    """Acts on the desk's vector observation: by argmax, or by sampling when given a seed."""

    def __init__(
        self,
        actor: Actor,
        text: TextFunction,
        seed: int | None = None,
        vectors: dict[str, NDArray[np.float32]] | None = None,
    ) -> None:
        """Keep the policy.

        Args:
            actor: Trained policy.
            text: What the policy reads messages with; computed once per message.
            seed: Seed of sampled actions; None acts by argmax.
            vectors: Vector by message, filled as messages come; pass another agent's to encode once for both.
        """
        self.actor, self.text = actor, text
        self.vectors = {} if vectors is None else vectors
        self.rng = None if seed is None else np.random.default_rng([seed, 2])

    def prepare(self, queries: Sequence[str]) -> None:
        """Encode many messages at once, which is faster than one by one.

        Args:
            queries: Messages that will be played.
        """
        new = [query for query in queries if query not in self.vectors]
        if new:
            self.vectors |= table(self.text, new)

    @torch.no_grad()
    def log_policy(self, episode: Episode) -> NDArray[np.float32]:
        """Log-probabilities of all actions for what the episode shows so far, shape (A,)."""
        self.prepare([episode.query])
        observation = with_text(features.observation(episode), self.vectors[episode.query])
        return self.actor(torch.from_numpy(observation).unsqueeze(0))[0].numpy()

    def act(self, episode: Episode) -> int:
        """Return an action id."""
        log_pi_A = self.log_policy(episode)
        if self.rng is not None:
            log_pi_A = log_pi_A + self.rng.gumbel(size=log_pi_A.shape)
        return int(np.argmax(log_pi_A))


def save_expert(path: Path, actor: Actor, encoder: SentenceEncoder, facts: dict[str, Any]) -> None:
    """Write a policy and its encoder as safetensors, sizes and origin in the header.

    Args:
        path: File to write.
        actor: Trained policy.
        encoder: Tuned encoder that the policy reads messages with.
        facts: JSON-able facts of its making, such as seed and episodes.
    """
    tensors = {f"actor.{name}": tensor for name, tensor in actor.state_dict().items()}
    tensors |= {f"encoder.{name}": tensor for name, tensor in encoder.trained_tensors().items()}
    header = {
        "format": FORMAT,
        "observation": observation_fingerprint(),
        "sizes": json.dumps(actor.sizes),
        "encoder_rank": str(encoder.rank),
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
    encoder = SentenceEncoder(int(header["encoder_rank"]))
    encoder.load_trained(_part(tensors, "encoder."))
    sizes = json.loads(header["sizes"])
    actor = Actor(sizes[0], sizes[-1], sizes[1:-1])
    actor.load_state_dict(_part(tensors, "actor."))
    return SacAgent(actor, encoder.probabilities, seed), json.loads(header["facts"])


def _part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
