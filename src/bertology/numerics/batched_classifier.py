"""Train many classifiers at once: the same examples with different features, labels, seeds and L2 penalties.

A problem is one labelling (and seed) of the examples, a group is one set of features (a layer, say); all are fitted
together as batched arrays. The loss is the mean cross-entropy over the training examples of the problem plus half the
L2 penalty times the squared weights; features are standardised over the examples that any problem uses. Linear
classifiers are convex and solved to convergence, whatever the seed; others start from random weights and stop when the
validation loss no longer improves.

With several penalties a linear problem averages their weights in proportion to their validation likelihoods: if it
took the best one, rounding would decide between two that are nearly equal. Other classifiers cannot be averaged, and
take the penalty with the lowest validation loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import BoolArray
from bertology.lazy import torch
from bertology.numerics.classifier_network import ClassifierConfig as ClassifierConfig
from bertology.numerics.classifier_network import ClassifierForm as ClassifierForm
from bertology.numerics.classifier_network import class_scores, initial_parameters, unpack_parameters
from bertology.numerics.lbfgs import ActiveProblems, LossAndGradient, StoppingRule, minimise
from bertology.numerics.logistic_regression import UNUSED_LABEL as UNUSED_LABEL
from bertology.numerics.logistic_regression import (
    SolverLimits,
    groups_per_chunk,
    solve_logistic,
    validation_likelihoods,
)

if TYPE_CHECKING:
    from torch import Tensor

CHUNK_CELLS = 2**25
"""Maximum number of scores of the groups that are fitted together."""

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class BatchedClassifiers:
    """Fitted classifiers along (group, problem); `l2_penalty` is the one chosen, or the geometric mean of several."""

    config: ClassifierConfig
    parameters: Tensor
    mean: Tensor
    std: Tensor
    classes: int
    l2_penalty: NDArray[np.float64]

    def predict_log_proba(self, features: FloatArray) -> NDArray[np.float32]:
        """(group, problem, example, class) log-probabilities for (group, example, feature)."""
        log_probs: list[Tensor] = []
        for group, values in enumerate(features):
            x = standardise(values[None], self.mean[group : group + 1], self.std[group : group + 1])
            with torch.inference_mode():
                scores = class_scores(self.config, x, self.parameters[group : group + 1], self.classes)
                log_probs.append(scores.log_softmax(2)[0].transpose(1, 2).cpu())
        return torch.stack(log_probs).numpy()

    def predict(self, features: FloatArray) -> NDArray[np.int64]:
        """(group, problem, example) the class with the highest score."""
        return self.predict_log_proba(features).argmax(-1)

    @property
    def weights(self) -> Tensor:
        """(group, problem, class, feature) weights of linear classifiers, on standardised features."""
        width = self.mean.shape[-1]
        return self.parameters[..., : width * self.classes].unflatten(-1, (self.classes, width))


def fit_classifiers(
    features: FloatArray,
    labels: IntArray,
    classes: int,
    config: ClassifierConfig,
    *,
    validation_labels: IntArray | None = None,
    seeds: tuple[int, ...] | None = None,
    feature_mask: BoolArray | None = None,
) -> BatchedClassifiers:
    """Train on (group, example, feature) and (problem, example) labels, `UNUSED_LABEL` for unused examples.

    `validation_labels` are those of each problem's validation examples, for the choice of the penalty and early
    stopping; `feature_mask` is (problem, feature), the features that a linear problem may use; `seeds` are those of the
    initial weights of each problem.
    """
    if validation_labels is None and len(config.l2_penalties) > 1:
        raise ValueError("a choice among penalties needs validation examples")
    if config.form == "linear":
        return _fit_linear(features, labels, classes, config, validation_labels, feature_mask)
    chunk_size = max(
        1, CHUNK_CELLS // max(1, labels.size * len(config.l2_penalties) * max(classes, *config.hidden_sizes, 1))
    )
    n_penalties, has_validation = len(config.l2_penalties), validation_labels is not None
    train = weighted_labels(labels, n_penalties)
    validation = None if validation_labels is None else weighted_labels(validation_labels, n_penalties)
    stopping_rule = StoppingRule(config.max_iterations, config.tolerance, config.patience if has_validation else 0)
    used = _used_examples(labels, validation_labels)
    parts: list[tuple[Tensor, ...]] = []
    for first in range(0, len(features), chunk_size):
        mean, std = mean_and_std(features[first : first + chunk_size], used)
        x = standardise(features[first : first + chunk_size], mean, std)
        problem = _ClassifierObjective(config, x, train, validation, classes)
        fitted = minimise(problem.loss_and_gradient, problem.init(seeds or (0,) * len(labels)), stopping_rule)
        parts.append((*problem.select_penalty(fitted), mean, std))
    parameters, chosen, mean, std = (torch.cat(chunks) for chunks in zip(*parts, strict=True))
    return BatchedClassifiers(
        config, parameters, mean, std, classes, np.array(config.l2_penalties)[chosen.cpu().numpy()]
    )


def _used_examples(labels: IntArray, validation_labels: IntArray | None) -> BoolArray:
    """(example,) whether any problem uses the example for training or validation."""
    return (labels != UNUSED_LABEL).any(0) | (
        False if validation_labels is None else (validation_labels != UNUSED_LABEL).any(0)
    )


def _fit_linear(
    features: FloatArray,
    labels: IntArray,
    classes: int,
    config: ClassifierConfig,
    validation_labels: IntArray | None,
    feature_mask: BoolArray | None,
) -> BatchedClassifiers:
    used = _used_examples(labels, validation_labels)
    chunk_size = groups_per_chunk(features.shape[1:], len(labels) * len(config.l2_penalties), classes)
    parts: list[tuple[Tensor, ...]] = []
    for first in range(0, len(features), chunk_size):
        mean, std = mean_and_std(features[first : first + chunk_size], used)
        x = standardise(features[first : first + chunk_size], mean, std).numpy()
        weights = solve_logistic(
            x, labels, classes, config.l2_penalties, SolverLimits(config.max_iterations, config.tolerance), feature_mask
        )
        likelihoods = validation_likelihoods(x, weights, labels if validation_labels is None else validation_labels)
        mixed = np.einsum("gpl,gplcf->gpcf", likelihoods, weights)
        parts.append((_pack_parameters(mixed), torch.from_numpy(likelihoods), mean, std))
    parameters, likelihoods, mean, std = (torch.cat(chunks) for chunks in zip(*parts, strict=True))
    penalty = np.exp(likelihoods.numpy() @ np.log(np.maximum(config.l2_penalties, 1e-30)))
    return BatchedClassifiers(config, parameters, mean, std, classes, penalty)


def _pack_parameters(weights: NDArray[Any]) -> Tensor:
    """(group, problem, parameter) from (group, problem, class, feature and bias)."""
    values = torch.from_numpy(weights.astype(np.float32))
    return torch.cat([values[..., :-1].flatten(2), values[..., -1]], -1)


def fit_each_penalty(
    features: FloatArray, labels: IntArray, classes: int, config: ClassifierConfig
) -> tuple[BatchedClassifiers, ...]:
    """Linear classifiers with every penalty, for callers that choose the penalty themselves.

    Features are standardised over all examples, used or not, so that the result of a problem does not depend on the
    training examples of others.
    """
    mean, std = mean_and_std(features)
    x = standardise(features, mean, std).numpy()
    weights = solve_logistic(
        x, labels, classes, config.l2_penalties, SolverLimits(config.max_iterations, config.tolerance)
    )
    return tuple(
        BatchedClassifiers(
            config, _pack_parameters(weights[:, :, index]), mean, std, classes, np.full(weights.shape[:2], penalty)
        )
        for index, penalty in enumerate(config.l2_penalties)
    )


@dataclass(frozen=True)
class WeightedLabels:
    """(problem x penalty, example) labels, and the weight of each example in the loss of the problem."""

    label: Tensor
    weight: Tensor


@dataclass(frozen=True, eq=False)
class _ClassifierObjective:
    """The objective of a chunk of groups; every problem is repeated for each penalty."""

    config: ClassifierConfig
    x: Tensor
    train: WeightedLabels
    validation: WeightedLabels | None
    classes: int

    @cached_property
    def l2_penalty(self) -> Tensor:
        """(problem x penalty,) penalty of each repeated problem."""
        penalties = self.config.l2_penalties
        return torch.tensor(penalties).repeat(len(self.train.label) // len(penalties))

    def init(self, seeds: tuple[int, ...]) -> Tensor:
        """(group, problem, parameter) initial parameters, the same in all groups."""
        initial = [initial_parameters(self.config, self.x.shape[-1], self.classes, seed) for seed in seeds]
        repeated = torch.stack(initial).repeat_interleave(len(self.config.l2_penalties), 0)
        return repeated.expand(len(self.x), -1, -1)

    def select_penalty(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """The parameters of each problem with the lowest validation loss, and the index of their penalty."""
        groups = torch.arange(len(self.x))
        with torch.inference_mode():
            scores = class_scores(self.config, self.x, parameters, self.classes)
            validation_loss = mean_loss(scores, self.validation or self.train)
        count = len(self.config.l2_penalties)
        best = validation_loss.unflatten(1, (-1, count)).argmin(-1)
        problems = torch.arange(best.shape[1])
        return parameters.unflatten(1, (-1, count))[groups[:, None], problems, best], best

    def _active_labels(self, gold: WeightedLabels, active: ActiveProblems) -> WeightedLabels:
        return WeightedLabels(_select(gold.label, active.problems), _select(gold.weight, active.problems))

    def loss_and_gradient(self, parameters: Tensor, active: ActiveProblems) -> LossAndGradient:
        """Loss, validation loss and gradient of the active problems."""
        leaf = parameters.detach().requires_grad_()
        x, penalty = _select(self.x, active.groups), _select(self.l2_penalty, active.problems)
        with torch.enable_grad():
            scores = class_scores(self.config, x, leaf, self.classes)
            squared = sum(
                part.square().flatten(2).sum(-1)
                for part in unpack_parameters(self.config, leaf, x.shape[-1], self.classes)
                if part.ndim > 3
            )
            loss = mean_loss(scores, self._active_labels(self.train, active)) + penalty / 2 * squared
            (gradient,) = torch.autograd.grad(loss.sum(), leaf)
        loss = loss.detach()
        if self.validation is None:
            return LossAndGradient(loss, loss, gradient)
        return LossAndGradient(loss, mean_loss(scores.detach(), self._active_labels(self.validation, active)), gradient)


def _select(values: Tensor, indices: Tensor) -> Tensor:
    """Index the first axis, without a copy if all are selected."""
    return values if len(indices) == len(values) else values[indices]


def cross_entropy_and_gradient(scores: Tensor, gold: WeightedLabels) -> tuple[Tensor, Tensor]:
    """(group, problem) mean cross-entropy, and its gradient in the (group, problem, class, example) scores."""
    log_probs = scores.log_softmax(2)
    label = gold.label[None, :, None].expand(len(log_probs), -1, 1, -1)
    loss = -(log_probs.gather(2, label).squeeze(2) * gold.weight).sum(-1)
    gradient = log_probs.exp_().scatter_add_(2, label, -torch.ones_like(log_probs[:, :, :1]))
    return loss, gradient.mul_(gold.weight[None, :, None])


def weighted_labels(labels: IntArray, repeats: int) -> WeightedLabels:
    """The labels of each problem, `repeats` times, with equal weights for the used examples."""
    label = torch.from_numpy(np.asarray(labels, np.int64)).repeat_interleave(repeats, 0)
    is_used = (label != UNUSED_LABEL).float()
    return WeightedLabels(label.clamp(min=0), is_used / is_used.sum(1, keepdim=True).clamp(min=1))


def mean_loss(scores: Tensor, gold: WeightedLabels) -> Tensor:
    """(group, problem) mean cross-entropy from (group, problem, class, example)."""
    label = gold.label[None, :, None].expand(len(scores), -1, 1, -1)
    return -(scores.log_softmax(2).gather(2, label).squeeze(2) * gold.weight).sum(-1)


def mean_and_std(features: FloatArray, example_mask: BoolArray | None = None) -> tuple[Tensor, Tensor]:
    """(group, 1, feature) means and standard deviations over the masked examples; 1 for constant features."""
    # Indexing copies, so it is avoided if all examples are used.
    use_all = example_mask is None or example_mask.all() or not example_mask.any()
    values = torch.from_numpy(np.asarray(features if use_all else features[:, example_mask], np.float32))
    mean = values.mean(1, keepdim=True)
    # Group by group, to save memory.
    variances = [(rows - row_mean).square_().mean(0) for rows, row_mean in zip(values, mean, strict=True)]
    std = torch.stack(variances).sqrt_()[:, None]
    # Features that vary only by rounding must not be scaled up.
    return mean, torch.where(std <= 1e-6 * mean.abs().clamp(min=1e-6), 1.0, std)


def standardise(features: FloatArray, mean: Tensor, std: Tensor) -> Tensor:
    """(group, example, feature) with mean 0 and standard deviation 1."""
    return (torch.from_numpy(np.asarray(features, np.float32)) - mean).div_(std)
