"""A model without heads gives the answers of one whose heads are gated to 0, is smaller, and comes back from disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import models
from bertology.encoder.attend import Gates
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.pruning import Heads, PrunedEncoder, prune, save_pruned
from bertology.encoder.task_heads import with_head
from bertology.encoder.variant import Variant
from bertology.errors import Refusal

CAN = ("bert", "roberta", "electra", "distilbert")
CANNOT = ("albert", "mpnet", "deberta-v2", "modernbert", "gpt2")
UNEVEN = np.array([[True, False, True, False], [False, False, True, False]])
A_LAYER = np.array([[True, False, True, True], [False, False, False, False]])
NONE = np.zeros((2, 4), np.bool_)


def _last(encoder: HuggingFaceEncoder) -> Tensor:
    batch = models.batch(encoder.tokenise(models.inputs()[:4]))
    with torch.inference_mode():
        return encoder.run(batch, hidden=True).hidden[-1][batch.mask.bool()]


def _parameters(encoder: HuggingFaceEncoder) -> int:
    return sum(weights.numel() for weights in encoder.model.parameters())


@pytest.mark.parametrize("name", CAN)
@pytest.mark.parametrize("kept", [UNEVEN, A_LAYER, NONE], ids=["uneven", "a whole layer", "none left"])
def test_the_answers_are_those_of_gates_at_zero(name: str, kept: Heads) -> None:
    encoder = models.encoder(name)
    gated = encoder.gated(Gates(scale=torch.from_numpy(kept).float()))
    found = _last(prune(encoder, kept))
    torch.testing.assert_close(found, _last(gated), atol=1e-5, rtol=1e-5)
    assert float((found - _last(encoder)).abs().max()) > 1e-2


@pytest.mark.parametrize("name", CAN)
def test_the_weights_of_the_heads_are_gone(name: str) -> None:
    encoder = models.encoder(name)
    before = _parameters(encoder)
    size = models.WIDTH // models.HEADS
    # Each head has rows of queries, keys and values with their biases, and columns of the output projection.
    lost = int((~UNEVEN).sum()) * size * (4 * models.WIDTH + 3)
    assert _parameters(prune(encoder, UNEVEN)) == before - lost
    assert _parameters(encoder) == before


@pytest.mark.parametrize("name", CAN)
@pytest.mark.parametrize("kept", [UNEVEN, A_LAYER, NONE], ids=["uneven", "a whole layer", "none left"])
def test_it_comes_back_from_disk_by_its_name(name: str, kept: Heads, tmp_path: Path) -> None:
    pruned = prune(models.encoder(name, "ForMaskedLM"), kept)
    save_pruned(pruned, tmp_path)
    again = load(str(tmp_path))
    assert isinstance(again, PrunedEncoder)
    torch.testing.assert_close(_last(again), _last(pruned), atol=0, rtol=0)
    assert _parameters(again) == _parameters(pruned)
    assert again.fingerprint == pruned.fingerprint != models.encoder(name, "ForMaskedLM").fingerprint


def test_a_head_of_a_task_and_tied_weights_are_kept(tmp_path: Path) -> None:
    encoder = load("tiny")
    assert isinstance(encoder, HuggingFaceEncoder)
    save_pruned(prune(encoder, UNEVEN), tmp_path)
    again = load(str(tmp_path))
    batch = models.batch(encoder.tokenise(models.inputs()[:3]))
    gated = encoder.gated(Gates(scale=torch.from_numpy(UNEVEN).float()))
    with torch.inference_mode():
        for head in ("mlm", "nsp"):
            torch.testing.assert_close(again.run(batch).logits[head], gated.run(batch).logits[head], atol=1e-5, rtol=0)
    assert (tmp_path / "pruned.safetensors").stat().st_size < 4 * _parameters(encoder)


@pytest.mark.parametrize("name", CANNOT)
def test_families_whose_heads_share_something_are_refused(name: str) -> None:
    with pytest.raises(Refusal):
        prune(models.encoder(name), UNEVEN)


def test_what_is_gone_cannot_be_watched_gated_pruned_again_or_taught() -> None:
    pruned = prune(models.encoder("bert"), UNEVEN)
    batch = models.batch(pruned.tokenise(models.inputs()[:1]))
    with pytest.raises(Refusal, match="cannot be recorded"):
        pruned.run(batch, on_layer=lambda _: None)
    with pytest.raises(Refusal, match="cannot be gated"):
        pruned.gated(Gates(scale=torch.ones(2, 4)))
    with pytest.raises(Refusal, match="pruned before"):
        prune(pruned, UNEVEN)
    with pytest.raises(Refusal, match="was pruned"):
        with_head(pruned, "label", ("a", "b"), variant=Variant(), seed=0)
    assert pruned.gated(None) is pruned


def test_fresh_weights_have_the_same_heads_gone() -> None:
    pruned = prune(models.encoder("bert"), UNEVEN)
    fresh = pruned.randomised(seed=1)
    assert isinstance(fresh, PrunedEncoder)
    assert _parameters(fresh) == _parameters(pruned)


def test_heads_of_another_shape_are_refused() -> None:
    with pytest.raises(Refusal, match="2 layers and 4 heads"):
        prune(models.encoder("bert"), UNEVEN.T)


def test_a_broken_folder_is_refused(tmp_path: Path) -> None:
    save_pruned(prune(models.encoder("bert"), UNEVEN), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps(config | {"pruned_heads": {"0": [1]}}), "utf-8")
    with pytest.raises(Refusal, match="24 are left"):
        load(str(tmp_path))
    del config["pruned_heads"]
    (tmp_path / "config.json").write_text(json.dumps(config), "utf-8")
    with pytest.raises(Refusal, match="does not say which heads"):
        load(str(tmp_path))
