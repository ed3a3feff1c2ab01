import pytest
from toy_course import PARAMETERS, add_notebook, make_project

from rlcas_utils.config import ConfigError
from rlcas_utils.parameters import Parameter, is_secret, parse_text, read_parameters, validate_overrides


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path)


def read(project, source=PARAMETERS):
    return read_parameters(add_notebook(project, "01_first", parameters=source))


def test_names_defaults_types_and_meanings_in_order(project):
    parameters = read(project)
    assert list(parameters) == ["PROFILE", "SEED", "RUN_DIR", "LEARNING_RATE", "WIDTHS"]
    assert parameters["LEARNING_RATE"] == Parameter("LEARNING_RATE", "float", 1e-5, "step size")
    assert parameters["WIDTHS"].annotation == "list[int]"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("A: int = 1\nB: str = f'run_{A}'", "B is computed"),
        ("A = 1", "write NAME: type = literal"),
        ("A: int = 1.5", "A = 1.5 is not of its type int"),
        ("A: int = 1\nA: int = 2", "A is set twice"),
        ("A: ndarray = 1", "type ndarray is not one"),
    ],
)
def test_a_cell_that_overrides_would_not_reach_is_refused(project, source, message):
    with pytest.raises(ConfigError, match=message):
        read(project, source)


def test_one_parameters_cell_is_needed(project):
    path = add_notebook(project, "01_first")
    path.write_text(path.read_text().replace('"parameters"', '"other"'))
    with pytest.raises(ConfigError, match="has 0 cells tagged `parameters`"):
        read_parameters(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SEAD", 3, "has no parameter SEAD. Did you mean SEED?"),
        ("sead", 3, "Did you mean SEED?"),
        ("NOTHING_LIKE_IT", 3, "It has PROFILE, SEED,"),
        ("SEED", True, "SEED is True (bool), expected int."),
        ("SEED", "3", "SEED is '3' (str), expected int."),
        ("LEARNING_RATE", "1e-5", "YAML reads 1e-5 as text; write 1.0e-05"),
        ("LEARNING_RATE", "1.25e-5", "write 1.25e-05"),
        ("LEARNING_RATE", True, "expected float"),
        ("WIDTHS", [8, 8.5], "expected list[int]"),
        ("API_KEY", "CANARY-7f3a", "looks like a secret"),
        ("PROFILE", "sk-abcdefgh12345", "looks like a secret"),
    ],
)
def test_one_clear_sentence_for_each_faulty_override(project, name, value, message):
    (error,) = validate_overrides("01_first", read(project), {name: value})
    assert message in error
    assert "CANARY" not in error
    assert "sk-" not in error


def test_right_overrides_pass_and_faults_come_all_at_once(project):
    parameters = read(project)
    assert validate_overrides("01_first", parameters, {"SEED": 7, "LEARNING_RATE": 1, "WIDTHS": []}) == []
    assert len(validate_overrides("01_first", parameters, {"SEED": 1.5, "SEAD": 3})) == 2


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("float", "1e-5", 1e-5),
        ("int", "7", 7),
        ("bool", "true", True),
        ("bool", "False", False),
        ("str", "7", "7"),
        ("str", "true", "true"),
        ("list[int]", "[1, 2]", [1, 2]),
        ("str | None", "None", None),
        ("float", "abc", "abc"),
    ],
)
def test_command_line_text_becomes_the_parameters_type(annotation, text, value):
    parsed = parse_text(text, Parameter("X", annotation, None))
    assert parsed == value
    assert type(parsed) is type(value)


def test_optional_and_dict_types():
    assert Parameter("X", "int | None", None).accepts(None)
    assert not Parameter("X", "int | None", None).accepts("a")
    assert Parameter("X", "dict[str, float]", {}).accepts({"a": 1.0})
    assert not Parameter("X", "dict[str, float]", {}).accepts({"a": "b"})


def test_token_counts_are_no_secrets():
    assert not is_secret("MAX_NEW_TOKENS")
    assert not is_secret("KEYWORD_RULES")
    assert is_secret("HF_TOKEN")
    assert is_secret("openai_api_key")
