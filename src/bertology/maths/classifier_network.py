"""What a classifier computes: linear, through a few units, with hidden layers, or bilinear; no BERT here.

Parameters of many classifiers lie along (group, problem), each in one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor

Form = Literal["linear", "rank", "mlp", "bilinear"]


@dataclass(frozen=True)
class Recipe:
    """What a classifier is and how it is fitted.

    `linear`: scores W x + b. `rank`: the same through `sizes[0]` units without a non-linearity (W2 W1 x). `mlp`: ReLU
    layers of these sizes. `bilinear`: features are two vectors end to end; W ((A x) * (B y)) with `sizes[0]` products.

    `tolerance` is how large a gradient may be at the end: of linear ones its root mean square over features in each
    class, of others its largest part.
    """

    form: Form = "linear"
    sizes: tuple[int, ...] = ()
    penalties: tuple[float, ...] = (1e-3,)
    iterations: int = 100
    patience: int = 10
    tolerance: float = 1e-4

    @property
    def name(self) -> str:
        """As it is written in options: linear, rank:10, mlp:50, mlp:50:50, bilinear:20."""
        return ":".join([self.form, *map(str, self.sizes)])


def _shapes(recipe: Recipe, width: int, classes: int) -> list[tuple[int, ...]]:
    """The shapes of a classifier's parts: weights (out, in) and bias (out) in turn."""
    if recipe.form == "bilinear":
        return [(recipe.sizes[0], width // 2), (recipe.sizes[0], width // 2), (classes, recipe.sizes[0]), (classes,)]
    sizes = [width, *recipe.sizes, classes]
    shapes: list[tuple[int, ...]] = []
    for before, after in pairwise(sizes):
        shapes += [(after, before), (after,)]
    return shapes


def unpacked(recipe: Recipe, parameters: Tensor, width: int, classes: int) -> list[Tensor]:
    """(group, problem, ...) of each part."""
    shapes = _shapes(recipe, width, classes)
    parts = parameters.split([int(np.prod(shape)) for shape in shapes], -1)
    return [part.unflatten(-1, shape) for part, shape in zip(parts, shapes, strict=True)]


def scores_of(recipe: Recipe, x: Tensor, parameters: Tensor, classes: int) -> Tensor:
    """(group, problem, class, example)."""
    parts = unpacked(recipe, parameters, x.shape[-1], classes)
    if recipe.form == "bilinear":
        left, right = x.chunk(2, -1)
        return parts[2] @ (_first_layer(left, parts[0]) * _first_layer(right, parts[1])) + parts[3][..., None]
    hidden = _first_layer(x, parts[0]) + parts[1][..., None]
    for weights, bias in zip(parts[2::2], parts[3::2], strict=True):
        hidden = weights @ (hidden.relu() if recipe.form == "mlp" else hidden) + bias[..., None]
    return hidden


def _first_layer(x: Tensor, weights: Tensor) -> Tensor:
    """(group, problem, unit, example) by one product for all problems of a group."""
    return (weights.flatten(1, 2) @ x.transpose(1, 2)).unflatten(1, weights.shape[1:3])


def first_parameters(recipe: Recipe, width: int, classes: int, seed: int) -> Tensor:
    """(parameter,) where a classifier starts: zeros where it is linear, else drawn."""
    shapes = _shapes(recipe, width, classes)
    if recipe.form == "linear":
        return torch.zeros(sum(int(np.prod(shape)) for shape in shapes))
    generator = torch.Generator().manual_seed(seed)
    parts: list[Tensor] = []
    for place, shape in enumerate(shapes):
        weights = len(shape) > 1
        # A small last layer: at first every class has about the same chance.
        size = (0.1 if place >= len(shapes) - 2 else 2**0.5) * shape[-1] ** -0.5
        parts.append(size * torch.randn(shape, generator=generator) if weights else torch.zeros(shape))
    return torch.cat([part.flatten() for part in parts])
