"""Names of models: what each loads, and what is refused, with a way out."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import models
from bertology.encoder.builtin import BUILT_IN, in_folder
from bertology.encoder.load import load
from bertology.errors import Refusal
from models import FAMILIES


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    """A directory of a test's own."""
    return Path(shutil.copytree(models.directory("bert", "ForMaskedLM"), tmp_path / "bert"))


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


@pytest.mark.parametrize("name", FAMILIES)
def test_a_directory_describes_itself(name: str) -> None:
    encoder = models.encoder(name)
    assert encoder.name == str(models.directory(name))
    assert (encoder.layers, encoder.heads, encoder.width) == (3 if name == "modernbert" else 2, 4, 32)
    assert encoder.max_pieces == models.POSITIONS
    assert encoder.causal == (name == "gpt2")
    assert (encoder.mask_id is None) == (name == "gpt2")
    assert encoder.device == "cpu"


def test_an_input_of_the_greatest_length_goes_through_every_family() -> None:
    for name in FAMILIES:
        encoder = models.encoder(name)
        ids = torch.full((1, encoder.max_pieces), 7)
        with torch.inference_mode():
            encoder.run(models.Batch(ids, torch.zeros_like(ids), torch.ones_like(ids)))


def test_half_precision() -> None:
    encoder = load(str(models.directory("bert")), dtype="bfloat16")
    with torch.inference_mode():
        hidden = encoder.run(models.batch(encoder.tokenise(models.inputs()[:2])), hidden=True).hidden
    assert hidden[-1].dtype == torch.bfloat16
    assert "Did you mean 'bfloat16'" in _refused("tiny", dtype="bfloat")


def test_nothing_heavy_is_imported_before_a_model_is_asked_for() -> None:
    program = (
        "import sys, bertology.encoder.load as l\n"
        "l.load('random-vectors:8')\n"
        "sys.exit(any(heavy in sys.modules for heavy in ('torch', 'transformers', 'tokenizers', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_loading_is_quiet_and_leaves_the_users_settings(capfd: pytest.CaptureFixture[str], bert: Path) -> None:
    weights = load_file(models.directory("bert") / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "pooler" not in k}, bert / "model.safetensors", {"format": "pt"})
    _edit_config(bert, architectures=["BertModel"])
    talk: Any = transformers.utils.logging
    talk.set_verbosity_info()
    talk.enable_progress_bar()
    capfd.readouterr()
    try:
        load(str(bert))
        assert capfd.readouterr() == ("", "")
        assert talk.get_verbosity() == logging.INFO
        assert talk.is_progress_bar_enabled()
        talk.disable_progress_bar()
        load(str(bert))
        assert not talk.is_progress_bar_enabled()
    finally:
        talk.set_verbosity_warning()
        talk.enable_progress_bar()


def test_an_implementation_named_in_the_checkpoint_is_no_hindrance(bert: Path) -> None:
    """Many checkpoints ask for one that is not installed here."""
    _edit_config(bert, attn_implementation="flash_attention_2", _attn_implementation="flash_attention_2")
    assert load(str(bert)).fingerprint


def test_paths_that_lead_nowhere(tmp_path: Path) -> None:
    assert "no such directory" in _refused(tmp_path / "nowhere")
    assert "no such directory" in _refused("./nowhere")
    assert "no such directory" in _refused("one/too/many")
    assert "has no config.json" in _refused(tmp_path)
    (tmp_path / "vectors.txt").write_text("a 1 2\n")
    assert "is a file" in _refused(tmp_path / "vectors.txt")


def test_a_directory_that_lacks_something(bert: Path) -> None:
    for file in bert.glob("tokenizer*"):
        file.rename(file.with_suffix(".away"))
    assert "has no tokeniser" in _refused(bert)
    for file in bert.glob("*.away"):
        file.rename(file.with_suffix(".json"))
    (bert / "model.safetensors").rename(bert / "away")
    assert "has no weights" in _refused(bert)
    (bert / "config.json").write_text("{")
    assert "not readable as JSON" in _refused(bert)
    (bert / "config.json").write_text("{}")
    assert "model_type" in _refused(bert)


def test_pickled_weights_only_with_the_flag(bert: Path) -> None:
    weights = load_file(bert / "model.safetensors")
    torch.save(weights, bert / "pytorch_model.bin")
    (bert / "model.safetensors").unlink()
    message = _refused(bert)
    assert "only pickled weights (pytorch_model.bin)" in message
    assert "--allow-pickle" in message
    loaded = load(str(bert), allow_pickle=True)
    assert loaded.fingerprint == models.encoder("bert", "ForMaskedLM").fingerprint


