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
from bertology.maths.linear_classifier import UNUSED as UNUSED
from bertology.maths.linear_classifier import Gold, LinearProblems, gold_of, taken
from bertology.maths.minimiser import End, Seen, Which, minimise

CELLS_AT_ONCE = 2**22
"""Groups are fitted together until their scores have so many numbers: more would leave the processor's cache."""

LINEAR_MEMORY = 6
"""Preconditioned steps are few: to remember more of them takes longer than it saves."""

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
        if recipe.form == "linear":
            found = _linear(x, labels, seen, classes, recipe, used=used)
        else:
            problem = _Problem(recipe, x, gold[0], gold[1], classes, held is not None)
            found = minimise(problem.objective, problem.start(seeds or (0,) * problems), problem.end)
        parts.append((*_chosen(recipe, x, found, gold[1], classes), mean, scale))
    parameters, place, mean, scale = (torch.cat(some) for some in zip(*parts, strict=True))
    return Classifiers(recipe, parameters, mean, scale, classes, np.array(recipe.penalties)[place.cpu().numpy()])


def fit_each(features: Floats, labels: Ints, classes: int, recipe: Recipe) -> tuple[Classifiers, ...]:
    """The same of linear ones without a choice: the classifiers of every penalty, for who chooses by something else.

    Features are standardised over all examples, also those that no problem uses: what one problem finds does not depend
    on what others learn from.
    """
    mean, scale = moments(features)
    x, every = standardised(features, mean, scale), np.ones(labels.shape[1], np.bool_)
    found = _linear(x, labels, every, classes, recipe)
    each = found.unflatten(1, (-1, len(recipe.penalties))).unbind(2)
    return tuple(
        Classifiers(recipe, own, mean, scale, classes, np.full(own.shape[:2], penalty))
        for own, penalty in zip(each, recipe.penalties, strict=True)
    )


def _linear(
    x: Tensor,
    labels: Ints,
    seen: NDArray[np.bool_],
    classes: int,
    recipe: Recipe,
    *,
    used: NDArray[np.bool_] | None = None,
) -> Tensor:
    """(group, problem x penalty, parameter) of linear classifiers."""
    few = used is None and _few(int(seen.sum()), x.shape[-1], len(recipe.penalties))
    # An orthonormal basis of the examples: the best weights lie among these, the rest would stay at zero.
    basis = torch.linalg.qr(x[:, torch.from_numpy(seen)].transpose(1, 2)).Q if few else None
    inside = x if basis is None else x @ basis
    learned = (labels != UNUSED).any(0)
    if not learned.all():  # what is only held out is not needed on the way
        inside, labels = inside[:, torch.from_numpy(learned)], labels[:, learned]
    problems = LinearProblems(inside, classes, recipe.penalties, used)
    found = problems.solved(labels, End(recipe.iterations, recipe.tolerance, memory=LINEAR_MEMORY))
    return found if basis is None else _outside(found, basis, classes)


def _few(examples: int, width: int, penalties: int) -> bool:
    """Whether there are so few examples beside the features that their basis saves time.

    To find it takes longer the more examples there are, to do without it the more features and penalties.
    """
    return 0 < examples < width and 4 * examples**2 < penalties * width**2


def _outside(parameters: Tensor, basis: Tensor, classes: int) -> Tensor:
    """(group, problem, parameter) of features, from those of a basis."""
    size = basis.shape[-1] * classes
    weights = parameters[..., :size].unflatten(-1, (classes, -1)) @ basis[:, None].transpose(-1, -2)
    return torch.cat([weights.flatten(2), parameters[..., size:]], -1)


class _Problem:
    """The objective of some groups for classifiers that are not linear; a problem comes once for each penalty."""

    def __init__(self, recipe: Recipe, x: Tensor, trained: Gold, held: Gold, classes: int, watching: bool) -> None:
        self.recipe, self.held, self.classes, self.watching = recipe, held, classes, watching
        # What is held out is seen on the way only by those that stop by it.
        used_at_all = trained.share.sum(0) > 0
        kept = slice(None) if self.watching or used_at_all.all() else used_at_all
        self.x, self.trained = x[:, kept], Gold(trained.label[:, kept], trained.share[:, kept])
        self.end = End(recipe.iterations, recipe.tolerance, recipe.patience if self.watching else 0)
        repeats = len(trained.label) // len(recipe.penalties)
        self.penalty = torch.tensor(recipe.penalties).repeat(repeats)

    def start(self, seeds: tuple[int, ...]) -> Tensor:
        """(group, problem, parameter): seeded, alike in all groups."""
        drawn = [first_parameters(self.recipe, self.x.shape[-1], self.classes, seed) for seed in seeds]
        each = torch.stack(drawn).repeat_interleave(len(self.recipe.penalties), 0)
        return each.expand(len(self.x), -1, -1)

    def objective(self, parameters: Tensor, which: Which) -> Seen:
        """Loss and gradient through a graph."""
        leaf = parameters.detach().requires_grad_()
        x, penalty = taken(self.x, which.groups), taken(self.penalty, which.problems)
        with torch.enable_grad():
            scores = scores_of(self.recipe, x, leaf, self.classes)
            squared = sum(
                part.square().flatten(2).sum(-1)
                for part in unpacked(self.recipe, leaf, x.shape[-1], self.classes)
                if part.ndim > 3
            )
            logs = scores.log_softmax(2)
            loss = _mean(logs, self.trained.of(which.problems)) + penalty / 2 * squared
            (slope,) = torch.autograd.grad(loss.sum(), leaf)
        loss = loss.detach()
        return Seen(loss, _mean(logs.detach(), self.held.of(which.problems)) if self.watching else loss, slope)


def _chosen(recipe: Recipe, x: Tensor, found: Tensor, held: Gold, classes: int) -> tuple[Tensor, Tensor]:
    """Each problem's parameters with the penalty that suits what it holds out best, and which penalty it is."""
    count = len(recipe.penalties)
    if count == 1:
        return found, torch.zeros(found.shape[:2], dtype=torch.int64)
    with torch.inference_mode():
        watched = mean_loss(scores_of(recipe, x, found, classes), held)
    best = watched.unflatten(1, (-1, count)).argmin(-1)
    groups, problems = torch.arange(len(x)), torch.arange(best.shape[1])
    return found.unflatten(1, (-1, count))[groups[:, None], problems, best], best


def mean_loss(scores: Tensor, gold: Gold) -> Tensor:
    """(group, problem) mean cross-entropy from (group, problem, class, example)."""
    return _mean(scores.log_softmax(2), gold)


def _mean(logs: Tensor, gold: Gold) -> Tensor:
    label = gold.label[None, :, None].expand(len(logs), -1, 1, -1)
    return -(logs.gather(2, label).squeeze(2) * gold.share).sum(-1)


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
