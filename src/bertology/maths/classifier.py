"""Classifiers for many tasks at once: the same examples with other features, labels, seeds and penalties; no BERT here.

A problem is one labelling (and seed) of the examples on the features of one group (a layer, say); all of them are
fitted together as batched arrays. Each has the mean cross-entropy over its own training examples plus half of a
penalty times the squared weights, on features standardised over the examples that any problem of fitting sees; it is
solved on all examples at once. Linear ones, which are convex, are solved to the end, whatever the seed; others start
from seeded random weights and stop once the loss of what they hold out has not fallen for some time.

Of several penalties a linear problem takes all, each by how likely it makes what is held out: weights are mixed in
proportion to these likelihoods. To take the best alone would let the last digit of the features decide where two are
nearly alike. Others cannot be mixed and do take the one with the least loss on what they hold out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.maths.classifier_network import Form as Form
from bertology.maths.classifier_network import Recipe as Recipe
from bertology.maths.classifier_network import first_parameters, scores_of, unpacked
from bertology.maths.linear_classifier import UNUSED as UNUSED
from bertology.maths.linear_classifier import Solving, groups_at_once, likelihoods, solve
from bertology.maths.minimiser import End, Seen, Which, minimise

CELLS_AT_ONCE = 2**25
"""Groups are fitted together until their scores have so many numbers."""

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Classifiers:
    """Fitted classifiers along (group, problem); `penalty` is what each took, a geometric mean where it mixed some."""

    recipe: Recipe
    parameters: Tensor
    mean: Tensor
    scale: Tensor
    classes: int
    penalty: NDArray[np.float64]

    def log_chances(self, features: Floats) -> NDArray[np.float32]:
        """(group, problem, example, class) natural logarithms of the chances of (group, example, feature)."""
        found: list[Tensor] = []
        for group, values in enumerate(features):
            x = standardised(values[None], self.mean[group : group + 1], self.scale[group : group + 1])
            with torch.inference_mode():
                scores = scores_of(self.recipe, x, self.parameters[group : group + 1], self.classes)
                found.append(scores.log_softmax(2)[0].transpose(1, 2).cpu())
        return torch.stack(found).numpy()

    def predict(self, features: Floats) -> NDArray[np.int64]:
        """(group, problem, example) the class with the highest score."""
        return self.log_chances(features).argmax(-1)

    @property
    def weights(self) -> Tensor:
        """(group, problem, class, feature) of linear classifiers, on standardised features."""
        width = self.mean.shape[-1]
        return self.parameters[..., : width * self.classes].unflatten(-1, (self.classes, width))


def fit(
    features: Floats,
    labels: Ints,
    classes: int,
    recipe: Recipe,
    *,
    held: Ints | None = None,
    seeds: tuple[int, ...] | None = None,
    used: NDArray[np.bool_] | None = None,
) -> Classifiers:
    """Train on (group, example, feature) and (problem, example) labels, `UNUSED` where a problem leaves one out.

    `held` are the labels of what each problem holds out, for its penalty and its end; `used` is (problem,
    feature), the features that a linear problem may use; `seeds` are those of each problem's first weights.
    """
    if held is None and len(recipe.penalties) > 1:
        raise ValueError("a choice among penalties needs examples that are held out")
    if recipe.form == "linear":
        return _fit_linear(features, labels, classes, recipe, held, used)
    problems = len(labels)
    at_once = max(1, CELLS_AT_ONCE // max(1, labels.size * len(recipe.penalties) * max(classes, *recipe.sizes, 1)))
    gold = [gold_of(part, len(recipe.penalties)) for part in (labels, labels if held is None else held)]
    seen = _seen(labels, held)
    parts: list[tuple[Tensor, ...]] = []
    for first in range(0, len(features), at_once):
        mean, scale = moments(features[first : first + at_once], seen)
        x = standardised(features[first : first + at_once], mean, scale)
        problem = _Problem(recipe, x, gold[0], gold[1], classes, held is not None)
        found = minimise(problem.objective, problem.start(seeds or (0,) * problems), problem.end)
        parts.append((*problem.chosen(found), mean, scale))
    parameters, place, mean, scale = (torch.cat(some) for some in zip(*parts, strict=True))
    return Classifiers(recipe, parameters, mean, scale, classes, np.array(recipe.penalties)[place.cpu().numpy()])


def _seen(labels: Ints, held: Ints | None) -> NDArray[np.bool_]:
    """(example,) what any problem sees while it is fitted."""
    return (labels != UNUSED).any(0) | (False if held is None else (held != UNUSED).any(0))


def _fit_linear(
    features: Floats, labels: Ints, classes: int, recipe: Recipe, held: Ints | None, used: NDArray[np.bool_] | None
) -> Classifiers:
    seen = _seen(labels, held)
    at_once = groups_at_once(features.shape[1:], len(labels) * len(recipe.penalties), classes)
    parts: list[tuple[Tensor, ...]] = []
    for first in range(0, len(features), at_once):
        mean, scale = moments(features[first : first + at_once], seen)
        x = standardised(features[first : first + at_once], mean, scale).numpy()
        weights = solve(x, labels, classes, recipe.penalties, Solving(recipe.iterations, recipe.tolerance), used)
        shares = likelihoods(x, weights, labels if held is None else held)
        mixed = np.einsum("gpl,gplcf->gpcf", shares, weights)
        parts.append((_packed(mixed), torch.from_numpy(shares), mean, scale))
    parameters, shares, mean, scale = (torch.cat(some) for some in zip(*parts, strict=True))
    penalty = np.exp(shares.numpy() @ np.log(np.maximum(recipe.penalties, 1e-30)))
    return Classifiers(recipe, parameters, mean, scale, classes, penalty)


def _packed(weights: NDArray[Any]) -> Tensor:
    """(group, problem, parameter) from (group, problem, class, feature and bias)."""
    values = torch.from_numpy(weights.astype(np.float32))
    return torch.cat([values[..., :-1].flatten(2), values[..., -1]], -1)


def fit_each(features: Floats, labels: Ints, classes: int, recipe: Recipe) -> tuple[Classifiers, ...]:
    """Linear ones without a choice: the classifiers of every penalty, for those who choose by something else.

    Features are standardised over all examples, also those that no problem uses: what one problem finds does not depend
    on what others learn from.
    """
    mean, scale = moments(features)
    x = standardised(features, mean, scale).numpy()
    found = solve(x, labels, classes, recipe.penalties, Solving(recipe.iterations, recipe.tolerance))
    return tuple(
        Classifiers(recipe, _packed(found[:, :, place]), mean, scale, classes, np.full(found.shape[:2], penalty))
        for place, penalty in enumerate(recipe.penalties)
    )


@dataclass(frozen=True)
class Gold:
    """(problem x penalty, example) the label of each example and its share of the problem's loss."""

    label: Tensor
    share: Tensor


