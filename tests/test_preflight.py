"""Case 28 and its kind: what a machine lacks is said before anything runs, one line each, with the remedy."""

import dataclasses
import shutil

import pytest

from rlcas_utils.config import Profile, load_profile, profile_names, project_root
from rlcas_utils.run import command, machine_facts
from rlcas_utils.run.machine_facts import Facts, Wanted, facts, wanted
from rlcas_utils.run.plan import make_plan
from rlcas_utils.run.preflight import findings, overview

GOOD = Facts(python="3.11", wrong_versions=(), cores=8, memory_gib=32.0, disk_gib=100.0, gpu_gib=(22.5,))
A10G = Profile("a10g", "one GPU", needs={"gpu_gib": 24, "memory_gib": 16, "disk_gib": 60})
CPU = Profile("cpu", "laptop", offline=True, needs={"memory_gib": 8, "disk_gib": 6})
HUB = Wanted(models=("Qwen/Qwen3-4B",), customers=("gpt-x",), agents=("gpt-y",), quantize=True)
PACKAGED = Wanted(models=("smollm2-135m", "small"), quantize=True)
CANARY = "CANARY-7f3a9d21"


def lines(seen, profile=A10G, asked=HUB):
    return [str(finding) for finding in findings(seen, profile, asked)]


def refusals(*arguments):
    return [line for line in lines(*arguments) if line.startswith("NO")]


def test_a_fitting_machine_has_nothing_to_mend():
    assert refusals(GOOD) == []


@pytest.mark.parametrize(
    ("change", "profile", "sentence"),
    [
        ({"gpu_gib": ()}, A10G, "attach a GPU runtime or use --profile cpu"),
        ({"gpu_gib": (), "driver": True}, A10G, "torch finds none. Install a torch with CUDA"),
        ({"gpu_gib": (14.6,)}, A10G, "One of 24 GiB is needed"),
        ({"quantizer": ""}, A10G, "bitsandbytes is not installed. 4-bit models need it: run make env"),
        ({"wrong_versions": ("trl 1.0, locked 1.16.0",)}, A10G, "(trl 1.0, locked 1.16.0). Run make env"),
        ({"restart": ("bitsandbytes",)}, A10G, "older version: bitsandbytes. Restart the runtime"),
        ({"disk_gib": 3.0}, A10G, "free disk 3.0 GiB. Profile needs 60 GiB. Free some space"),
        ({"memory_gib": 4.0}, CPU, "Profile needs 8 GiB. Close programs or use the smoke profile"),
        ({"python": "3.10"}, CPU, "Use Python 3.11 or 3.12"),
        ({"weights": False}, CPU, "requirements-weights.txt"),
        ({"cores": 1}, CPU, "2 are meant; it takes longer"),
        ({"hub_offline": True}, A10G, "Qwen/Qwen3-4B: not on this machine. The hub may not be asked"),
        ({"missing_keys": {"gpt-x": "needs X_API_KEY"}}, A10G, "gpt-x: needs X_API_KEY. Set it in the env"),
    ],
)
def test_each_misfit_gets_one_sentence_with_the_remedy(change, profile, sentence):
    asked = HUB if profile is A10G else PACKAGED
    (found,) = refusals(dataclasses.replace(GOOD, **change), profile, asked)
    assert sentence in found


def test_a_profile_without_a_gpu_does_not_ask_for_one_and_says_what_4_bits_mean_there():
    seen = lines(dataclasses.replace(GOOD, gpu_gib=()), CPU, PACKAGED)
    assert "ok  GPUs: none. This profile needs none." in seen
    assert any("Without a GPU it unpacks its 4-bit weights on the CPU" in line for line in seen)
    assert not any(line.startswith("NO") for line in seen)


def test_what_is_only_good_to_know_does_not_refuse():
    seen = lines(dataclasses.replace(GOOD, missing_keys={"gpt-y": "needs Y_API_KEY", "gpt-z": ""}))
    assert "ok  hosted model gpt-z: its key is set (not shown)" in seen
    assert any("gpt-y: needs Y_API_KEY. Without it its row of the benchmark stays empty" in s for s in seen)
    assert any("Qwen/Qwen3-4B: not on this machine. It is downloaded" in line for line in seen)
    here = lines(dataclasses.replace(GOOD, cached=frozenset(HUB.models), hub_offline=True))
    assert "ok  model Qwen/Qwen3-4B: on this machine" in here


def test_the_published_profile_asks_for_its_models_and_its_customer(tmp_path):
    asked = wanted(make_plan(load_profile("a10g"), tmp_path))
    assert asked.models == ("Qwen/Qwen2.5-3B-Instruct", "Qwen/Qwen3-4B-Instruct-2507")
    assert asked.customers == ("gpt-4.1-mini-2025-04-14",)
    assert "gpt-4o-mini" in asked.agents
    assert asked.quantize
    offline = wanted(make_plan(load_profile("cpu"), tmp_path))
    assert "smollm2-135m" in offline.models
    assert not offline.customers


def test_the_facts_of_this_machine_are_plausible(tmp_path):
    seen = facts(CPU, PACKAGED, tmp_path / "not" / "there")
    assert seen.cores >= 1
    assert seen.memory_gib > 0.5
    assert seen.disk_gib > 0
    assert seen.quantizer
    assert not any("torch" in wrong for wrong in seen.wrong_versions)


def test_the_command_prints_a_line_a_finding_and_never_a_key(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    arguments = ["--check", "--profile", "cpu", "--runs-dir", str(tmp_path / "runs")]
    command.main(arguments)
    printed = capsys.readouterr().out
    assert "ok  hosted model gpt-4o-mini: its key is set (not shown)" in printed
    assert CANARY not in printed
    assert printed.count("\n") < 30
    assert not (tmp_path / "runs").exists()


def test_every_profile_is_listed_with_its_needs(monkeypatch, tmp_path):
    monkeypatch.setattr(machine_facts, "_gpu_gib", lambda: ())
    disk = shutil.disk_usage(tmp_path)._replace(free=500 * 2**30)  # what is free here must not decide
    monkeypatch.setattr(machine_facts.shutil, "disk_usage", lambda path: disk)
    listed = overview(tmp_path)
    assert [line.split()[0] for line in listed] == profile_names()
    assert "a GPU of 24 GiB, models from the hub: does not fit here (GPUs: none" in "\n".join(listed)
    assert all(len(line) < 200 for line in listed)
    assert project_root().name not in "".join(listed)
