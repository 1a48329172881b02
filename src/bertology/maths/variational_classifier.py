"""Classifiers whose weights are distributions: what it costs to send labels by them (louizos2017, voita2020).

The code of the labels is the divergence of the weights from their prior plus the expected cross-entropy. Every unit
that comes in has a factor z with the normal-Jeffreys prior, which can shut it; weights and biases have the prior
N(0, 1). Many problems are fitted at once, on all examples, by Adam; no BERT here.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.maths.classifier import CELLS_AT_ONCE, moments, standardised

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]

# The approximation of the divergence of Molchanov, Ashukha & Vetrov (2017).
SLOPE, SHIFT, STRETCH = 0.63576, 1.87320, 1.48695
FIRST_SPREAD = -5.0
FINAL_DRAWS = 8


@dataclass(frozen=True)
class VariationalRecipe:
    """Hidden ReLU layers of these sizes (none: linear), steps of Adam and its rate, which falls to zero."""

    sizes: tuple[int, ...] = ()
    steps: int = 300
    rate: float = 0.1


class Code(NamedTuple):
    """(group, problem) nats: of the weights, and of the labels given the weights."""

    model: NDArray[np.float64]
    data: NDArray[np.float64]


def code_lengths(
    features: Floats, labels: Ints, classes: int, recipe: VariationalRecipe, *, seeds: tuple[int, ...]
) -> Code:
    """The variational codes of (problem, example) labels by (group, example, feature), one seed a problem."""
    wide = max(classes, *recipe.sizes, features.shape[-1] // 8, 1)
    at_once = max(1, CELLS_AT_ONCE // max(1, labels.size * wide))
    found = [
        _fitted(features[first : first + at_once], labels, classes, recipe, seeds)
        for first in range(0, len(features), at_once)
    ]
    return Code(*(np.concatenate(some) for some in zip(*found, strict=True)))


def _fitted(features: Floats, labels: Ints, classes: int, recipe: VariationalRecipe, seeds: tuple[int, ...]) -> Code:
    mean, scale = moments(features)
    x = standardised(features, mean, scale)
    gold = torch.from_numpy(np.asarray(labels, np.int64))
    generator = torch.Generator().manual_seed(seeds[0])
    sizes = [x.shape[-1], *recipe.sizes, classes]
    layers = [
        _Layer(len(x), seeds, before, after, first=number == 0)
        for number, (before, after) in enumerate(pairwise(sizes))
    ]
    parts = [part for layer in layers for part in layer.parts]
    optimiser = torch.optim.Adam(parts, lr=recipe.rate)
    for step in range(recipe.steps):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * min(1.0, 2 * (1 - step / recipe.steps))
        optimiser.zero_grad()
        model, data = _parts(layers, x, gold, generator)
        ((model + data).sum() / gold.shape[1]).backward()
        optimiser.step()
    with torch.inference_mode():
        drawn = [_parts(layers, x, gold, generator) for _ in range(FINAL_DRAWS)]
    model, data = drawn[0][0], torch.stack([some[1] for some in drawn]).mean(0)
    return Code(model.double().numpy(), data.double().numpy())


def _parts(layers: list[_Layer], x: Tensor, gold: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(group, problem) the divergence of the weights, and the cross-entropy of one draw of them."""
    hidden = x
    for number, layer in enumerate(layers):
        hidden = layer.drawn(hidden.relu() if number else hidden, generator)
    label = gold[None, :, None].expand(len(x), -1, 1, -1)
    data = -hidden.log_softmax(2).gather(2, label).squeeze(2).sum(-1)
    return sum((layer.divergence() for layer in layers), torch.zeros_like(data)), data


class _Layer:
    """Means and log-variances of weights (out, in), biases and factors, for every group and problem."""

    def __init__(self, groups: int, seeds: tuple[int, ...], before: int, after: int, *, first: bool) -> None:
        self.first = first
        drawn = [
            torch.randn(after, before, generator=torch.Generator().manual_seed(seed)) * (2 / before) ** 0.5
            for seed in seeds
        ]
        weights = torch.stack(drawn).expand(groups, -1, -1, -1)
        shape = (groups, len(seeds))
        self.weights = weights.clone().requires_grad_()
        self.weight_spread = torch.full((*shape, after, before), FIRST_SPREAD, requires_grad=True)
        self.bias = torch.zeros(*shape, after, requires_grad=True)
        self.bias_spread = torch.full((*shape, after), FIRST_SPREAD, requires_grad=True)
        self.factor = torch.ones(*shape, before, requires_grad=True)
        self.factor_spread = torch.full((*shape, before), FIRST_SPREAD, requires_grad=True)
        self.parts = [self.weights, self.weight_spread, self.bias, self.bias_spread, self.factor, self.factor_spread]

    def drawn(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """(group, problem, out, example): factors are drawn once a problem, scores once an example."""
        noise = torch.randn(self.factor.shape, generator=generator)
        factor = self.factor + noise * (self.factor_spread / 2).exp()
        weights = self.weights * factor[:, :, None]
        variances = self.weight_spread.exp() * factor.square()[:, :, None]
        centre, spread = self._product(weights, x), self._product(variances, x.square())
        spread = spread + self.bias_spread.exp()[..., None]
        drawn = torch.randn(centre.shape, generator=generator)
        return centre + self.bias[..., None] + drawn * spread.clamp(min=1e-12).sqrt()

    def _product(self, weights: Tensor, x: Tensor) -> Tensor:
        if not self.first:
            return weights @ x
        return (weights.flatten(1, 2) @ x.transpose(1, 2)).unflatten(1, weights.shape[1:3])

    def divergence(self) -> Tensor:
        """(group, problem) nats."""
        ratio = self.factor_spread - self.factor.square().clamp(min=1e-12).log()
        shut = SLOPE * torch.sigmoid(SHIFT + STRETCH * ratio) - torch.nn.functional.softplus(-ratio) / 2 - SLOPE
        normal = [
            (spread.exp() + centre.square() - spread - 1).flatten(2).sum(-1) / 2
            for centre, spread in ((self.weights, self.weight_spread), (self.bias, self.bias_spread))
        ]
        return normal[0] + normal[1] - shut.sum(-1)
