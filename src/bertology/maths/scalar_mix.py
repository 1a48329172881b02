"""Classifiers on a learned mixture of layers: their sum by softmax weights; no BERT here.

A factor before the sum, as scalar mixes have it, would undo the penalty of the classifier's weights, which can be as
large as it makes them: there is none.

Each layer is centred on its own mean, and all are scaled by one number, so that a layer of longer vectors still says
more than others, unless each is to be scaled by itself. Half of a small penalty times the squared logarithms of the
weights keeps them finite. Problems (labellings or seeds) are fitted together on all examples by L-BFGS in double
precision: cross-entropy plus half of a penalty times the squared weights of the classifier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.maths.classifier import Floats, Gold, Ints, Recipe, first_parameters, gold_of, mean_loss, scores_of
from bertology.maths.classifier import unpacked as parts_of
from bertology.maths.minimiser import End, Seen, Which, minimise

EVEN = 0.01


@dataclass(frozen=True)
class Mixtures:
    """Fitted mixtures, one a problem: `weights` is (problem, layer) and sums to 1."""

    recipe: Recipe
    parameters: Tensor
    mean: Tensor
    scale: Tensor
    classes: int

    @property
    def weights(self) -> NDArray[np.float64]:
        """(problem, layer) the softmax weights."""
        return self.parameters[:, 0, : len(self.mean)].softmax(-1).double().numpy()

    def predict(self, features: Floats) -> NDArray[np.int64]:
        """(problem, example) the class with the highest score, of (layer, example, feature)."""
        x = (torch.from_numpy(np.asarray(features, np.float64)) - self.mean) / self.scale
        with torch.inference_mode():
            scores = _scores(self.recipe, x, self.parameters, self.classes)
        return scores.argmax(2)[:, 0].numpy()


def fit_mixtures(
    features: Floats, labels: Ints, classes: int, recipe: Recipe, *, seeds: tuple[int, ...], each_scaled: bool = False
) -> Mixtures:
    """Train on (layer, example, feature) and (problem, example) labels, `UNUSED` where a problem leaves one out."""
    raw = torch.from_numpy(np.asarray(features, np.float64))
    mean = raw.mean(1, keepdim=True)
    sizes = (raw - mean).square().mean((1, 2), keepdim=True).sqrt()
    scale = sizes if each_scaled else sizes.square().mean().sqrt().expand_as(sizes)
    x = (raw - mean) / scale.clamp(min=1e-12)
    gold = gold_of(labels, 1)
    drawn = torch.stack([first_parameters(recipe, x.shape[-1], classes, seed) for seed in seeds])
    start = torch.cat([torch.zeros(len(seeds), len(x)), drawn], -1)[:, None].double()

    def objective(parameters: Tensor, which: Which) -> Seen:
        leaf = parameters.detach().requires_grad_()
        own = Gold(gold.label[which.groups], gold.share[which.groups])
        with torch.enable_grad():
            found = _by_problem(_scores(recipe, x, leaf, classes), own)
            weights = parts_of(recipe, leaf[..., len(x) :], x.shape[-1], classes)
            squared = sum(part.square().flatten(2).sum(-1) for part in weights if part.ndim > 3)
            loss = found + recipe.penalties[0] / 2 * squared + EVEN / 2 * leaf[..., : len(x)].square().sum(-1)
            (slope,) = torch.autograd.grad(loss.sum(), leaf)
        return Seen(loss.detach(), loss.detach(), slope)

    found = minimise(objective, start, End(recipe.iterations, recipe.tolerance))
    return Mixtures(recipe, found, mean, scale, classes)


def _by_problem(scores: Tensor, gold: Gold) -> Tensor:
    """(problem, 1) losses: here problems lie along the axis of groups, each with its own mixture."""
    each = [
        mean_loss(scores[row : row + 1], Gold(gold.label[row : row + 1], gold.share[row : row + 1]))
        for row in range(len(scores))
    ]
    return torch.cat(each)


def _scores(recipe: Recipe, x: Tensor, parameters: Tensor, classes: int) -> Tensor:
    """(problem, 1, class, example)."""
    layers = len(x)
    weights = parameters[:, 0, :layers].softmax(-1)
    mixed = (weights @ x.flatten(1)).unflatten(-1, x.shape[1:])
    return scores_of(recipe, mixed, parameters[..., layers:], classes)
