"""What ships? The difference of a fine-tuned model to its base, matrices cut to a rank, in half precision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bertology.encoder.difference import ADDED, CONFIG, ENTRY, LEFT, RIGHT, TENSORS, WHOLE, base_fingerprint


def store(model: Any, base: Path, folder: Path, *, rank: int) -> None:
    """Write the difference of a transformers model to its base, as `bertology.encoder.difference` reads it."""
    old = load_file(base / "model.safetensors")
    tensors = difference(model.state_dict(), old, rank=rank)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / TENSORS)
    config = {key: value for key, value in model.config.to_diff_dict().items() if key != "dtype"}
    config["architectures"] = [type(model).__name__]
    if type(model).__name__.endswith("ForSequenceClassification"):
        config["problem_type"] = "single_label_classification"
    config[ENTRY] = {"base": base_fingerprint(base), "rank": rank}
    (folder / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def difference(new: Mapping[str, Tensor], old: Mapping[str, Tensor], *, rank: int) -> dict[str, Tensor]:
    """Each changed weight as factors, as a sum or whole; factors only where they are the smaller."""
    tensors: dict[str, Tensor] = {}
    for name, weights in new.items():
        if name not in old:
            tensors[name + WHOLE] = _half(weights)
            continue
        change = weights.float() - old[name].float()
        if not bool(change.any()):
            continue
        if change.ndim == 2 and rank * sum(change.shape) < change.numel():
            left, right = factors(change, rank)
            tensors[name + LEFT], tensors[name + RIGHT] = _half(left), _half(right)
        else:
            tensors[name + ADDED] = _half(change)
    return tensors


def factors(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """Left (rows, rank) and right (rank, columns) whose product is the nearest matrix of that rank (Eckart-Young)."""
    u, s, v = torch.linalg.svd(matrix.double(), full_matrices=False)
    root = s[:rank].sqrt()
    return (u[:, :rank] * root).float(), (root[:, None] * v[:rank]).float()


def _half(tensor: Tensor) -> Tensor:
    half = tensor.to(torch.float16).contiguous()
    if not bool(torch.isfinite(half).all()):
        raise ValueError("a weight does not fit float16; the model has diverged")
    return half
