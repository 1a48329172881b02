"""Classifiers for many tasks at once: the same examples with other features, labels, seeds and penalties; no BERT here.

A problem is one labelling (and seed) of the examples on the features of one group (a layer, say); all of them are
fitted together as batched tensors. Each has the mean cross-entropy over its own training examples plus half of a
penalty times the squared weights, on features standardised over the examples that any problem of fitting sees; it is
solved on all examples at once by L-BFGS. Linear ones, which are convex, are solved to the end, whatever the seed;
others start from seeded random weights and stop once the loss of what they hold out has not fallen for some time. Of
several penalties each problem takes the one with the least loss on what it holds out.
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
from bertology.maths.minimiser import End, Objective, Precondition, Seen, Which, minimise

UNUSED = -1
"""The label of an example that a problem leaves out."""

CELLS_AT_ONCE = 2**25
"""Groups are fitted together until their scores have so many numbers."""

LEAST_SAMPLE = 512
SAMPLED = 3
"""Covariances are taken over so many examples a feature, if there are more."""

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Classifiers:
    """Fitted classifiers along (group, problem); `penalty` is the one that each took."""

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

    `held` are the labels of what each problem holds out to choose its penalty and its end by; `used` is (problem,
    feature), the features that a linear problem may use; `seeds` are those of each problem's first weights.
    """
    problems = len(labels)
    if held is None and len(recipe.penalties) > 1:
        raise ValueError("a choice among penalties needs examples that are held out")
    at_once = max(1, CELLS_AT_ONCE // max(1, labels.size * len(recipe.penalties) * max(classes, *recipe.sizes, 1)))
    gold = [gold_of(part, len(recipe.penalties)) for part in (labels, labels if held is None else held)]
    seen = (labels != UNUSED).any(0) | (False if held is None else (held != UNUSED).any(0))
    parts: list[tuple[Tensor, ...]] = []
    for first in range(0, len(features), at_once):
        some = features[first : first + at_once]
        mean, scale = moments(some if seen.all() or not seen.any() else some[:, seen])  # to choose is to copy
        x = standardised(some, mean, scale)
        basis = _basis(x[:, seen], len(recipe.penalties)) if recipe.form == "linear" and used is None else None
        inside = x if basis is None else x @ basis
        problem = _Problem(recipe, inside, gold[0], gold[1], classes, held is not None, used)
        start = problem.start(seeds or (0,) * problems)
        found = minimise(problem.objective, start, problem.end, problem.precondition)
        own, place = problem.chosen(found)
        parts.append((own if basis is None else _outside(own, basis, classes), place, mean, scale))
    parameters, place, mean, scale = (torch.cat(some) for some in zip(*parts, strict=True))
    return Classifiers(recipe, parameters, mean, scale, classes, np.array(recipe.penalties)[place.cpu().numpy()])


def fit_each(features: Floats, labels: Ints, classes: int, recipe: Recipe) -> tuple[Classifiers, ...]:
    """The same without a choice: the classifiers of every penalty, for those who choose by something else.

    Features are standardised over all examples, also those that no problem uses: what one problem finds does not depend
    on what others learn from.
    """
    gold = gold_of(labels, len(recipe.penalties))
    mean, scale = moments(features)
    problem = _Problem(recipe, standardised(features, mean, scale), gold, gold, classes, False, None)
    start = problem.start((0,) * len(labels))
    found = minimise(problem.objective, start, problem.end, problem.precondition)
    each = found.unflatten(1, (-1, len(recipe.penalties))).unbind(2)
    return tuple(
        Classifiers(recipe, own, mean, scale, classes, np.full(own.shape[:2], penalty))
        for own, penalty in zip(each, recipe.penalties, strict=True)
    )


def _basis(x: Tensor, penalties: int) -> Tensor | None:
    """(group, feature, example) an orthonormal basis of the examples, where they are few beside the features.

    The best weights lie among the examples, so that fewer of them do: the rest would stay at zero. To find the basis
    takes longer the more examples there are, to do without it the more features and penalties.
    """
    _, examples, width = x.shape
    few = 0 < examples < width and 4 * examples**2 < penalties * width**2
    return torch.linalg.qr(x.transpose(1, 2)).Q if few else None


def _outside(parameters: Tensor, basis: Tensor, classes: int) -> Tensor:
    """(group, problem, parameter) of features, from those of a basis."""
    size = basis.shape[-1] * classes
    weights = parameters[..., :size].unflatten(-1, (classes, -1)) @ basis[:, None].transpose(-1, -2)
    return torch.cat([weights.flatten(2), parameters[..., size:]], -1)


@dataclass(frozen=True)
class Gold:
    """(problem x penalty, example) the label of each example and its share of the problem's loss."""

    label: Tensor
    share: Tensor


class _Problem:
    """The objective of some groups; a problem comes once for each penalty, one after the other."""

    def __init__(
        self,
        recipe: Recipe,
        x: Tensor,
        trained: Gold,
        held: Gold,
        classes: int,
        watching: bool,
        used: NDArray[np.bool_] | None,
    ) -> None:
        linear = recipe.form == "linear"
        self.recipe, self.whole, self.held, self.classes = recipe, x, held, classes
        self.watching = watching and not linear
        # What is held out is seen on the way only by those that stop by it.
        used_at_all = trained.share.sum(0) > 0
        kept = slice(None) if self.watching or used_at_all.all() else used_at_all
        self.x, self.trained = x[:, kept], Gold(trained.label[:, kept], trained.share[:, kept])
        self.end = End(recipe.iterations, recipe.tolerance, recipe.patience if self.watching else 0)
        repeats = len(trained.label) // len(recipe.penalties)
        self.penalty = torch.tensor(recipe.penalties).repeat(repeats)
        self.allowed = None if used is None else torch.from_numpy(used.astype(np.float32))
        self.objective: Objective = self._convex if linear else self._differentiated
        self.precondition: Precondition | None = self._conditioned if linear and used is None else None
        if self.precondition is not None:
            # Some of the examples tell the covariance well enough for a first guess.
            some = self.x[:, :: max(1, self.x.shape[1] // max(LEAST_SAMPLE, SAMPLED * self.x.shape[2]))]
            self.inverse = self._inverses(some.transpose(1, 2) @ some / some.shape[1])

    def start(self, seeds: tuple[int, ...]) -> Tensor:
        """(group, problem, parameter): zeros for linear classifiers, else seeded, alike in all groups."""
        drawn = [first_parameters(self.recipe, self.x.shape[-1], self.classes, seed) for seed in seeds]
        each = torch.stack(drawn).repeat_interleave(len(self.recipe.penalties), 0)
        return each.expand(len(self.x), -1, -1)

    def chosen(self, found: Tensor) -> tuple[Tensor, Tensor]:
        """Each problem's parameters with the penalty that suits what it holds out best, and which penalty it is."""
        groups = torch.arange(len(self.x))
        with torch.inference_mode():
            watched = mean_loss(scores_of(self.recipe, self.whole, found, self.classes), self.held)
        count = len(self.recipe.penalties)
        best = watched.unflatten(1, (-1, count)).argmin(-1)
        problems = torch.arange(best.shape[1])
        return found.unflatten(1, (-1, count))[groups[:, None], problems, best], best

    def _own(self, gold: Gold, which: Which) -> Gold:
        return Gold(_of(gold.label, which.problems), _of(gold.share, which.problems))

    def _convex(self, parameters: Tensor, which: Which) -> Seen:
        """Loss and gradient of linear classifiers, without a graph."""
        penalty = _of(self.penalty, which.problems)
        x = [self.x[group] for group in which.groups.tolist()]  # views: to take some of the groups would copy them
        weights, bias = unpacked(self.recipe, parameters, x[0].shape[-1], self.classes)
        allowed = None if self.allowed is None else _of(self.allowed, which.problems)
        if allowed is not None:
            weights = weights * allowed[None, :, None]
        # Two classes have opposite scores all the way from zero: one of them says it all.
        shown = slice(1, 2) if self.classes == 2 else slice(None)
        flat = weights[:, :, shown].flatten(1, 2)
        scores = torch.stack([own @ values.T for own, values in zip(flat, x, strict=True)])
        scores = scores.unflatten(1, (len(penalty), -1)).add_(bias[:, :, shown, None])
        loss, error = (_two if self.classes == 2 else loss_and_error)(scores, self._own(self.trained, which))
        slope = torch.stack([own @ values for own, values in zip(error.flatten(1, 2), x, strict=True)])
        slope = slope.unflatten(1, (len(penalty), -1))
        lift = error.sum(-1)
        if self.classes == 2:
            slope, lift = torch.cat([-slope, slope], 2), torch.cat([-lift, lift], 2)
        slope += penalty[None, :, None, None] * weights
        if allowed is not None:
            slope = slope * allowed[None, :, None]
        loss = loss + penalty / 2 * weights.square().sum((2, 3))
        return Seen(loss, loss, torch.cat([slope.flatten(2), lift], -1))

    def _differentiated(self, parameters: Tensor, which: Which) -> Seen:
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

    def _inverses(self, covariance: Tensor) -> Tensor:
        """(group, penalty, feature, feature): inverse second derivatives of classifiers that know nothing yet."""
        unit = torch.eye(covariance.shape[-1])
        curvature = (self.classes - 1) / self.classes**2
        each = [curvature * covariance + max(penalty, 1e-6) * unit for penalty in self.recipe.penalties]
        return torch.stack([torch.cholesky_inverse(torch.linalg.cholesky(one)) for one in each], 1)

    def _conditioned(self, slope: Tensor, which: Which) -> Tensor:
        width, classes = self.x.shape[-1], self.classes
        weights = slope[..., : width * classes].unflatten(-1, (classes, width))
        back = torch.empty_like(weights)
        of_penalty = which.problems % len(self.recipe.penalties)
        for number, inverse in enumerate(_of(self.inverse, which.groups).unbind(1)):
            own = of_penalty == number
            if own.any():
                back[:, own] = (weights[:, own].flatten(1, 2) @ inverse).unflatten(1, (-1, classes))
        return torch.cat([back.flatten(2), slope[..., width * classes :] * classes**2 / (classes - 1)], -1)


def _of(values: Tensor, places: Tensor) -> Tensor:
    """What is at the places of the first axis, without a copy where it is all of them."""
    return values if len(places) == len(values) else values[places]


def loss_and_error(scores: Tensor, gold: Gold) -> tuple[Tensor, Tensor]:
    """(group, problem) mean cross-entropy, and its gradient in the (group, problem, class, example) scores."""
    logs = scores.log_softmax(2)
    label = gold.label[None, :, None].expand(len(logs), -1, 1, -1)
    loss = -(logs.gather(2, label).squeeze(2) * gold.share).sum(-1)
    return loss, logs.exp_().scatter_add_(2, label, -torch.ones_like(logs[:, :, :1])).mul_(gold.share[None, :, None])


def _two(scores: Tensor, gold: Gold) -> tuple[Tensor, Tensor]:
    """The same of two classes from the scores of the second, those of the first being their opposites."""
    sign = 1 - 2 * gold.label[:, None]
    margin = 2 * sign * scores
    loss = (torch.nn.functional.softplus(margin).squeeze(2) * gold.share).sum(-1)
    return loss, margin.sigmoid_() * sign * gold.share[:, None]


def gold_of(labels: Ints, repeats: int) -> Gold:
    """The labels of each problem, `repeats` times, and the share of each example in its loss."""
    label = torch.from_numpy(np.asarray(labels, np.int64)).repeat_interleave(repeats, 0)
    counted = (label != UNUSED).float()
    return Gold(label.clamp(min=0), counted / counted.sum(1, keepdim=True).clamp(min=1))


def mean_loss(scores: Tensor, gold: Gold) -> Tensor:
    """(group, problem) mean cross-entropy from (group, problem, class, example)."""
    label = gold.label[None, :, None].expand(len(scores), -1, 1, -1)
    return -(scores.log_softmax(2).gather(2, label).squeeze(2) * gold.share).sum(-1)


def moments(features: Floats) -> tuple[Tensor, Tensor]:
    """(group, 1, feature) means and standard deviations; 1 for features that do not vary."""
    values = torch.from_numpy(np.asarray(features, np.float32))
    mean = values.mean(1, keepdim=True)
    # One group after the other: the spread in two passes needs no more memory than one of them.
    spread = torch.stack([(own - middle).square_().mean(0) for own, middle in zip(values, mean, strict=True)]).sqrt_()
    spread = spread[:, None]
    # What varies by rounding alone must not be blown up.
    return mean, torch.where(spread <= 1e-6 * mean.abs().clamp(min=1e-6), 1.0, spread)


def standardised(features: Floats, mean: Tensor, scale: Tensor) -> Tensor:
    """(group, example, feature) of mean 0 and spread 1."""
    return (torch.from_numpy(np.asarray(features, np.float32)) - mean).div_(scale)
