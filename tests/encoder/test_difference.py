"""A stored difference makes of its base what it was taken from, and of no other base anything."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import models
from bertology.encoder.difference import base_fingerprint, load_difference, weights_of
from bertology.errors import Refusal

KINDS = ("ForSequenceClassification", "ForTokenClassification")
CHANGED = 0.05


@pytest.fixture
def base() -> Path:
    return models.directory("bert", "ForPreTraining")


def _tuned(base: Path, kind: str) -> Any:
    """A model with the base's encoder, every matrix and vector but the embeddings moved, and a head of its own."""
    made = models.model("bert", kind, seed=1)
    old = load_file(base / "model.safetensors")
    random = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weights in made.state_dict().items():
            if name in old:
                moved = CHANGED * torch.randn(weights.shape, generator=random)
                weights.copy_(old[name] if "embeddings" in name else old[name] + moved)
    return made


def _write(folder: Path, model: Any, base: Path, *, rank: int | None) -> dict[str, Tensor]:
    """The format as its module describes it, written without the code that ships; no rank: sums instead of factors."""
    old = load_file(base / "model.safetensors")
    tensors: dict[str, Tensor] = {}
    for name, weights in model.state_dict().items():
        if name not in old:
            tensors[f"{name}.whole"] = weights.contiguous()
        elif not torch.equal(weights, old[name]):
            change = weights - old[name]
            if rank is None or change.ndim == 1:
                tensors[f"{name}.added"] = change
            else:
                u, s, v = torch.linalg.svd(change.double(), full_matrices=False)
                tensors[f"{name}.left"] = (u[:, :rank] * s[:rank]).float().contiguous()
                tensors[f"{name}.right"] = v[:rank].float().contiguous()
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "difference.safetensors")
    config = model.config.to_dict() | {"architectures": [type(model).__name__]}
    config["difference"] = {"base": base_fingerprint(base), "rank": rank}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return tensors


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [None, models.WIDTH])
def test_full_rank_is_the_model_again(base: Path, tmp_path: Path, kind: str, rank: int | None) -> None:
    model = _tuned(base, kind)
    _write(tmp_path / "partner", model, base, rank=rank)
    encoder = load_difference(base, tmp_path / "partner", name="partner")
    assert encoder.name == "partner"
    assert type(encoder.model) is type(model)
    for name, weights in encoder.model.state_dict().items():
        torch.testing.assert_close(weights, model.state_dict()[name], rtol=1e-5, atol=1e-6)
    batch = models.batch(encoder.tokenise(models.inputs()))
    ours = encoder.run(batch, hidden=True)
    theirs = models.wrapped(model, "bert").run(batch, hidden=True)
    (head,) = encoder.outputs
    torch.testing.assert_close(ours.logits[head], theirs.logits[head], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours.hidden[-1], theirs.hidden[-1], rtol=1e-4, atol=1e-4)


def test_what_is_cut_off_is_the_error(base: Path, tmp_path: Path) -> None:
    """Eckart-Young: the spectral norm of the error is the first singular value left out."""
    model = _tuned(base, KINDS[0])
    rank = 5
    stored = _write(tmp_path, model, base, rank=rank)
    weights, old = weights_of(base, tmp_path), load_file(base / "model.safetensors")
    matrices = [key.removesuffix(".left") for key in stored if key.endswith(".left")]
    assert len(matrices) == 6 * models.LAYERS + 1
    for name in matrices:
        truth = model.state_dict()[name]
        error = torch.linalg.matrix_norm(weights[name] - truth, ord=2)
        cut = torch.linalg.svdvals(truth - old[name])[rank]
        torch.testing.assert_close(error, cut, rtol=1e-3, atol=1e-5)


def test_what_is_not_named_is_the_base_s_own_and_its_heads_are_gone(base: Path, tmp_path: Path) -> None:
    _write(tmp_path, _tuned(base, KINDS[1]), base, rank=3)
    weights, old = weights_of(base, tmp_path), load_file(base / "model.safetensors")
    name = "bert.embeddings.word_embeddings.weight"
    torch.testing.assert_close(weights[name], old[name], rtol=0, atol=0)
    assert not [name for name in weights if name.startswith("cls.")]


def test_the_type_asked_for_is_the_type_given(base: Path, tmp_path: Path) -> None:
    _write(tmp_path, _tuned(base, KINDS[0]), base, rank=3)
    assert {p.dtype for p in load_difference(base, tmp_path, dtype="bfloat16").model.parameters()} == {torch.bfloat16}


def test_another_base_is_refused(base: Path, tmp_path: Path) -> None:
    _write(tmp_path / "partner", _tuned(base, KINDS[0]), base, rank=3)
    other = tmp_path / "other"
    shutil.copytree(base, other)
    weights = load_file(other / "model.safetensors")
    weights["bert.pooler.dense.bias"] += 1e-3
    save_file(weights, other / "model.safetensors")
    with pytest.raises(Refusal, match="was taken from a base with the fingerprint"):
        load_difference(other, tmp_path / "partner")


def test_a_folder_that_names_no_base_is_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="does not say which base"):
        load_difference(base, tmp_path)
    with pytest.raises(Refusal, match="does not say which base"):
        load_difference(base, base)


def test_a_broken_file_is_refused(base: Path, tmp_path: Path) -> None:
    _write(tmp_path, _tuned(base, KINDS[0]), base, rank=3)
    file = tmp_path / "difference.safetensors"
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(Refusal, match="cannot be read"):
        load_difference(base, tmp_path)
    file.unlink()
    with pytest.raises(Refusal, match="cannot be read"):
        load_difference(base, tmp_path)


@pytest.mark.parametrize("name", ["bert.nowhere.weight", "bert.pooler.dense.bias"])
def test_a_change_of_something_else_is_refused(base: Path, tmp_path: Path, name: str) -> None:
    stored = _write(tmp_path, _tuned(base, KINDS[0]), base, rank=3)
    save_file(stored | {f"{name}.added": torch.zeros(1)}, tmp_path / "difference.safetensors")
    with pytest.raises(Refusal, match="does not have in that shape"):
        load_difference(base, tmp_path)


def test_a_missing_head_is_refused(base: Path, tmp_path: Path) -> None:
    stored = _write(tmp_path, _tuned(base, KINDS[0]), base, rank=3)
    kept = {key: tensor for key, tensor in stored.items() if not key.endswith(".whole")}
    save_file(kept, tmp_path / "difference.safetensors")
    with pytest.raises(Refusal, match="lacks 2 weights"):
        load_difference(base, tmp_path)
