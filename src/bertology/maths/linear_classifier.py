"""Linear classifiers of many problems at once, solved to the end; knows nothing of BERT.

Features carry a last column of ones: one product gives scores with their bias, one the whole gradient. Two classes have
opposite scores, so that one row of weights, the difference, says it all. Steps are preconditioned by the covariance of
the features: it makes second derivatives where nothing is known yet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.maths.minimiser import End, Seen, Which, minimise

LEAST_SAMPLE = 512
SAMPLED = 3
"""Covariances are taken over so many examples a feature, if there are more."""

UNUSED = -1
"""The label of an example that a problem leaves out."""


class Gold(NamedTuple):
    """(problem x penalty, example) the label of each example and its share of the problem's loss."""

    label: Tensor
    share: Tensor

    def of(self, problems: Tensor) -> Gold:
        """Some of the problems."""
        return Gold(taken(self.label, problems), taken(self.share, problems))


def gold_of(labels: NDArray[np.integer[Any]], repeats: int) -> Gold:
    """The labels of each problem, `repeats` times, and the share of each example in its loss."""
    label = torch.from_numpy(np.asarray(labels, np.int64)).repeat_interleave(repeats, 0)
    counted = (label != UNUSED).float()
    return Gold(label.clamp(min=0), counted / counted.sum(1, keepdim=True).clamp(min=1))


def taken(values: Tensor, places: Tensor) -> Tensor:
    """What is at the places of the first axis, without a copy where it is all of them."""
    return values if len(places) == len(values) else values[places]


class LinearProblems:
    """The objectives of some groups; a problem comes once for each penalty, one after the other."""

    def __init__(
        self, x: Tensor, classes: int, penalties: tuple[float, ...], used: NDArray[np.bool_] | None = None
    ) -> None:
        """`x` is (group, example, feature), `used` the (problem, feature) that each may use."""
        self.x = torch.nn.functional.pad(x, (0, 1), value=1.0)
        self.classes, self.rows = classes, 1 if classes == 2 else classes
        # Two rows of weights, each half of their difference, have half of its square.
        self.penalties = tuple(penalty / 2 if classes == 2 else penalty for penalty in penalties)
        self.allowed = (
            None if used is None else torch.nn.functional.pad(torch.from_numpy(used).float(), (0, 1), value=1.0)
        )
        self.inverse = self._inverses() if used is None else None

    def solved(self, labels: NDArray[np.integer[Any]], end: End) -> Tensor:
        """(group, problem x penalty, class x feature and class) where each is least, for (problem, example) labels.

        All start from zero: what others have learned from might be what this one holds out.
        """
        gold = gold_of(labels, len(self.penalties))
        penalty = torch.tensor(self.penalties).repeat(len(labels))

        def objective(parameters: Tensor, which: Which) -> Seen:
            return self._seen(parameters, which, gold.of(which.problems), taken(penalty, which.problems))

        start = torch.zeros(len(self.x), len(penalty), self.rows * self.x.shape[-1])
        found = minimise(objective, start, end, None if self.inverse is None else self._conditioned)
        outside = self._outside(found)
        return torch.cat([outside[..., :-1].flatten(2), outside[..., -1]], -1)

    def _outside(self, parameters: Tensor) -> Tensor:
        """(group, problem, class, feature and bias)."""
        weights = parameters.unflatten(-1, (self.rows, -1))
        return torch.cat([-weights / 2, weights / 2], 2) if self.classes == 2 else weights

    def _seen(self, parameters: Tensor, which: Which, gold: Gold, penalty: Tensor) -> Seen:
        """Loss and gradient, without a graph."""
        weights = parameters.unflatten(-1, (self.rows, -1))
        allowed = None if self.allowed is None else taken(self.allowed, which.problems)[:, None]
        if allowed is not None:
            weights = weights * allowed
        flat = weights.flatten(1, 2)
        examples = self.x.shape[1]
        scores = flat.new_empty(*flat.shape[:2], examples)
        places = which.groups.tolist()
        for own, group, out in zip(flat, places, scores, strict=True):
            torch.mm(own, self.x[group].T, out=out)
        error, loss = self._error(scores.unflatten(1, (-1, self.rows)), gold)
        gradient = torch.empty_like(flat)
        for own, group, out in zip(error.flatten(1, 2), places, gradient, strict=True):
            torch.mm(own, self.x[group], out=out)
        gradient = gradient.unflatten(1, (-1, self.rows))
        gradient[..., :-1].addcmul_(weights[..., :-1], penalty[:, None, None])
        if allowed is not None:
            gradient = gradient * allowed
        loss = loss + penalty / 2 * weights[..., :-1].square().sum((2, 3))
        return Seen(loss, loss, gradient.flatten(2))

    def _error(self, scores: Tensor, gold: Gold) -> tuple[Tensor, Tensor]:
        if self.classes > 2:
            loss, error = loss_and_error(scores, gold)
            return error, loss
        sign = (1 - 2 * gold.label[:, None]).float()
        margin = scores.mul_(sign)
        loss = (torch.nn.functional.softplus(margin).squeeze(2) * gold.share).sum(-1)
        return margin.sigmoid_().mul_(sign * gold.share[:, None]), loss

    def _inverses(self) -> Tensor:
        """(group, penalty, feature, feature): inverse second derivatives of classifiers that know nothing yet."""
        # Some of the examples tell the covariance well enough for a first guess.
        step = max(1, self.x.shape[1] // max(LEAST_SAMPLE, SAMPLED * self.x.shape[2]))
        curvature = (self.classes - 1) / self.classes**2
        groups, _, width = self.x.shape
        found = torch.empty(groups, len(self.penalties), width, width)
        for own, out in zip(self.x, found, strict=True):
            some: NDArray[np.float32] = own[::step].numpy()
            covariance = torch.from_numpy(some.T @ some).mul_(curvature / len(some))  # of one array: half of the work
            for number, penalty in enumerate(self.penalties):
                out[number] = covariance
                out[number].diagonal()[:-1] += max(penalty, 1e-6)
                torch.cholesky_inverse(torch.linalg.cholesky(out[number]), out=out[number])
        return found

    def _conditioned(self, slope: Tensor, which: Which) -> Tensor:
        assert self.inverse is not None
        count = len(self.penalties)
        back = torch.empty_like(slope)
        given, made = (values.unflatten(-1, (self.rows, -1)) for values in (slope, back))
        places = which.groups.tolist()
        if count == 1:
            for group, own, out in zip(places, given.flatten(1, 2), made.flatten(1, 2), strict=True):
                torch.mm(own, self.inverse[group, 0], out=out)
            return back
        for number in range(count):
            own = which.problems % count == number
            for place, group in enumerate(places):
                made[place, own] = given[place, own] @ self.inverse[group, number]
        return back


def loss_and_error(scores: Tensor, gold: Gold) -> tuple[Tensor, Tensor]:
    """(group, problem) mean cross-entropy, and its gradient in the (group, problem, class, example) scores."""
    logs = scores.log_softmax(2)
    label = gold.label[None, :, None].expand(len(logs), -1, 1, -1)
    loss = -(logs.gather(2, label).squeeze(2) * gold.share).sum(-1)
    return loss, logs.exp_().scatter_add_(2, label, -torch.ones_like(logs[:, :, :1])).mul_(gold.share[None, :, None])
