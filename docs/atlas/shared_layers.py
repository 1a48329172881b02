"""Find layers that two models have from a common ancestor: their query matrices still point the same way.

Matrices of models that were trained from different random weights are orthogonal but for chance, since permuting and
rotating the units of a layer changes no output.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

QUERY = re.compile(r".*layer\.(\d+)\.attention\.(?:self\.query|attn\.q)\.weight")
MIN_COSINE = 0.3


def find_shared_layers(folders: Mapping[str, Path]) -> list[dict[str, Any]]:
    """The pairs of layers, counted from 1, of two models whose query matrices have a cosine above `MIN_COSINE`."""
    matrices = {name: read_queries(folder) for name, folder in folders.items()}
    return [
        {"first": first, "first_layer": i, "second": second, "second_layer": j, "cosine": cosine}
        for first, second in combinations(matrices, 2)
        for i, left in matrices[first].items()
        for j, right in matrices[second].items()
        if left.shape == right.shape
        if (cosine := float(torch.cosine_similarity(left, right, dim=0))) > MIN_COSINE
    ]


def read_queries(folder: Path) -> dict[int, torch.Tensor]:
    """The query matrix of each layer as a vector; empty if the folder has none."""
    file = folder / "model.safetensors"
    weights = load_file(file) if file.is_file() else {}
    found = {int(match[1]) + 1: tensor for name, tensor in weights.items() if (match := QUERY.fullmatch(name))}
    return {layer: found[layer].float().flatten() for layer in sorted(found)}
