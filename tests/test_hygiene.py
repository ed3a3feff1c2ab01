"""What would only fail elsewhere: other systems' file names and encodings, files that run code, licences."""

import ast
import re
from importlib import metadata

import pytest

from rlcas_utils.config import project_root
from rlcas_utils.parameters import cell_source, read_notebook
from rlcas_utils.run import licences

ROOT = project_root()
KEPT = ("rlcas_utils", "notebooks", "profiles", "data", "figures", "results", "tests", "benchmarks")
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "rlcas_utils").rglob("*.py"))
} | {
    path.relative_to(ROOT).as_posix(): "\n".join(
        cell_source(cell)
        for cell in read_notebook(path)["cells"]
        if cell["cell_type"] == "code" and not cell_source(cell).lstrip().startswith(("!", "%"))
    )
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
}
TEXT_CALLS = {"open", "read_text", "write_text"}
RUNS_CODE = re.compile(
    r"\btorch\.load\b|\bpickle\b|\bjoblib\b|\bdill\b|allow_pickle\s*=\s*True|trust_remote_code\s*=\s*True"
    r"|\byaml\.(unsafe_)?load\(|\bread_pickle\b|\bshelve\b|\bmarshal\b"
)


def unfit_for_windows(names):
    """Names that Windows refuses, or takes for the same file."""
    bad = [
        name
        for name in names
        if any(
            re.search(r'[<>:"\\|?*\x00-\x1f]', part)
            or part[-1] in ". "
            or part.split(".")[0].lower() in RESERVED
            for part in name.split("/")
        )
    ]
    seen = {}
    return bad + [name for name in names if seen.setdefault(name.lower(), name) != name]


def test_names_that_windows_refuses_are_found():
    assert unfit_for_windows(["a/b.txt", "a b/é.json", "02_x.y-1/c"]) == []
    bad = ["a:b", "x/what?", "con.txt", "x/LPT1", "end.", "end ", "A/b", "a/B"]
    assert unfit_for_windows(bad) == [*bad[:6], "a/B"]


def test_every_file_of_the_project_has_a_name_that_all_systems_take():
    files = [path for name in KEPT for path in (ROOT / name).rglob("*") if path.is_file()]
    names = [path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts]
    assert len(names) > 150
    assert unfit_for_windows(names) == []
    assert max(map(len, names)) < 120


def text_without_encoding(source):
    """Lines that open a text file in whatever encoding the machine happens to prefer."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = {keyword.arg for keyword in node.keywords}
        mode = next((a.value for a in node.args if isinstance(a, ast.Constant) and "b" in str(a.value)), "")
        if (name == "read_text" and node.args) or (name == "write_text" and len(node.args) > 1):
            continue  # the encoding by position
        if (
            name in TEXT_CALLS
            and "encoding" not in given
            and not re.fullmatch(r"[rwxa]\+?b\+?|b[rwxa]", mode)
        ):
            found.append(node.lineno)
        if name in ("run", "Popen", "check_output") and "text" in given and "encoding" not in given:
            found.append(node.lineno)
    return found


def test_text_in_the_machines_own_encoding_is_found():
    careless = ["p.read_text()", "open(p)", "run(a, text=True)", 'open(p, "w")', "p.write_text(x)"]
    assert text_without_encoding("\n".join(careless)) == [1, 2, 3, 4, 5]
    careful = ['open(p, "rb")', 'p.read_text("utf-8")', 'p.write_text(x, encoding="utf-8")']
    assert text_without_encoding("\n".join(careful)) == []


@pytest.mark.parametrize("name", SOURCES)
def test_text_is_utf8_everywhere(name):
    assert text_without_encoding(SOURCES[name]) == []


@pytest.mark.parametrize("name", SOURCES)
def test_no_model_file_can_run_code(name):
    """Weights are safetensors or GGUF; nothing is unpickled, and no code comes with a model."""
    assert [found.group() for found in RUNS_CODE.finditer(SOURCES[name])] == []


def test_what_runs_code_is_found():
    for line in (
        "torch.load(p)",
        "import pickle",
        "np.load(p, allow_pickle=True)",
        "f(trust_remote_code=True)",
    ):
        assert RUNS_CODE.search(line), line
    assert not RUNS_CODE.search("yaml.safe_load(text)")


def test_the_licence_list_is_that_of_the_lock():
    """Names and versions always; the licences too where every package is installed."""
    text = (ROOT / licences.FILE).read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\S+) \| (\S+) \| (.+) \|$", text, re.MULTILINE)[1:]
    assert {name: version for name, version, _ in listed} == licences.locked(ROOT), "run `make licences`"
    assert "not stated" not in {found for _, _, found in listed}
    names = {distribution.metadata["Name"].lower() for distribution in metadata.distributions()}
    if all(name.lower() in names for name, _, _ in listed):
        assert licences.render(ROOT) == text, "run `make licences`"
