"""Load models by name: the forms of names, and refusals with a remedy."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import tiny_models
from bertology.encoder import builtin
from bertology.encoder.builtin import BUILT_IN_MODELS, BuiltInModel
from bertology.encoder.encoder import ModelInputs
from bertology.encoder.load import SUPPORTED_VERSIONS, load
from bertology.errors import LoadWarning, Refusal
from tiny_models import FAMILIES


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A copy of a model directory that a test may change."""
    return Path(shutil.copytree(tiny_models.directory("bert", "ForMaskedLM"), tmp_path / "bert"))


def _refused(name: str | Path, **options: Any) -> str:
    with pytest.raises(Refusal) as caught:
        load(str(name), **options)
    message = str(caught.value)
    assert "\n" not in message
    assert "Expected" in message
    return message


def _edit_config(folder: Path, **changes: Any) -> None:
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({name: value for name, value in {**config, **changes}.items() if value is not None}))


@pytest.mark.parametrize("name", tiny_models.ALL_FAMILIES)
def test_the_properties_of_a_loaded_directory(name: str) -> None:
    encoder = tiny_models.encoder(name)
    assert encoder.name == str(tiny_models.directory(name))
    assert (encoder.layers, encoder.heads, encoder.width) == (3 if name == "modernbert" else 2, 4, 32)
    assert encoder.max_length == tiny_models.POSITIONS
    is_causal = name == "gpt2" or (name in tiny_models.CAUSAL_AND_T5 and "t5" not in name)
    assert encoder.causal == (encoder.mask_token_id is None) == is_causal
    assert encoder.device == "cpu"


def test_every_family_accepts_inputs_of_maximum_length() -> None:
    for name in FAMILIES:
        encoder = tiny_models.encoder(name)
        ids = torch.full((1, encoder.max_length), 7)
        with torch.inference_mode():
            encoder.forward(ModelInputs(ids, torch.zeros_like(ids), torch.ones_like(ids)))


def test_dtypes() -> None:
    encoder = load(str(tiny_models.directory("bert")), dtype="bfloat16")
    with torch.inference_mode():
        hidden = encoder.forward(
            tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:2])), hidden=True
        ).hidden_states
    assert hidden[-1].dtype == torch.bfloat16
    same = load(str(tiny_models.directory("bert")), dtype=torch.bfloat16, device=torch.device("cpu"))
    assert same.fingerprint == encoder.fingerprint != load(str(tiny_models.directory("bert"))).fingerprint
    assert "Did you mean 'bfloat16'" in _refused("tiny", dtype="bfloat")


def test_heavy_libraries_are_imported_only_with_a_model() -> None:
    program = (
        "import sys, bertology.encoder.load as l\n"
        "l.load('random-vectors:8')\n"
        "sys.exit(any(heavy in sys.modules for heavy in ('torch', 'transformers', 'tokenizers', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_loading_is_silent_and_restores_the_users_settings(capfd: pytest.CaptureFixture[str], bert: Path) -> None:
    weights = load_file(tiny_models.directory("bert") / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "pooler" not in k}, bert / "model.safetensors", {"format": "pt"})
    _edit_config(bert, architectures=["BertModel"])
    settings: Any = transformers.utils.logging
    settings.set_verbosity_info()
    settings.enable_progress_bar()
    capfd.readouterr()
    try:
        load(str(bert))
        assert capfd.readouterr() == ("", "")
        assert settings.get_verbosity() == logging.INFO
        assert settings.is_progress_bar_enabled()
        settings.disable_progress_bar()
        load(str(bert))
        assert not settings.is_progress_bar_enabled()
    finally:
        settings.set_verbosity_warning()
        settings.enable_progress_bar()


def test_the_attention_implementation_of_a_checkpoint_is_ignored(bert: Path) -> None:
    """Many checkpoints name an implementation that is not installed."""
    _edit_config(bert, attn_implementation="flash_attention_2", _attn_implementation="flash_attention_2")
    assert load(str(bert)).fingerprint


def test_paths_without_a_model_are_refused(tmp_path: Path) -> None:
    assert "no such directory" in _refused(tmp_path / "nowhere")
    assert "no such directory" in _refused("./nowhere")
    assert "no such directory" in _refused("one/too/many")
    assert "has no config.json" in _refused(tmp_path)
    (tmp_path / "vectors.txt").write_text("a 1 2\n")
    assert "is a file" in _refused(tmp_path / "vectors.txt")


def test_incomplete_directories_are_refused(bert: Path) -> None:
    for file in bert.glob("tokenizer*"):
        file.rename(file.with_suffix(".away"))
    assert "has no tokeniser" in _refused(bert)
    for file in bert.glob("*.away"):
        file.rename(file.with_suffix(".json"))
    (bert / "model.safetensors").rename(bert / "away")
    assert "has no weights" in _refused(bert)
    (bert / "config.json").write_text("{")
    assert "config.json cannot be read" in _refused(bert)
    (bert / "config.json").write_text("{}")
    assert "model_type" in _refused(bert)