def test_code_in_the_directory_is_never_run(bert: Path) -> None:
    (bert / "evil.py").write_text("raise SystemExit('ran')\n")
    mapped = {name: f"evil.{name}" for name in ("AutoConfig", "AutoModel", "AutoModelForMaskedLM", "AutoTokenizer")}
    _edit_config(bert, auto_map=mapped)
    assert load(str(bert)).outputs == {"mlm"}
    _edit_config(bert, auto_map=mapped, model_type="evil", architectures=["EvilModel"])
    assert "code that comes with a model is never run" in _refused(bert)


@pytest.mark.parametrize("damage", ["cut", "header", "empty", "longer"])
def test_corrupt_weights(bert: Path, damage: str) -> None:
    file = bert / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes({"cut": whole[:-9], "header": b"\xff" * 64, "empty": b"", "longer": whole + b"more"}[damage])
    assert "is corrupt or was not copied whole" in _refused(bert)


def test_weights_that_do_not_fit(bert: Path) -> None:
    _edit_config(bert, hidden_size=64)
    assert "cannot be loaded" in _refused(bert)


@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "BertForPreTraining"])
def test_a_head_without_weights(bert: Path, kind: str) -> None:
    _edit_config(bert, architectures=[kind])
    message = _refused(bert)
    assert "lacks" in message
    assert "weights that its architecture needs" in message


def test_a_head_whose_pooler_is_missing(tmp_path: Path) -> None:
    """A bare model does not need it; a sentence classifier does."""
    folder = Path(shutil.copytree(models.directory("bert", "ForSequenceClassification"), tmp_path / "classifier"))
    weights = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "pooler" not in k}, folder / "model.safetensors", {"format": "pt"})
    assert "pooler" in _refused(folder)


def test_a_classifier_of_last_pieces_without_padding(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(models.directory("gpt2", "ForSequenceClassification"), tmp_path / "classifier"))
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps({**config, "pad_token_id": None}))
    assert "names no padding" in _refused(folder)


def test_unknown_names_get_a_suggestion_and_fail_fast_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    started = time.monotonic()
    assert "Did you mean 'tiny'?" in _refused("tinny")
    assert "neither a built-in model nor a directory" in _refused("nobody/nothing-at-all")
    assert time.monotonic() - started < 10
    assert "Did you mean 'random:tiny'?" in _refused("randm:tiny")
    assert "Did you mean 'glove:x.txt'?" in _refused("glov:x.txt")


def test_devices() -> None:
    assert "no device 'abacus'" in _refused("tiny", device="abacus")
    if not torch.cuda.is_available():
        assert "no device 'cuda'" in _refused("tiny", device="cuda")


def test_static_and_random_forms_of_what_has_none() -> None:
    assert "already a table of vectors" in _refused("static:random-vectors:8")
    assert "already a table of vectors" in _refused("random:random-vectors:8")
    assert "is not a size" in _refused("random-vectors:many")
    assert "is not a size" in _refused("random-vectors:0")


def test_tiny_is_made_on_the_spot_and_always_the_same() -> None:
    tiny, again = load("tiny"), load("tiny")
    assert (tiny.name, tiny.layers, tiny.heads, tiny.width) == ("tiny", 2, 4, 32)
    assert tiny.outputs == {"mlm", "nsp"}
    assert tiny.fingerprint == again.fingerprint
    assert "random" in BUILT_IN["tiny"].about
    (pieces,) = tiny.tokenise(models.inputs(["The unhappiest keys, 3 of them, weren't in the cabinet!"]))
    assert (pieces.unknown, pieces.vanished, pieces.straddling, pieces.unaligned) == (0, (), 0, 0)
    with torch.inference_mode():
        logits = tiny.run(models.batch([pieces])).logits
    assert np.isfinite(logits["mlm"].numpy()).all()


def test_a_built_in_model_in_a_folder_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertology.encoder.builtin.MODELS", models.directory("bert").parent)
    monkeypatch.setitem(BUILT_IN, "small", in_folder(models.directory("bert").name, "a test"))
    loaded = load("small")
    assert loaded.fingerprint == models.encoder("bert").fingerprint
    assert loaded.name == models.directory("bert").name