class _Problem:
    """The objective of some groups; a problem comes once for each penalty, one after the other."""

    def __init__(self, recipe: Recipe, x: Tensor, trained: Gold, held: Gold, classes: int, watching: bool) -> None:
        self.recipe, self.x, self.held, self.classes = recipe, x, held, classes
        self.trained, self.watching = trained, watching
        self.end = End(recipe.iterations, recipe.tolerance, recipe.patience if watching else 0)
        self.penalty = torch.tensor(recipe.penalties).repeat(len(trained.label) // len(recipe.penalties))

    def start(self, seeds: tuple[int, ...]) -> Tensor:
        """(group, problem, parameter), seeded, alike in all groups."""
        drawn = [first_parameters(self.recipe, self.x.shape[-1], self.classes, seed) for seed in seeds]
        each = torch.stack(drawn).repeat_interleave(len(self.recipe.penalties), 0)
        return each.expand(len(self.x), -1, -1)

    def chosen(self, found: Tensor) -> tuple[Tensor, Tensor]:
        """Each problem's parameters with the penalty that suits what it holds out best, and which penalty it is."""
        groups = torch.arange(len(self.x))
        with torch.inference_mode():
            watched = mean_loss(scores_of(self.recipe, self.x, found, self.classes), self.held)
        count = len(self.recipe.penalties)
        best = watched.unflatten(1, (-1, count)).argmin(-1)
        problems = torch.arange(best.shape[1])
        return found.unflatten(1, (-1, count))[groups[:, None], problems, best], best

    def _own(self, gold: Gold, which: Which) -> Gold:
        return Gold(_of(gold.label, which.problems), _of(gold.share, which.problems))

    def objective(self, parameters: Tensor, which: Which) -> Seen:
        """Loss and gradient."""
        leaf = parameters.detach().requires_grad_()
        x, penalty = _of(self.x, which.groups), _of(self.penalty, which.problems)
        with torch.enable_grad():
            scores = scores_of(self.recipe, x, leaf, self.classes)
            squared = sum(
                part.square().flatten(2).sum(-1)
                for part in unpacked(self.recipe, leaf, x.shape[-1], self.classes)
                if part.ndim > 3
            )
            loss = mean_loss(scores, self._own(self.trained, which)) + penalty / 2 * squared
            (slope,) = torch.autograd.grad(loss.sum(), leaf)
        loss = loss.detach()
        return Seen(loss, mean_loss(scores.detach(), self._own(self.held, which)) if self.watching else loss, slope)


def _of(values: Tensor, places: Tensor) -> Tensor:
    """What is at the places of the first axis, without a copy where it is all of them."""
    return values if len(places) == len(values) else values[places]


def loss_and_error(scores: Tensor, gold: Gold) -> tuple[Tensor, Tensor]:
    """(group, problem) mean cross-entropy, and its gradient in the (group, problem, class, example) scores."""
    logs = scores.log_softmax(2)
    label = gold.label[None, :, None].expand(len(logs), -1, 1, -1)
    loss = -(logs.gather(2, label).squeeze(2) * gold.share).sum(-1)
    return loss, logs.exp_().scatter_add_(2, label, -torch.ones_like(logs[:, :, :1])).mul_(gold.share[None, :, None])


def gold_of(labels: Ints, repeats: int) -> Gold:
    """The labels of each problem, `repeats` times, and the share of each example in its loss."""
    label = torch.from_numpy(np.asarray(labels, np.int64)).repeat_interleave(repeats, 0)
    counted = (label != UNUSED).float()
    return Gold(label.clamp(min=0), counted / counted.sum(1, keepdim=True).clamp(min=1))


def mean_loss(scores: Tensor, gold: Gold) -> Tensor:
    """(group, problem) mean cross-entropy from (group, problem, class, example)."""
    label = gold.label[None, :, None].expand(len(scores), -1, 1, -1)
    return -(scores.log_softmax(2).gather(2, label).squeeze(2) * gold.share).sum(-1)


def moments(features: Floats, seen: NDArray[np.bool_] | None = None) -> tuple[Tensor, Tensor]:
    """(group, 1, feature) means and standard deviations over the examples `seen`; 1 for features that do not vary."""
    chosen = features if seen is None or seen.all() or not seen.any() else features[:, seen]  # to choose is to copy
    values = torch.from_numpy(np.asarray(chosen, np.float32))
    mean = values.mean(1, keepdim=True)
    # One group after the other: the spread in two passes needs no more memory than one of them.
    spread = torch.stack([(own - middle).square_().mean(0) for own, middle in zip(values, mean, strict=True)]).sqrt_()
    spread = spread[:, None]
    # What varies by rounding alone must not be blown up.
    return mean, torch.where(spread <= 1e-6 * mean.abs().clamp(min=1e-6), 1.0, spread)


def standardised(features: Floats, mean: Tensor, scale: Tensor) -> Tensor:
    """(group, example, feature) of mean 0 and spread 1."""
    return (torch.from_numpy(np.asarray(features, np.float32)) - mean).div_(scale)
