import json
import os
from pathlib import Path

import numpy as np
import pytest

from rlcas_utils import machine, records
from rlcas_utils.records import RecordError, metric, read_record, sha256_tree, validate_record, write_atomic

COMPLETE = dict.fromkeys(records.RECORD_KEYS, "x") | {"metrics": {"m": metric(1, 2, (0,), (0, 2), "s")}}


def test_a_write_that_fails_leaves_the_old_content_and_no_litter(tmp_path, monkeypatch):
    target = tmp_path / "a.txt"
    write_atomic(target, "old")

    def full_disk(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(target, "new")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_text_is_utf8_with_plain_newlines(tmp_path):
    assert write_atomic(tmp_path / "deep" / "a.txt", "ü\n").read_bytes() == b"\xc3\xbc\n"


def test_json_has_no_nan(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        records.write_json(tmp_path / "a.json", {"value": float("nan")})
    assert not (tmp_path / "a.json").exists()


def test_the_hash_of_a_file_is_the_published_one_of_abc(tmp_path):
    file = write_atomic(tmp_path / "a", "abc")
    assert sha256_tree(file) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_the_hash_of_a_folder_sees_names_and_contents_but_no_hidden_files(tmp_path):
    write_atomic(tmp_path / "f" / "a", "1")
    first = sha256_tree(tmp_path / "f")
    write_atomic(tmp_path / "f" / ".half.tmp", "1")
    assert sha256_tree(tmp_path / "f") == first
    Path(tmp_path / "f" / "a").rename(tmp_path / "f" / "b")
    renamed = sha256_tree(tmp_path / "f")
    write_atomic(tmp_path / "f" / "b", "2")
    assert len({first, renamed, sha256_tree(tmp_path / "f")}) == 3
    with pytest.raises(FileNotFoundError):
        sha256_tree(tmp_path / "nothing")


def test_a_metric_takes_numpy_numbers_and_becomes_json():
    entry = metric(np.float64(0.5), np.int64(100), [0], (np.float64(0.4), 0.6), "")
    assert json.loads(json.dumps(entry)) == {
        "value": 0.5,
        "n": 100,
        "seeds": [0],
        "ci95": [0.4, 0.6],
        "unit": "",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((float("nan"), 1, (), None, ""), "finite"),
        ((True, 1, (), None, ""), "finite"),
        (("3", 1, (), None, ""), "finite"),
        ((1.0, 0, (), None, ""), "n=0"),
        ((1.0, 1, (), (2.0, 1.0), ""), "low <= high"),
        ((1.0, 1, (), (0.0, float("inf")), ""), "finite"),
    ],
)
def test_a_metric_that_nobody_could_use_is_refused(arguments, message):
    with pytest.raises(RecordError, match=message):
        metric(*arguments)


def test_a_record_is_checked_key_by_key():
    assert validate_record(COMPLETE) == []
    assert validate_record([]) == ["the record is a list, expected a JSON object"]
    assert "key seed is missing" in validate_record({k: v for k, v in COMPLETE.items() if k != "seed"})
    (error,) = validate_record(COMPLETE | {"metrics": {"m": {"value": 1}}})
    assert "metric m has keys ['value']" in error


def test_a_record_cut_short_names_the_command_that_remakes_it(tmp_path):
    path = tmp_path / "02_sac_training.json"
    with pytest.raises(RecordError, match="does not exist; run `make course ONLY=02_sac_training`"):
        read_record(path)
    path.write_text(json.dumps(COMPLETE)[:-20])
    with pytest.raises(RecordError, match=r"damaged.*ONLY=02_sac_training"):
        read_record(path)


def test_a_folder_without_git_has_no_commit(tmp_path):
    assert machine.git_state(tmp_path) == {"commit": None, "dirty": None}


def test_hardware_is_said_in_plain_numbers_without_the_machines_name():
    seen = machine.hardware()
    assert seen["cores"] >= 1
    assert seen["memory_gib"] > 0.5
    assert os.uname().nodename not in json.dumps(seen)