def test_pickled_weights_need_a_flag(bert: Path) -> None:
    weights = load_file(bert / "model.safetensors")
    torch.save(weights, bert / "pytorch_model.bin")
    (bert / "model.safetensors").unlink()
    message = _refused(bert)
    assert "only pickled weights (pytorch_model.bin)" in message
    assert "--allow-pickle" in message
    loaded = load(str(bert), allow_pickle=True)
    assert loaded.fingerprint == tiny_models.encoder("bert", "ForMaskedLM").fingerprint


def test_code_in_the_directory_is_never_run(bert: Path) -> None:
    (bert / "evil.py").write_text("raise SystemExit('ran')\n")
    auto_map = {name: f"evil.{name}" for name in ("AutoConfig", "AutoModel", "AutoModelForMaskedLM", "AutoTokenizer")}
    _edit_config(bert, auto_map=auto_map)
    with pytest.warns(LoadWarning, match=r"names code of its own \(.*evil\.AutoConfig.*\), which is never run"):
        assert load(str(bert)).task_heads == {"mlm"}
    _edit_config(bert, auto_map=auto_map, model_type="evil", architectures=["EvilModel"])
    with pytest.warns(LoadWarning, match="which is never run"):
        assert "code that comes with a model is never run" in _refused(bert)


def test_an_index_of_weights_names_files_of_the_folder_only(bert: Path) -> None:
    weights = load_file(bert / "model.safetensors")
    outside = bert.parent / "outside.safetensors"
    (bert / "model.safetensors").rename(outside)
    for shard in ("../outside.safetensors", str(outside), "sub/../../outside.safetensors"):
        index = {"metadata": {}, "weight_map": dict.fromkeys(weights, shard)}
        (bert / "model.safetensors.index.json").write_text(json.dumps(index))
        assert "names a file outside of the folder" in _refused(bert), shard
    (bert / "model.safetensors.index.json").write_text('{"weight_map": [1]}')
    assert "weight_map" in _refused(bert)
    outside.rename(bert / "part.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, "part.safetensors")}
    (bert / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load(str(bert)).task_heads == {"mlm"}


@pytest.mark.parametrize("damage", ["cut", "header", "empty", "longer"])
def test_corrupt_weights_are_refused(bert: Path, damage: str) -> None:
    file = bert / "model.safetensors"
    content = file.read_bytes()
    damaged = {"cut": content[:-9], "header": b"\xff" * 64, "empty": b"", "longer": content + b"more"}
    file.write_bytes(damaged[damage])
    assert "is corrupt or truncated" in _refused(bert)


def test_weights_of_another_shape_are_refused(bert: Path) -> None:
    _edit_config(bert, hidden_size=64)
    assert "cannot be loaded" in _refused(bert)


@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BertForPreTraining"])
def test_a_task_head_without_weights_is_refused(bert: Path, kind: str) -> None:
    _edit_config(bert, architectures=[kind])
    message = _refused(bert)
    assert "lacks" in message
    assert "weights of its architecture" in message


def _remove_weights(folder: Path, *parts: str) -> None:
    weights = load_file(folder / "model.safetensors")
    kept = {key: tensor for key, tensor in weights.items() if not any(part in key for part in parts)}
    assert len(kept) < len(weights)
    save_file(kept, folder / "model.safetensors", {"format": "pt"})


@pytest.mark.parametrize(("family", "head"), [("bert", "cls."), ("mpnet", "lm_head."), ("roberta", "lm_head.")])
def test_an_encoder_without_its_language_model_head_is_loaded_bare(tmp_path: Path, family: str, head: str) -> None:
    folder = Path(shutil.copytree(tiny_models.directory(family, "ForMaskedLM"), tmp_path / "encoder"))
    complete = load(str(folder))
    _remove_weights(folder, head)
    if family == "mpnet":  # as all-mpnet-base-v2 is distributed: saved from the bare model, without its prefix
        weights = load_file(folder / "model.safetensors")
        bare_weights = {key.removeprefix("mpnet."): tensor for key, tensor in weights.items()}
        save_file(bare_weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.warns(LoadWarning, match="no weights of the language-model head .* bare encoder"):
        bare = load(str(folder))
    assert complete.task_heads == {"mlm"} and not bare.task_heads
    ids = torch.arange(10, 16)[None]
    inputs = ModelInputs(ids, torch.zeros_like(ids), torch.ones_like(ids))
    states = [encoder.forward(inputs, hidden=True).hidden_states[-1] for encoder in (complete, bare)]
    torch.testing.assert_close(*states)


def test_a_part_of_the_head_or_of_the_encoder_may_not_be_missing(bert: Path) -> None:
    _remove_weights(bert, "cls.predictions.transform.dense.bias")
    assert "lacks 1 weights" in _refused(bert)


def test_an_encoder_without_head_and_without_a_layer_is_refused(bert: Path) -> None:
    _remove_weights(bert, "cls.", "layer.1.attention.self.query.weight")
    assert "layer.1.attention.self.query.weight" in _refused(bert)


def test_a_classifier_without_its_pooler_is_refused(tmp_path: Path) -> None:
    """A bare model does not need its pooler; a text classifier does."""
    folder = Path(shutil.copytree(tiny_models.directory("bert", "ForSequenceClassification"), tmp_path / "classifier"))
    weights = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "pooler" not in k}, folder / "model.safetensors", {"format": "pt"})
    assert "pooler" in _refused(folder)


def test_a_causal_classifier_without_a_padding_token_is_refused(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_models.directory("gpt2", "ForSequenceClassification"), tmp_path / "classifier"))
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**config, "pad_token_id": None}))
    assert "has no padding token" in _refused(folder)


