"""What ships? The factors and sums that training learnt, and the head of the task, in half precision."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from bertology.encoder.difference import ADDED, CONFIG, ENTRY, LEFT, RIGHT, TENSORS, WHOLE, base_fingerprint
from bertology.finetuning.loop import moving
from pretraining.partners.factors import PARAMETRISED, factors


def store(model: Any, base: Path, folder: Path) -> None:
    """Write what a model with factors learnt over its base, as `bertology.encoder.difference` reads it."""
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
        tensors[name + LEFT], tensors[name + RIGHT] = _half(low.left), _half(low.right)
    for name, weights in moving(model).items():
        if PARAMETRISED in name:
            continue
        if name in old:
            tensors[name + ADDED] = _half(weights.detach().cpu() - old[name].float())
        else:
            tensors[name + WHOLE] = _half(weights)
    return tensors


def _half(tensor: Tensor) -> Tensor:
    half = tensor.detach().cpu().to(torch.float16).contiguous()
    if not bool(torch.isfinite(half).all()):
        raise ValueError("a weight does not fit float16; the model has diverged")
    return half
