"""Classifiers on a scalar mix of layers: a sum with learned softmax weights.

The usual scale factor of scalar mixes is left out, as it would undo the L2 penalty on the classifier's weights.

Each layer is centred; all layers are divided by the same number, so that layers with longer vectors keep their larger
influence, unless each layer is scaled separately. A small penalty on the squared logarithms of the mixing weights keeps
them finite. Problems (labellings or seeds) are fitted together on all examples by L-BFGS: cross-entropy plus half the
L2 penalty times the squared weights of the classifier. A linear classifier can start from the solution for fewer
layers, which leads to the same solution in fewer steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.lazy import torch
from bertology.numerics.batched_classifier import (
    FloatArray,
    IntArray,
    WeightedLabels,
    cross_entropy_and_gradient,
    mean_loss,
    weighted_labels,
)
from bertology.numerics.classifier_network import ClassifierConfig, class_scores, initial_parameters, unpack_parameters
from bertology.numerics.lbfgs import ActiveProblems, LossAndGradient, Preconditioner, StoppingRule, minimise

if TYPE_CHECKING:
    from torch import Tensor

LOG_WEIGHT_PENALTY = 0.01
MIXING_STEP_FACTOR = 10.0
"""Step size of the mixing weights relative to their gradient: their curvature is small."""


@dataclass(frozen=True)
class ScalarMixClassifiers:
    """Fitted scalar mixes and classifiers, one per problem."""

    config: ClassifierConfig
    parameters: Tensor
    mean: Tensor
    scale: Tensor
    classes: int

    @property
    def mixing_weights(self) -> NDArray[np.float64]:
        """(problem, layer) softmax weights, with sum 1."""
        return self.parameters[:, 0, : len(self.mean)].double().softmax(-1).numpy()

    def predict(self, features: FloatArray) -> NDArray[np.int64]:
        """(problem, example) the class with the highest score, for (layer, example, feature)."""
        x = (torch.from_numpy(np.asarray(features, np.float32)) - self.mean) / self.scale
        with torch.inference_mode():
            scores = _scores(self.config, x, self.parameters, self.classes)
        return scores.argmax(2)[:, 0].numpy()


def fit_scalar_mixes(
    features: FloatArray,
    labels: IntArray,
    classes: int,
    config: ClassifierConfig,
    *,
    seeds: tuple[int, ...],
    scale_each_layer: bool = False,
    warm_start: ScalarMixClassifiers | None = None,
) -> ScalarMixClassifiers:
    """Train on (layer, example, feature) and (problem, example) labels, `UNUSED_LABEL` for unused examples.

    `warm_start` are the classifiers on all layers but the last, from which linear ones start.
    """
    raw = torch.from_numpy(np.asarray(features, np.float32))
    mean = raw.mean(1, keepdim=True)
    sizes = (raw - mean).square().mean((1, 2), keepdim=True).sqrt()
    scale = (sizes if scale_each_layer else sizes.square().mean().sqrt().expand_as(sizes)).clamp(min=1e-12)
    gold = weighted_labels(labels, 1)
    used = gold.weight.sum(0) > 0
    objective = _ScalarMixObjective(
        config, (raw[:, used] - mean) / scale, WeightedLabels(gold.label[:, used], gold.weight[:, used]), classes
    )
    linear = config.form == "linear"
    if linear and warm_start is not None:
        start = objective.extend_by_layer(warm_start.parameters)
    else:
        start = objective.init(seeds)
    parameters = minimise(
        objective.linear_loss if linear else objective.autograd_loss,
        start,
        StoppingRule(config.max_iterations, config.tolerance),
        objective.preconditioner(start) if linear else None,
    )
    return ScalarMixClassifiers(config, parameters, mean, scale, classes)


@dataclass(frozen=True)
class _ScalarMixObjective:
    """The objective; parameters are (problem, 1, parameter), the logarithms of the mixing weights first.

    Problems lie along the group axis of the optimiser, as each has its own mix.
    """

    config: ClassifierConfig
    x: Tensor
    gold: WeightedLabels
    classes: int

    def init(self, seeds: tuple[int, ...]) -> Tensor:
        """Initial parameters: equal mixing weights."""
        initial = [initial_parameters(self.config, self.x.shape[-1], self.classes, seed) for seed in seeds]
        return torch.cat([torch.zeros(len(seeds), len(self.x)), torch.stack(initial)], -1)[:, None]

    def extend_by_layer(self, parameters: Tensor) -> Tensor:
        """Add the last layer to parameters fitted without it, with the mean mixing weight."""
        log_weights = parameters[..., : len(self.x) - 1]
        return torch.cat([log_weights, log_weights.mean(-1, keepdim=True), parameters[..., len(self.x) - 1 :]], -1)

    def linear_loss(self, parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        """Loss and gradient of linear classifiers, without autograd."""
        results = [
            self._linear_problem_loss(row_parameters, WeightedLabels(self.gold.label[[row]], self.gold.weight[[row]]))
            for row, row_parameters in zip(active.groups.tolist(), parameters[:, 0], strict=True)
        ]
        loss, gradient = (torch.stack(values)[:, None] for values in zip(*results, strict=True))
        return LossAndGradient(loss, loss, gradient)

    def _linear_problem_loss(self, parameters: Tensor, gold: WeightedLabels) -> tuple[Tensor, Tensor]:
        layers, flat, penalty = len(self.x), self.x.flatten(1), self.config.l2_penalties[0]
        mixing_weights = parameters[:layers].softmax(-1)
        mixed = (mixing_weights @ flat).unflatten(0, self.x.shape[1:])
        weights, bias = (part[0, 0] for part in self._classifier(parameters[None, None]))
        loss, error = cross_entropy_and_gradient(torch.addmm(bias[:, None], weights, mixed.T)[None, None], gold)
        error = error[0, 0]
        layer_gradients = flat @ (error.T @ weights).flatten()
        mixing = (
            mixing_weights * (layer_gradients - mixing_weights @ layer_gradients)
            + LOG_WEIGHT_PENALTY * parameters[:layers]
        )
        squared = penalty * weights.square().sum() + LOG_WEIGHT_PENALTY * parameters[:layers].square().sum()
        gradient = torch.cat([mixing, (error @ mixed + penalty * weights).flatten(), error.sum(-1)])
        return loss[0, 0] + squared / 2, gradient

    def autograd_loss(self, parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        """Loss and gradient of any classifier, with autograd."""
        leaf = parameters.detach().requires_grad_()
        gold = WeightedLabels(self.gold.label[active.groups], self.gold.weight[active.groups])
        with torch.enable_grad():
            losses = _problem_losses(_scores(self.config, self.x, leaf, self.classes), gold)
            squared = sum(part.square().flatten(2).sum(-1) for part in self._classifier(leaf) if part.ndim > 3)
            log_weights = leaf[..., : len(self.x)].square().sum(-1)
            loss = losses + self.config.l2_penalties[0] / 2 * squared + LOG_WEIGHT_PENALTY / 2 * log_weights
            (gradient,) = torch.autograd.grad(loss.sum(), leaf)
        return LossAndGradient(loss.detach(), loss.detach(), gradient)

    def _classifier(self, parameters: Tensor) -> list[Tensor]:
        return unpack_parameters(self.config, parameters[..., len(self.x) :], self.x.shape[-1], self.classes)

    def preconditioner(self, start: Tensor) -> Preconditioner:
        """Multiply by the inverse Hessian of a linear classifier at zero weights."""
        layers, width = len(self.x), self.x.shape[-1]
        mixing_weights = start[:, 0, :layers].softmax(-1).mean(0)
        mixed = (mixing_weights @ self.x.flatten(1)).unflatten(0, self.x.shape[1:])
        curvature = (self.classes - 1) / self.classes**2
        hessian = curvature * (mixed.T @ mixed) / len(mixed)
        hessian += max(self.config.l2_penalties[0], 1e-6) * torch.eye(width)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky(hessian.double())).float()

        def precondition(gradient: Tensor, active: ActiveProblems) -> Tensor:
            weights, bias = self._classifier(gradient)
            return torch.cat(
                [MIXING_STEP_FACTOR * gradient[..., :layers], (weights @ inverse).flatten(2), bias / curvature], -1
            )

        return precondition


def _problem_losses(scores: Tensor, gold: WeightedLabels) -> Tensor:
    """(problem, 1) losses."""
    losses = [
        mean_loss(scores[row : row + 1], WeightedLabels(gold.label[row : row + 1], gold.weight[row : row + 1]))
        for row in range(len(scores))
    ]
    return torch.cat(losses)


def _scores(config: ClassifierConfig, x: Tensor, parameters: Tensor, classes: int) -> Tensor:
    """(problem, 1, class, example) scores."""
    layers = len(x)
    weights = parameters[:, 0, :layers].softmax(-1)
    mixed = (weights @ x.flatten(1)).unflatten(-1, x.shape[1:])
    return class_scores(config, mixed, parameters[..., layers:], classes)
