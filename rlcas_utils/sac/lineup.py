"""The runs that notebook 02 compares: seeds of the expert, readers of the message, held target entropies."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.parallel import Job
from rlcas_utils.sac.text import make_training_desk

FRACTIONS = (0.98, 0.89, 0.5, 0.3)  # held target entropies, as shares of ln A; the first is the paper's


def lineup(
    config: SacConfig,
    seeds: Sequence[int],
    reads: Mapping[str, Mapping[str, NDArray[np.float32]]],
    queries: Sequence[str],
    *,
    num_short: int,
    num_long: int,
) -> dict[str, Job]:
    """List all runs by name.

    Args:
        config: Settings of the expert.
        seeds: Its training seeds; the comparisons use the first.
        reads: Vector by message, by reader; the first reader is the expert's.
        queries: Training messages.
        num_short: Episodes of each run with another target entropy.
        num_long: Episodes of each run with another reader.

    Returns:
        `seed_<n>`, `reads_<reader>`, `entropy_<fraction>` and `entropy_ours`.
    """
    desks = {
        name: partial(make_training_desk, {query: read[query] for query in queries})
        for name, read in reads.items()
    }
    own, *others = desks
    long, short = (dataclasses.replace(config, num_episodes=n) for n in (num_long, num_short))
    jobs = {f"seed_{seed}": Job(config, seed, desks[own]) for seed in seeds}
    jobs |= {f"reads_{name}": Job(long, seeds[0], desks[name]) for name in others}
    for fraction in FRACTIONS:
        held = dataclasses.replace(short, initial_entropy_fraction=fraction, target_entropy_fraction=fraction)
        jobs[f"entropy_{fraction}"] = Job(held, seeds[0], desks[own])
    return jobs | {"entropy_ours": Job(short, seeds[0], desks[own])}
