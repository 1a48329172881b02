"""Equal function, equal fingerprint; any change that numbers depend on gives another one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers.normalizers import BertNormalizer

import models
from bertology.encoder.attend import Gates
from bertology.encoder.huggingface import wrap
from bertology.encoder.load import load
from family_tokenisers import BERT_SPECIAL, bracketed, word_piece
from models import FAMILIES


@pytest.mark.parametrize("name", FAMILIES)
def test_two_loads_and_the_model_that_was_saved_are_equal(name: str) -> None:
    loaded = load(str(models.directory(name)))
    assert loaded.fingerprint == models.encoder(name).fingerprint
    assert models.wrapped(models.model(name), name).fingerprint == loaded.fingerprint
    assert models.wrapped(models.model(name, seed=1), name).fingerprint != loaded.fingerprint


def test_one_weight_makes_another_fingerprint_even_of_the_same_model() -> None:
    """A model trained further in place must not be taken for the one it was."""
    model = models.model("bert")
    encoder = models.wrapped(model, "bert")
    before = encoder.fingerprint
    assert encoder.fingerprint == before
    weight = model.encoder.layer[1].output.dense.weight
    kept = weight[0, 0].item()
    with torch.no_grad():
        weight[0, 0] += 1e-3
    assert encoder.fingerprint != before
    with torch.no_grad():
        weight[0, 0] = kept
    assert encoder.fingerprint == before


def test_gates_and_their_kind_are_told_apart() -> None:
    encoder = models.encoder("bert")
    ones = torch.ones(encoder.layers, encoder.heads)
    other = ones.clone()
    other[0, 0] = 0
    gated = [
        encoder,
        encoder.gated(Gates(scale=ones)),
        encoder.gated(Gates(scale=other)),
        encoder.gated(Gates(uniform=other.bool())),
        encoder.gated(Gates(uniform=ones.bool())),
        encoder.gated(Gates(scale=other, uniform=ones.bool())),
    ]
    assert len({one.fingerprint for one in gated}) == len(gated)
    assert encoder.gated(Gates(scale=ones.clone())).fingerprint == gated[1].fingerprint
    assert encoder.gated(None).fingerprint == encoder.gated(Gates()).fingerprint == encoder.fingerprint


def test_another_tokeniser_and_another_precision_are_told_apart() -> None:
    encoder = models.encoder("bert")
    cased: Any = bracketed(word_piece(BERT_SPECIAL), BERT_SPECIAL)
    cased.normalizer = BertNormalizer(lowercase=False)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=cased)
    assert wrap(models.model("bert"), tokenizer, "bert").fingerprint != encoder.fingerprint
    assert load(str(models.directory("bert")), dtype="bfloat16").fingerprint != encoder.fingerprint


def test_a_missing_pooler_does_not_count(tmp_path: Path) -> None:
    """It is filled with random numbers at every load, and nothing depends on it."""
    shutil.copytree(models.directory("bert"), tmp_path / "bare")
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
    assert first.fingerprint != models.encoder("bert").fingerprint