def test_unknown_names_get_a_suggestion_and_fail_fast_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    started = time.monotonic()
    assert "Did you mean 'tiny'?" in _refused("tinny")
    assert "neither a built-in model nor a directory" in _refused("nobody/nothing-at-all")
    assert time.monotonic() - started < 10
    assert "Did you mean 'random:tiny'?" in _refused("randm:tiny")
    assert "Did you mean 'glove:x.txt'?" in _refused("glov:x.txt")


def test_unavailable_devices_are_refused() -> None:
    assert "'abacus' is not available" in _refused("tiny", device="abacus")
    if not torch.cuda.is_available():
        assert "'cuda' is not available" in _refused("tiny", device="cuda")


def test_prefixes_need_a_transformer_or_a_size() -> None:
    assert "names static vectors" in _refused("static:random-vectors:8")
    assert "names static vectors" in _refused("random:random-vectors:8")
    assert "is not a vector size" in _refused("random-vectors:many")
    assert "is not a vector size" in _refused("random-vectors:0")


def test_tiny_is_deterministic() -> None:
    tiny = load("tiny")
    assert (tiny.name, tiny.layers, tiny.heads, tiny.width) == ("tiny", 2, 4, 32)
    assert tiny.task_heads == {"mlm", "nsp"}
    assert tiny.fingerprint == load("tiny").fingerprint
    assert "untrained" in BUILT_IN_MODELS["tiny"].description
    (tokens,) = tiny.tokenise(tiny_models.inputs(["The unhappiest keys, 3 of them, weren't in the cabinet!"]))
    assert (tokens.n_unknown, tokens.dropped_words, tokens.n_straddling, tokens.n_unaligned) == (0, (), 0, 0)
    with torch.inference_mode():
        logits = tiny.forward(tiny_models.batch([tokens])).logits
    assert np.isfinite(logits["mlm"].numpy()).all()


def test_a_built_in_model_is_declared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertology.encoder.builtin.MODELS", tiny_models.directory("bert").parent)
    monkeypatch.setitem(BUILT_IN_MODELS, "small", BuiltInModel(tiny_models.directory("bert").name, "a test"))
    loaded = load("small")
    assert loaded.fingerprint == tiny_models.encoder("bert").fingerprint
    assert loaded.name == tiny_models.directory("bert").name


def test_a_built_in_model_that_the_wheel_leaves_out_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(builtin, "MODELS", tmp_path)
    assert list(builtin.installed_models()) == ["tiny"]
    with pytest.raises(Refusal, match="mini-sentiment is not part of this installation"):
        load("mini-sentiment")


@pytest.mark.parametrize(
    ("package", "installed"),
    [("transformers", "5.0.0"), ("transformers", "4.57.6"), ("transformers", "6.0.0"), ("torch", "2.4.0+cu121")],
)
def test_other_versions_are_refused(monkeypatch: pytest.MonkeyPatch, package: str, installed: str) -> None:
    versions = {"torch": "2.6.0", "transformers": "5.4.0", package: installed}
    monkeypatch.setattr("bertology.encoder.load.version", lambda name: versions[name])  # pyright: ignore[reportUnknownLambdaType]
    expected = r"Expected torch from 2\.6 to below 3 and transformers from 5\.4 to below 6\. Run `pip install"
    with pytest.raises(Refusal, match=rf"{package} is {re.escape(installed)}; installed: .*{expected}"):
        load("tiny")


def test_packages_that_cannot_be_imported_are_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers.modeling_utils", None)
    with pytest.raises(
        Refusal, match=r"cannot be imported \(.*\); installed: torch .*, transformers .*Run `pip install"
    ):
        load("tiny")


def test_the_versions_are_those_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    for package, (lowest, first_unknown) in SUPPORTED_VERSIONS.items():
        stated = next(line for line in project["dependencies"] if re.split("[<>=]", line)[0] == package)
        assert stated == f"{package}>={'.'.join(map(str, lowest))},<{first_unknown[0]}"
