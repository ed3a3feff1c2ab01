"""Returning to failures: no detours on the way back, one ending after the other, nothing for good endings."""

import json

import numpy as np

from rlcas_utils.desk.env import DeskEnv
from rlcas_utils.sac.archive import STALE, Archive
from rlcas_utils.sac.config import SacConfig
from rlcas_utils.sac.trainer import train


def test_a_failure_is_returned_to_until_every_ending_was_tried():
    archive, rng = Archive(share=1.0), np.random.default_rng(0)
    archive.note("seen", [8], [1.0], terminated=True, resolved=True, entry=None)
    assert archive.draw(rng) is None  # a good ending leaves nothing to go back to, but its action is known
    way = {"actions": [0, 12, 4, 5, 9], "rewards": [1.6, -0.6, 3.6, -1.1, -6.1]}
    archive.note("t1", way["actions"], way["rewards"], terminated=True, resolved=False, entry=None)
    tried = []
    while (entry := archive.draw(rng)) is not None:
        assert (entry["ticket_id"], entry["prefix"]) == ("t1", [0, 4])  # consultation and detour left out
        tried.append(entry["untried"][0])
        actions = [*entry["prefix"], entry["untried"][0]]
        archive.note("t1", actions, [1.6, 3.6, -6.1], terminated=True, resolved=False, entry=entry)
    assert sorted(tried) == [8, 9] == archive.endings


def test_an_old_failure_is_played_anew():
    archive, rng = Archive(share=1.0), np.random.default_rng(0)
    archive.note("old", [0, 7], [1.6, -6.1], terminated=True, resolved=False, entry=None)
    for _ in range(STALE + 1):
        archive.note("good", [7], [15.0], terminated=True, resolved=True, entry=None)
    entry = archive.draw(rng)
    assert entry == {"ticket_id": "old", "prefix": [], "untried": []}
    archive.note("old", [0, 4, 8], [1.6, 3.6, -6.1], terminated=True, resolved=False, entry=entry)
    assert archive.draw(rng)["prefix"] == [0, 4]  # the way back is the new one


def test_a_right_ending_closes_the_matter_and_the_step_limit_is_a_failure():
    archive, rng = Archive(share=1.0), np.random.default_rng(0)
    archive.note("t0", [7], [-6.0], terminated=True, resolved=False, entry=None)
    entry = archive.draw(rng)
    archive.note("t0", [7], [15.0], terminated=True, resolved=True, entry=entry)
    assert archive.draw(rng) is None
    archive.note("t2", [3, 3], [1.6, -1.1], terminated=False, resolved=False, entry=None)
    assert archive.draw(rng)["prefix"] == [3]


def test_the_share_of_returns_is_kept_and_the_state_is_json():
    archive, rng = Archive(share=0.25), np.random.default_rng(0)
    drawn = 0
    for _ in range(400):
        archive.entries = [{"ticket_id": "t", "prefix": [], "tried": [], "since": 0}]
        archive.endings = [7]
        drawn += archive.draw(rng) is not None
    assert 75 <= drawn <= 125
    assert json.loads(json.dumps(archive.entries)) == archive.entries


def test_the_trainer_returns_on_the_desk_and_resumes_exactly(tmp_path):
    config = SacConfig(
        num_episodes=40, hidden_sizes=(8,), warmup_episodes=20, batch_size=8, updates_per_step=0.2
    )
    path = tmp_path / "run.safetensors"

    def stop(num_episodes, curves):
        if num_episodes == 35:
            raise KeyboardInterrupt

    try:
        train(DeskEnv, config, 0, stop, checkpoint=path, checkpoint_every=30)
    except KeyboardInterrupt:
        resumed = train(DeskEnv, config, 0, checkpoint=path, checkpoint_every=30)
    unbroken = train(DeskEnv, config, 0)
    assert resumed.curves == unbroken.curves
    returned = unbroken.curves["returned"]
    assert sum(returned[:20]) == 0 < sum(returned[20:]) < 20
