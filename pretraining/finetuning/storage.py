"""Store a fine-tuned model: low-rank factors, differences of vectors and the task head, in half precision."""

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
from pretraining.finetuning.low_rank import PARAMETRISED, low_rank_factors


def store(model: Any, base: Path, directory: Path) -> None:
    """Write the difference of a model from its base, in the format of `bertology.encoder.delta_checkpoint`."""
    tensors = difference(model, load_file(base / "model.safetensors"))
    directory.mkdir(parents=True, exist_ok=True)
    save_file(tensors, directory / TENSORS)
    config = {key: value for key, value in model.config.to_diff_dict().items() if key != "dtype"}
    config["architectures"] = [type(model).__name__]
    if type(model).__name__.endswith("ForSequenceClassification"):
        config["problem_type"] = "single_label_classification"
    rank = max(low_rank.right.shape[0] for _, low_rank in low_rank_factors(model))
    config[ENTRY] = {"base": base_fingerprint(base), "rank": rank}
    (directory / CONFIG).write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def difference(model: nn.Module, base_weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every factor, the change of every vector, and the weights that the base does not have."""
    tensors: dict[str, Tensor] = {}
    for name, low_rank in low_rank_factors(model):
        tensors[name + LEFT_SUFFIX], tensors[name + RIGHT_SUFFIX] = _to_half(low_rank.left), _to_half(low_rank.right)
    for name, weights in trainable_parameters(model).items():
        if PARAMETRISED in name:
            continue
        if name in base_weights:
            tensors[name + DELTA_SUFFIX] = _to_half(weights.detach().cpu() - base_weights[name].float())
        else:
            tensors[name + FULL_SUFFIX] = _to_half(weights)
    return tensors


def _to_half(tensor: Tensor) -> Tensor:
    half = tensor.detach().cpu().to(torch.float16).contiguous()
    if not bool(torch.isfinite(half).all()):
        raise ValueError("a weight overflows float16: the model has diverged")
    return half
