"""Store a partner: low-rank factors, differences of vectors and the task head, in half precision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertology.encoder.delta_checkpoint import (
    CONFIG,
    DELTA_SUFFIX,
    ENTRY,
    FULL_SUFFIX,
    LEFT_SUFFIX,
    RIGHT_SUFFIX,
    TENSORS,
    base_fingerprint,
)
from bertology.training.loop import trainable_parameters
from pretraining.partners.factors import PARAMETRISED, factors


def store(model: Any, base: Path, folder: Path) -> None:
    """Write what a model with factors learnt over its base, as `bertology.encoder.delta_checkpoint` reads it."""
    tensors = difference(model, load_file(base / "model.safetensors"))
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / TENSORS)
    config = {key: value for key, value in model.config.to_diff_dict().items() if key != "dtype"}
    config["architectures"] = [type(model).__name__]
    if type(model).__name__.endswith("ForSequenceClassification"):
        config["problem_type"] = "single_label_classification"
    config[ENTRY] = {"base": base_fingerprint(base), "rank": max(low.right.shape[0] for _, low in factors(model))}
    (folder / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def difference(model: nn.Module, old: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every factor, every vector as the sum to its old self, and what the base does not have whole."""
    tensors: dict[str, Tensor] = {}
    for name, low in factors(model):
        tensors[name + LEFT_SUFFIX], tensors[name + RIGHT_SUFFIX] = _half(low.left), _half(low.right)
    for name, weights in trainable_parameters(model).items():
        if PARAMETRISED in name:
            continue
        if name in old:
            tensors[name + DELTA_SUFFIX] = _half(weights.detach().cpu() - old[name].float())
        else:
            tensors[name + FULL_SUFFIX] = _half(weights)
    return tensors


def _half(tensor: Tensor) -> Tensor:
    half = tensor.detach().cpu().to(torch.float16).contiguous()
    if not bool(torch.isfinite(half).all()):
        raise ValueError("a weight does not fit float16; the model has diverged")
    return half
