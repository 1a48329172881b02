"""Classifiers on a learned mixture of layers: their sum by softmax weights; no BERT here.

A factor before the sum, as scalar mixes have it, would undo the penalty of the classifier's weights, which can be as
large as it makes them: there is none.

Each layer is centred on its own mean, and all are scaled by one number, so that a layer of longer vectors still says
more than others, unless each is to be scaled by itself. Half of a small penalty times the squared logarithms of the
weights keeps them finite. Problems (labellings or seeds) are fitted together on all examples by L-BFGS: cross-entropy
plus half of a penalty times the squared weights of the classifier. A linear one may start where that of fewer layers
ended, which takes it to the same end in fewer steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.maths.classifier import Floats, Gold, Ints, gold_of, loss_and_error, mean_loss
from bertology.maths.classifier_network import Recipe, first_parameters, scores_of
from bertology.maths.classifier_network import unpacked as parts_of
from bertology.maths.minimiser import End, Precondition, Seen, Which, minimise

EVEN = 0.01
BOLD = 10.0
"""First steps of the mixing weights are so much longer than the slope: they bend little."""


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
        return self.parameters[:, 0, : len(self.mean)].double().softmax(-1).numpy()

    def predict(self, features: Floats) -> NDArray[np.int64]:
        """(problem, example) the class with the highest score, of (layer, example, feature)."""
        x = (torch.from_numpy(np.asarray(features, np.float32)) - self.mean) / self.scale
        with torch.inference_mode():
            scores = _scores(self.recipe, x, self.parameters, self.classes)
        return scores.argmax(2)[:, 0].numpy()


def fit_mixtures(
    features: Floats,
    labels: Ints,
    classes: int,
    recipe: Recipe,
    *,
    seeds: tuple[int, ...],
    each_scaled: bool = False,
    lower: Mixtures | None = None,
) -> Mixtures:
    """Train on (layer, example, feature) and (problem, example) labels, `UNUSED` where a problem leaves one out.

    `lower` are the mixtures of all layers but the last, from which linear ones go on.
    """
    raw = torch.from_numpy(np.asarray(features, np.float32))
    mean = raw.mean(1, keepdim=True)
    sizes = (raw - mean).square().mean((1, 2), keepdim=True).sqrt()
    scale = (sizes if each_scaled else sizes.square().mean().sqrt().expand_as(sizes)).clamp(min=1e-12)
    gold = gold_of(labels, 1)
    seen = gold.share.sum(0) > 0
    fitting = _Fitting(recipe, (raw[:, seen] - mean) / scale, Gold(gold.label[:, seen], gold.share[:, seen]), classes)
    linear = recipe.form == "linear"
    start = fitting.continued(lower.parameters) if linear and lower is not None else fitting.start(seeds)
    found = minimise(
        fitting.linear if linear else fitting.differentiated,
        start,
        End(recipe.iterations, recipe.tolerance),
        fitting.conditioner(start) if linear else None,
    )
    return Mixtures(recipe, found, mean, scale, classes)


@dataclass(frozen=True)
class _Fitting:
    """The objective: parameters are (problem, 1, parameter), the logarithms of the mixing weights first.

    Problems lie along the axis of groups, each with its own mixture.
    """

    recipe: Recipe
    x: Tensor
    gold: Gold
    classes: int

    def start(self, seeds: tuple[int, ...]) -> Tensor:
        """All layers alike."""
        drawn = [first_parameters(self.recipe, self.x.shape[-1], self.classes, seed) for seed in seeds]
        return torch.cat([torch.zeros(len(seeds), len(self.x)), torch.stack(drawn)], -1)[:, None]

    def continued(self, lower: Tensor) -> Tensor:
        """What was found without the last layer, which comes in with a weight like the others'."""
        known = lower[..., : len(self.x) - 1]
        return torch.cat([known, known.mean(-1, keepdim=True), lower[..., len(self.x) - 1 :]], -1)

    def linear(self, parameters: Tensor, which: Which) -> Seen:
        """Loss and gradient of linear classifiers, without a graph."""
        each = [
            self._of_one(own, Gold(self.gold.label[[row]], self.gold.share[[row]]))
            for row, own in zip(which.groups.tolist(), parameters[:, 0], strict=True)
        ]
        loss, slope = (torch.stack(part)[:, None] for part in zip(*each, strict=True))
        return Seen(loss, loss, slope)

    def _of_one(self, parameters: Tensor, gold: Gold) -> tuple[Tensor, Tensor]:
        layers, flat, penalty = len(self.x), self.x.flatten(1), self.recipe.penalties[0]
        share = parameters[:layers].softmax(-1)
        mixed = (share @ flat).unflatten(0, self.x.shape[1:])
        weights, bias = (one[0, 0] for one in self._classifier(parameters[None, None]))
        loss, error = loss_and_error(torch.addmm(bias[:, None], weights, mixed.T)[None, None], gold)
        error = error[0, 0]
        towards = flat @ (error.T @ weights).flatten()
        mixing = share * (towards - share @ towards) + EVEN * parameters[:layers]
        squared = penalty * weights.square().sum() + EVEN * parameters[:layers].square().sum()
        slope = torch.cat([mixing, (error @ mixed + penalty * weights).flatten(), error.sum(-1)])
        return loss[0, 0] + squared / 2, slope

    def differentiated(self, parameters: Tensor, which: Which) -> Seen:
        """The same of any classifier."""
        leaf = parameters.detach().requires_grad_()
        gold = Gold(self.gold.label[which.groups], self.gold.share[which.groups])
        with torch.enable_grad():
            found = _by_problem(_scores(self.recipe, self.x, leaf, self.classes), gold)
            squared = sum(part.square().flatten(2).sum(-1) for part in self._classifier(leaf) if part.ndim > 3)
            even = leaf[..., : len(self.x)].square().sum(-1)
            loss = found + self.recipe.penalties[0] / 2 * squared + EVEN / 2 * even
            (slope,) = torch.autograd.grad(loss.sum(), leaf)
        return Seen(loss.detach(), loss.detach(), slope)

    def _classifier(self, parameters: Tensor) -> list[Tensor]:
        return parts_of(self.recipe, parameters[..., len(self.x) :], self.x.shape[-1], self.classes)

    def conditioner(self, start: Tensor) -> Precondition:
        """Slopes times the inverse second derivative of a linear classifier that knows nothing yet."""
        layers, width = len(self.x), self.x.shape[-1]
        share = start[:, 0, :layers].softmax(-1).mean(0)
        mixed = (share @ self.x.flatten(1)).unflatten(0, self.x.shape[1:])
        curvature = (self.classes - 1) / self.classes**2
        bent = curvature * (mixed.T @ mixed) / len(mixed)
        bent += max(self.recipe.penalties[0], 1e-6) * torch.eye(width)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(bent.double())).float()

        def conditioned(slope: Tensor, which: Which) -> Tensor:
            weights, bias = self._classifier(slope)
            return torch.cat([BOLD * slope[..., :layers], (weights @ inverse).flatten(2), bias / curvature], -1)

        return conditioned


def _by_problem(scores: Tensor, gold: Gold) -> Tensor:
    """(problem, 1) losses."""
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
