import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from rlcas_utils.records import sha256_file
from rlcas_utils.reference import PROFILE
from rlcas_utils.run import publish as publishing
from rlcas_utils.stages import FILTER, SAC, SFT, STAGES


def _adapter(run_dir):
    folder = run_dir / SFT / "adapter"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A run folder of seven stages; the first has a figure, episode rows and a file that stays behind."""
    run_dir = tmp_path / "runs" / PROFILE
    for folder in ("records", "figures", "a", SAC, FILTER):
        (run_dir / folder).mkdir(parents=True)
    (run_dir / SAC / "expert.safetensors").write_bytes(b"weights")
    save_file({"lora_A": torch.tensor([0.1, 2.0])}, _adapter(run_dir) / "adapter_model.safetensors")
    config = json.dumps({"r": 2, "base_model_name_or_path": str(tmp_path)})
    (_adapter(run_dir) / "adapter_config.json").write_text(config)
    for split in ("train", "validation"):
        lines = [f'{{"category": "{c}", "n": {n}}}\n' for n in range(30) for c in ("auth", "order")]
        (run_dir / FILTER / f"{split}.jsonl").write_text("".join(lines))
    (run_dir / "figures" / "f.png").write_bytes(b"picture")
    (run_dir / "figures" / "f.json").write_text("{}")
    for name in ("desk_x.jsonl", "train.jsonl"):
        (run_dir / "a" / name).write_text("{}\n")
    outputs = {f"a/{name}": sha256_file(run_dir / "a" / name) for name in ("desk_x.jsonl", "train.jsonl")}
    figures = {"f": sha256_file(run_dir / "figures" / "f.png")}
    for number, stem in enumerate(STAGES):
        record = {"git": {"dirty": False}, "figures": {}, "outputs": {}, "parameters": {"MODEL": "small"}}
        if number == 0:
            record |= {"figures": figures, "outputs": outputs}
        (run_dir / "records" / f"{stem}.json").write_text(json.dumps(record))
    monkeypatch.setattr(publishing, "read_record", lambda path: json.loads(path.read_text()))
    return run_dir


def test_records_figures_and_samples_are_copied_and_nothing_else(finished, tmp_path):
    root = tmp_path / "project"
    written = {path.relative_to(root).as_posix() for path in publishing.publish(finished, root)}
    expected = {f"results/{PROFILE}/{stem}.json" for stem in STAGES}
    samples = {f"data/samples/{n}" for n in ("desk_x.jsonl", "sac_expert.safetensors")}
    chats = {f"data/samples/sft_{split}.jsonl" for split in ("train", "validation")}
    samples |= {f"data/samples/sft_adapter/adapter_{n}" for n in ("config.json", "model.safetensors")}
    assert written == expected | samples | chats | {"figures/f.png", "figures/f.json"}
    kept = [
        json.loads(line) for line in (root / "data/samples/sft_validation.jsonl").read_text().splitlines()
    ]
    assert kept == [{"category": c, "n": n} for n in range(5) for c in ("auth", "order")]
    assert len((root / "data/samples/sft_train.jsonl").read_text().splitlines()) == 2 * 25


def test_the_sample_adapter_is_halved_and_names_its_base_only(finished, tmp_path):
    publishing.publish(finished, tmp_path / "project")
    folder = tmp_path / "project/data/samples/sft_adapter"
    assert json.loads((folder / "adapter_config.json").read_text()) == {
        "r": 2,
        "base_model_name_or_path": "small",
    }
    weights = load_file(folder / "adapter_model.safetensors")["lora_A"]
    assert weights.dtype == torch.float16
    assert weights.tolist() == [0.0999755859375, 2.0]  # 0.1 is 1638 / 16384 in float16


def test_another_profile_leaves_figures_and_samples_alone(finished, tmp_path):
    root, other = tmp_path / "project", finished.with_name("a10g")
    finished.rename(other)
    written = {path.relative_to(root).as_posix() for path in publishing.publish(other, root)}
    assert written == {f"results/a10g/{stem}.json" for stem in STAGES}


def test_a_changed_figure_is_refused(finished, tmp_path):
    (finished / "figures" / "f.png").write_bytes(b"another")
    with pytest.raises(publishing.UnfitForReference, match=r"f\.png is not the file"):
        publishing.publish(finished, tmp_path / "project")
    assert not (tmp_path / "project").exists()


def test_uncommitted_sources_and_missing_stages_are_refused(finished, tmp_path):
    path = finished / "records" / f"{list(STAGES)[2]}.json"
    path.write_text(json.dumps({"git": {"dirty": True}, "figures": {}, "outputs": {}}))
    with pytest.raises(publishing.UnfitForReference, match="uncommitted sources"):
        publishing.publish(finished, tmp_path / "project")
    path.unlink()
    with pytest.raises(publishing.UnfitForReference, match="has no record"):
        publishing.publish(finished, tmp_path / "project")
