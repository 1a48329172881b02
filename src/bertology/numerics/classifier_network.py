"""Classifier architectures: linear, low-rank, multi-layer and bilinear, for many classifiers at once.

Parameters are (group, problem, parameter): one flat row per classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

ClassifierForm = Literal["linear", "rank", "mlp", "bilinear"]


@dataclass(frozen=True)
class ClassifierConfig:
    """Architecture of a classifier, and settings of its training.

    `linear`: scores W x + b. `rank`: the same through `hidden_sizes[0]` linear units (W2 W1 x). `mlp`: ReLU layers of
    these sizes. `bilinear`: features are two concatenated vectors, scores W ((A x) * (B y)) with `hidden_sizes[0]`
    products.

    `tolerance` bounds the gradient at the end: its root mean square over features in each class for linear classifiers,
    its largest component for others.
    """

    form: ClassifierForm = "linear"
    hidden_sizes: tuple[int, ...] = ()
    l2_penalties: tuple[float, ...] = (1e-3,)
    max_iterations: int = 100
    patience: int = 10
    tolerance: float = 1e-4

    @property
    def name(self) -> str:
        """The name as in options: linear, rank:10, mlp:50, mlp:50:50, bilinear:20."""
        return ":".join([self.form, *map(str, self.hidden_sizes)])


def _parameter_shapes(config: ClassifierConfig, width: int, classes: int) -> list[tuple[int, ...]]:
    """Shapes of the parameters: weights (out, in) and bias (out) in turn."""
    if config.form == "bilinear":
        return [
            (config.hidden_sizes[0], width // 2),
            (config.hidden_sizes[0], width // 2),
            (classes, config.hidden_sizes[0]),
            (classes,),
        ]
    sizes = [width, *config.hidden_sizes, classes]
    shapes: list[tuple[int, ...]] = []
    for before, after in pairwise(sizes):
        shapes += [(after, before), (after,)]
    return shapes


def unpack_parameters(config: ClassifierConfig, parameters: Tensor, width: int, classes: int) -> list[Tensor]:
    """(group, problem, ...) arrays of weights and biases."""
    shapes = _parameter_shapes(config, width, classes)
    parts = parameters.split([int(np.prod(shape)) for shape in shapes], -1)
    return [part.unflatten(-1, shape) for part, shape in zip(parts, shapes, strict=True)]


def class_scores(config: ClassifierConfig, x: Tensor, parameters: Tensor, classes: int) -> Tensor:
    """(group, problem, class, example) scores."""
    parts = unpack_parameters(config, parameters, x.shape[-1], classes)
    if config.form == "bilinear":
        left, right = x.chunk(2, -1)
        return parts[2] @ (_first_layer(left, parts[0]) * _first_layer(right, parts[1])) + parts[3][..., None]
    hidden = _first_layer(x, parts[0]) + parts[1][..., None]
    for weights, bias in zip(parts[2::2], parts[3::2], strict=True):
        hidden = weights @ (hidden.relu() if config.form == "mlp" else hidden) + bias[..., None]
    return hidden


def _first_layer(x: Tensor, weights: Tensor) -> Tensor:
    """(group, problem, unit, example), by one product for all problems of a group."""
    return (weights.flatten(1, 2) @ x.transpose(1, 2)).unflatten(1, weights.shape[1:3])


def initial_parameters(config: ClassifierConfig, width: int, classes: int, seed: int) -> Tensor:
    """(parameter,) initial parameters: zeros for linear classifiers, else random."""
    shapes = _parameter_shapes(config, width, classes)
    if config.form == "linear":
        return torch.zeros(sum(int(np.prod(shape)) for shape in shapes))
    generator = torch.Generator().manual_seed(seed)
    parts: list[Tensor] = []
    for index, shape in enumerate(shapes):
        is_weight = len(shape) > 1
        # Small weights in the last layer: at first all classes are about equally probable.
        std = (0.1 if index >= len(shapes) - 2 else 2**0.5) * shape[-1] ** -0.5
        parts.append(std * torch.randn(shape, generator=generator) if is_weight else torch.zeros(shape))
    return torch.cat([part.flatten() for part in parts])
