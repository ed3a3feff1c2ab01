import pytest
import yaml

from rlcas_utils.config import load_profile, notebook_path, profile_names, project_root
from rlcas_utils.parameters import read_parameters, validate_overrides
from rlcas_utils.run.plan import make_plan
from rlcas_utils.stages import STAGES

PRESENT = sorted(path.stem for path in (project_root() / "notebooks").glob("[0-9][0-9]_*.ipynb"))


class OncePerKey(yaml.SafeLoader):
    """A loader that refuses a key written twice, of which YAML would keep the last without a word."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key is written twice: {keys}"
        return super().construct_mapping(node, deep)


@pytest.mark.parametrize("name", profile_names())
def test_no_key_is_written_twice(name):
    text = (project_root() / "profiles" / f"{name}.yaml").read_text(encoding="utf-8")
    assert yaml.load(text, OncePerKey)["name"] == name


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_has_a_block_for_each_stage_and_no_other(name):
    assert list(load_profile(name).notebooks) == list(STAGES)


@pytest.mark.parametrize("stem", PRESENT)
@pytest.mark.parametrize("name", profile_names())
def test_every_key_exists_in_its_notebook_with_its_type(name, stem):
    overrides = load_profile(name).notebooks[stem]
    assert validate_overrides(stem, read_parameters(notebook_path(stem)), overrides) == []


def test_what_the_notebooks_show_are_the_published_values():
    for stem in PRESENT:
        assert read_parameters(notebook_path(stem))["PROFILE"].default == "a10g"


@pytest.mark.skipif(set(PRESENT) != set(STAGES), reason="notebooks are missing")
@pytest.mark.parametrize("name", profile_names())
def test_a_plan_of_the_whole_course_is_accepted(name, tmp_path):
    plan = make_plan(load_profile(name), tmp_path, ["SEED=7"])
    assert [stage.stem for stage in plan] == list(STAGES)
    assert {stage.values["SEED"] for stage in plan} == {7}


@pytest.mark.parametrize("name", ["smoke", "cpu", "cpu_long"])
def test_small_scales_need_no_network(name):
    assert load_profile(name).offline
