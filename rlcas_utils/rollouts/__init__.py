"""Plays many conversations at once with one language model and keeps every token it sampled.

The engine is token-in-token-out: what was sampled is what is trained, nothing is rendered or tokenised twice.
The key/value cache of an episode stays in place from its first turn to its last, so each turn costs only its
own tokens. An episode that ends gives its place in the batch to the next one.
"""

from rlcas_utils.rollouts.chat import render_prompt, stop_token_ids, turn_suffix
from rlcas_utils.rollouts.engine import run_episodes
from rlcas_utils.rollouts.episode import Conversation, Engine, Rollout
from rlcas_utils.rollouts.sampling import Sampling

__all__ = [
    "Conversation",
    "Engine",
    "Rollout",
    "Sampling",
    "render_prompt",
    "run_episodes",
    "stop_token_ids",
    "turn_suffix",
]
