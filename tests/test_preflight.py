import dataclasses

import pytest

from rlcas_utils.config import Profile
from rlcas_utils.run.preflight import Facts, facts, findings

GOOD = Facts(python="3.11", wrong_versions=(), cores=8, memory_gib=32.0, disk_gib=100.0, gpu_gib=(22.5,))
A10G = Profile("a10g", "one GPU", needs={"gpu_gib": 24, "memory_gib": 16, "disk_gib": 60})
CPU = Profile("cpu", "laptop", offline=True, needs={"memory_gib": 8, "disk_gib": 6})


def remedies(seen, profile=A10G):
    return [f"{finding.seen}: {finding.remedy}" for finding in findings(seen, profile) if not finding.ok]


def test_a_fitting_machine_has_nothing_to_mend():
    assert remedies(GOOD) == []


@pytest.mark.parametrize(
    ("change", "profile", "sentence"),
    [
        ({"gpu_gib": ()}, A10G, "attach a GPU runtime or use --profile cpu"),
        ({"gpu_gib": (14.6,)}, A10G, "One of 24 GiB is needed"),
        ({"wrong_versions": ("bitsandbytes not installed, locked 0.50.2",)}, A10G, "Run make env"),
        ({"restart": ("transformers",)}, A10G, "transformers: Restart the runtime"),
        ({"disk_gib": 3.0}, A10G, "Profile needs 60 GiB. Free some space"),
        ({"memory_gib": 4.0}, CPU, "Profile needs 8 GiB. Close programs or use the smoke profile"),
        ({"python": "3.10"}, CPU, "Use Python 3.11 or 3.12"),
        ({"weights": False}, CPU, "requirements-weights.txt"),
        ({"cores": 1}, CPU, "2 are meant; it takes longer"),
    ],
)
def test_each_misfit_gets_one_sentence_with_the_remedy(change, profile, sentence):
    (found,) = remedies(dataclasses.replace(GOOD, **change), profile)
    assert sentence in found


def test_a_profile_without_a_gpu_does_not_ask_for_one():
    assert remedies(dataclasses.replace(GOOD, gpu_gib=()), CPU) == []


def test_the_facts_of_this_machine_are_plausible():
    seen = facts(CPU)
    assert seen.cores >= 1
    assert seen.memory_gib > 0.5
    assert seen.disk_gib > 0
    assert not any("torch" in wrong for wrong in seen.wrong_versions)
