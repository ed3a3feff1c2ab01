"""Encoders tuned on folds: who reads which message, and what each was tuned on."""

from pathlib import Path

import numpy as np
import pytest
import torch

from rlcas_utils import desk
from rlcas_utils.sac import crossfit
from rlcas_utils.sac.crossfit import CrossFittedEncoder, fold, tune_folds
from rlcas_utils.sac.encoder import KINDS

TRAIN = desk.load_tickets("train")


class Constant:
    """Stands for an encoder that is sure of one kind, whatever it reads."""

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def probabilities(self, texts):
        return np.tile(np.eye(len(KINDS), dtype=np.float32)[self.kind], (len(texts), 1))


def test_all_messages_of_a_template_share_a_fold_and_every_kind_is_in_every_fold():
    folds = {}
    for ticket in TRAIN:
        folds.setdefault(ticket.template_id, set()).add(fold(ticket, 3))
    assert all(len(found) == 1 for found in folds.values())
    for kind in KINDS:
        assert {fold(t, 3) for t in TRAIN if t.intent == kind} == {0, 1, 2}


def test_a_message_of_the_benchmark_has_no_fold():
    with pytest.raises(ValueError, match=r"bench-001 has no template.*no encoder may be tuned on it"):
        fold(desk.load_tickets("benchmark")[0], 3)


def test_training_messages_are_read_by_the_encoder_of_their_fold_and_new_ones_by_the_mean():
    reader = CrossFittedEncoder([Constant(0), Constant(5), Constant(5)])
    expected = {"stock/00": 0, "stock/01": 5, "stock/02": 5, "stock/03": 0, "stock/10": 5, "stock/12": 0}
    tickets = {t.template_id.removeprefix("train/"): t for t in TRAIN}
    vectors = reader.training_vectors([tickets[name] for name in expected])
    assert {name: vectors[tickets[name].query].argmax() for name in expected} == expected
    new = reader.probabilities(["where is it?"])
    assert np.allclose(new[0, [0, 5]], [1 / 3, 2 / 3])
    assert new.dtype == np.float32


def test_no_encoder_is_tuned_on_its_own_fold(tmp_path, monkeypatch):
    tuned = []

    def note(encoder, tickets, folder, **how):
        tuned.append(({t.template_id for t in tickets}, folder.name, how["seed"]))

    monkeypatch.setattr(crossfit, "SentenceEncoder", lambda rank, seed: Constant(seed))
    monkeypatch.setattr(crossfit, "tune_encoder", note)
    how = {"rank": 4, "num_steps": 1, "learning_rate": 0.1}
    reader = tune_folds(TRAIN, tmp_path, num_folds=3, seed=7, **how)
    everything = {ticket.template_id for ticket in TRAIN}
    for k, (templates, folder, seed) in enumerate(tuned):
        assert {int(Path(name).name) % 3 for name in everything - templates} == {k}
        assert (folder, seed) == (f"fold_{k}", 7 + k)
    assert [encoder.kind for encoder in reader.encoders] == [7, 8, 9]
    tuned.clear()
    tune_folds(TRAIN, tmp_path, num_folds=1, seed=7, **how)
    assert [templates for templates, _, _ in tuned] == [everything]


def test_two_real_encoders_learn_what_the_other_fold_shows(tmp_path):
    chosen = [t for t in TRAIN if t.intent in ("stock", "hacked")]
    tickets = chosen[:16] + chosen[-16:]
    how = {"rank": 4, "num_steps": 16, "learning_rate": 3e-3, "seed": 0}
    reader = tune_folds(tickets, tmp_path, num_folds=2, **how)
    vectors = reader.training_vectors(tickets)
    right = [KINDS[vectors[t.query].argmax()] == t.intent for t in tickets]
    assert np.mean(right) > 0.75  # two kinds among 17: chance is 0.06
    first, second = (encoder.trained_tensors()["head.weight"] for encoder in reader.encoders)
    assert not torch.equal(first, second)
