"""A delta checkpoint restores the fine-tuned model from its base, and refuses any other base."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import tiny_models
from bertology.encoder.delta_checkpoint import apply_delta, base_fingerprint, load_delta
from bertology.errors import Refusal

KINDS = ("ForSequenceClassification", "ForTokenClassification")
CHANGE = 0.05


@pytest.fixture
def base() -> Path:
    return tiny_models.directory("bert", "ForPreTraining")


def _fine_tuned(base: Path, kind: str) -> Any:
    """A model with the base's encoder, all weights except the embeddings changed, and a new task head."""
    model = tiny_models.model("bert", kind, seed=1)
    base_weights = load_file(base / "model.safetensors")
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weights in model.state_dict().items():
            if name in base_weights:
                change = CHANGE * torch.randn(weights.shape, generator=generator)
                weights.copy_(base_weights[name] if "embeddings" in name else base_weights[name] + change)
    return model


def _write(folder: Path, model: Any, base: Path, *, rank: int | None) -> dict[str, Tensor]:
    """Write the documented format without the package's code; without a rank, full differences instead of factors."""
    base_weights = load_file(base / "model.safetensors")
    tensors: dict[str, Tensor] = {}
    for name, weights in model.state_dict().items():
        if name not in base_weights:
            tensors[f"{name}.whole"] = weights.contiguous()
        elif not torch.equal(weights, base_weights[name]):
            change = weights - base_weights[name]
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
@pytest.mark.parametrize("rank", [None, tiny_models.WIDTH])
def test_a_delta_of_full_rank_restores_the_model(base: Path, tmp_path: Path, kind: str, rank: int | None) -> None:
    model = _fine_tuned(base, kind)
    _write(tmp_path / "fine-tuned", model, base, rank=rank)
    encoder = load_delta(base, tmp_path / "fine-tuned", name="fine-tuned")
    assert encoder.name == "fine-tuned"
    assert type(encoder.model) is type(model)
    for name, weights in encoder.model.state_dict().items():
        torch.testing.assert_close(weights, model.state_dict()[name], rtol=1e-5, atol=1e-6)
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()))
    ours = encoder.forward(batch, hidden=True)
    theirs = tiny_models.wrap_model(model, "bert").forward(batch, hidden=True)
    (task_head,) = encoder.task_heads
    torch.testing.assert_close(ours.logits[task_head], theirs.logits[task_head], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours.hidden_states[-1], theirs.hidden_states[-1], rtol=1e-4, atol=1e-4)


def test_the_error_of_a_lower_rank_is_the_next_singular_value(base: Path, tmp_path: Path) -> None:
    """Eckart-Young: the spectral norm of the error is the first omitted singular value."""
    model = _fine_tuned(base, KINDS[0])
    rank = 5
    delta = _write(tmp_path, model, base, rank=rank)
    weights, base_weights = apply_delta(base, tmp_path), load_file(base / "model.safetensors")
    matrices = [key.removesuffix(".left") for key in delta if key.endswith(".left")]
    assert len(matrices) == 6 * tiny_models.LAYERS + 1
    for name in matrices:
        original = model.state_dict()[name]
        error = torch.linalg.matrix_norm(weights[name] - original, ord=2)
        omitted = torch.linalg.svdvals(original - base_weights[name])[rank]
        torch.testing.assert_close(error, omitted, rtol=1e-3, atol=1e-5)


def test_other_weights_are_those_of_the_base_without_its_task_heads(base: Path, tmp_path: Path) -> None:
    _write(tmp_path, _fine_tuned(base, KINDS[1]), base, rank=3)
    weights, base_weights = apply_delta(base, tmp_path), load_file(base / "model.safetensors")
    name = "bert.embeddings.word_embeddings.weight"
    torch.testing.assert_close(weights[name], base_weights[name], rtol=0, atol=0)
    assert not [name for name in weights if name.startswith("cls.")]


def test_the_model_has_the_requested_dtype(base: Path, tmp_path: Path) -> None:
    _write(tmp_path, _fine_tuned(base, KINDS[0]), base, rank=3)
    assert {p.dtype for p in load_delta(base, tmp_path, dtype="bfloat16").model.parameters()} == {torch.bfloat16}


def test_another_base_is_refused(base: Path, tmp_path: Path) -> None:
    _write(tmp_path / "fine-tuned", _fine_tuned(base, KINDS[0]), base, rank=3)
    another_base = tmp_path / "another"
    shutil.copytree(base, another_base)
    weights = load_file(another_base / "model.safetensors")
    weights["bert.pooler.dense.bias"] += 1e-3
    save_file(weights, another_base / "model.safetensors")
    with pytest.raises(Refusal, match="belongs to a base model with the fingerprint"):
        load_delta(another_base, tmp_path / "fine-tuned")


def test_a_folder_without_the_name_of_its_base_is_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="does not name its base"):
        load_delta(base, tmp_path)
    with pytest.raises(Refusal, match="does not name its base"):
        load_delta(base, base)


def test_a_broken_file_is_refused(base: Path, tmp_path: Path) -> None:
    _write(tmp_path, _fine_tuned(base, KINDS[0]), base, rank=3)
    file = tmp_path / "difference.safetensors"
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(Refusal, match="cannot be read"):
        load_delta(base, tmp_path)
    file.unlink()
    with pytest.raises(Refusal, match="cannot be read"):
        load_delta(base, tmp_path)


@pytest.mark.parametrize("name", ["bert.nowhere.weight", "bert.pooler.dense.bias"])
def test_a_delta_of_an_unknown_or_misshapen_weight_is_refused(base: Path, tmp_path: Path, name: str) -> None:
    delta = _write(tmp_path, _fine_tuned(base, KINDS[0]), base, rank=3)
    save_file(delta | {f"{name}.added": torch.zeros(1)}, tmp_path / "difference.safetensors")
    with pytest.raises(Refusal, match="does not have in that shape"):
        load_delta(base, tmp_path)


def test_a_missing_task_head_is_refused(base: Path, tmp_path: Path) -> None:
    delta = _write(tmp_path, _fine_tuned(base, KINDS[0]), base, rank=3)
    without_head = {key: tensor for key, tensor in delta.items() if not key.endswith(".whole")}
    save_file(without_head, tmp_path / "difference.safetensors")
    with pytest.raises(Refusal, match="lacks 2 weights"):
        load_delta(base, tmp_path)
