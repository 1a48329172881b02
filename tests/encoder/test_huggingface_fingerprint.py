"""Equal encoders have equal fingerprints; any change that results depend on gives another one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers.normalizers import BertNormalizer

import tiny_models
from bertology.encoder.attention_hook import Gates
from bertology.encoder.huggingface import wrap
from bertology.encoder.load import load
from tiny_models import FAMILIES
from tiny_tokenisers import BERT_SPECIAL, add_cls_and_sep, wordpiece


@pytest.mark.parametrize("name", FAMILIES)
def test_a_saved_model_has_the_same_fingerprint_whenever_it_is_loaded(name: str) -> None:
    loaded = load(str(tiny_models.directory(name)))
    assert loaded.fingerprint == tiny_models.encoder(name).fingerprint
    assert tiny_models.wrap_model(tiny_models.model(name), name).fingerprint == loaded.fingerprint
    assert tiny_models.wrap_model(tiny_models.model(name, seed=1), name).fingerprint != loaded.fingerprint


def test_changing_one_weight_in_place_changes_the_fingerprint() -> None:
    """A model that was trained further must not be mistaken for its earlier state."""
    model = tiny_models.model("bert")
    encoder = tiny_models.wrap_model(model, "bert")
    before = encoder.fingerprint
    assert encoder.fingerprint == before
    weight = model.encoder.layer[1].output.dense.weight
    original = weight[0, 0].item()
    with torch.no_grad():
        weight[0, 0] += 1e-3
    assert encoder.fingerprint != before
    with torch.no_grad():
        weight[0, 0] = original
    assert encoder.fingerprint == before


def test_gates_and_their_kinds_change_the_fingerprint() -> None:
    encoder = tiny_models.encoder("bert")
    ones = torch.ones(encoder.layers, encoder.heads)
    one_zero = ones.clone()
    one_zero[0, 0] = 0
    gated = [
        encoder,
        encoder.with_gates(Gates(scale=ones)),
        encoder.with_gates(Gates(scale=one_zero)),
        encoder.with_gates(Gates(uniform=one_zero.bool())),
        encoder.with_gates(Gates(uniform=ones.bool())),
        encoder.with_gates(Gates(scale=one_zero, uniform=ones.bool())),
    ]
    assert len({variant.fingerprint for variant in gated}) == len(gated)
    assert encoder.with_gates(Gates(scale=ones.clone())).fingerprint == gated[1].fingerprint
    assert encoder.with_gates(None).fingerprint == encoder.with_gates(Gates()).fingerprint == encoder.fingerprint


def test_tokeniser_and_dtype_change_the_fingerprint() -> None:
    encoder = tiny_models.encoder("bert")
    cased: Any = add_cls_and_sep(wordpiece(BERT_SPECIAL), BERT_SPECIAL)
    cased.normalizer = BertNormalizer(lowercase=False)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=cased)
    assert wrap(tiny_models.model("bert"), tokenizer, "bert").fingerprint != encoder.fingerprint
    assert load(str(tiny_models.directory("bert")), dtype="bfloat16").fingerprint != encoder.fingerprint


def test_a_missing_pooler_does_not_change_the_fingerprint(tmp_path: Path) -> None:
    """It is initialised randomly at every load, and no output depends on it."""
    shutil.copytree(tiny_models.directory("bert"), tmp_path / "bare")
    weights = load_file(tmp_path / "bare" / "model.safetensors")
    save_file(
        {name: tensor for name, tensor in weights.items() if "pooler" not in name},
        tmp_path / "bare" / "model.safetensors",
        {"format": "pt"},
    )
    torch.manual_seed(0)
    first = load(str(tmp_path / "bare"))
    torch.manual_seed(1)
    assert load(str(tmp_path / "bare")).fingerprint == first.fingerprint
    assert first.fingerprint != tiny_models.encoder("bert").fingerprint
