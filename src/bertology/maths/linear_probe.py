"""Logistic regression for many tasks at once: the same examples, other labels or other features; no BERT here.

Every task has the mean cross-entropy over its own examples plus half of `penalty` times the squared weights, on
features standardised over all training examples; the tasks are independent and solved together by L-BFGS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

UNUSED = -1

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class LinearProbes:
    """One classifier a task: weights (task, feature, class) on standardised features, and bias (task, class)."""

    weights: Tensor
    bias: Tensor
    mean: Tensor
    scale: Tensor

    def predict(self, features: Floats) -> NDArray[np.int64]:
        """(task, example) the class with the highest score."""
        scores = _scores(_standardised(features, self.mean, self.scale), self.weights, self.bias)
        return scores.argmax(-1).numpy()


def fit(
    features: Floats,
    labels: Ints,
    classes: int,
    *,
    penalty: float,
    used: NDArray[np.bool_] | None = None,
    iterations: int = 100,
) -> LinearProbes:
    """Train on (example, feature) and (task, example) labels, `UNUSED` where a task leaves an example out.

    `used` is (task, feature): the features that each task may use; all of them where it is None.
    """
    spread = features.std(0, dtype=np.float64)
    mean = torch.from_numpy(np.asarray(features.mean(0, dtype=np.float64), np.float32))
    scale = torch.from_numpy(np.where(spread > 0, spread, 1.0).astype(np.float32))
    x, y = _standardised(features, mean, scale), torch.from_numpy(np.asarray(labels, np.int64))
    tasks, width = len(y), x.shape[1]
    allowed = torch.ones(tasks, width) if used is None else torch.from_numpy(used.astype(np.float32))
    weights = torch.zeros(tasks, width, classes, requires_grad=True)
    bias = torch.zeros(tasks, classes, requires_grad=True)
    counted = (y != UNUSED).float()
    share = counted / counted.sum(1, keepdim=True).clamp(min=1)
    gold = y.clamp(min=0)[..., None]
    optimiser = torch.optim.LBFGS(
        [weights, bias], max_iter=iterations, history_size=10, line_search_fn="strong_wolfe", tolerance_grad=1e-6
    )

    def objective() -> Tensor:
        optimiser.zero_grad()
        own = weights * allowed[..., None]
        chances = _scores(x, own, bias).log_softmax(-1).gather(-1, gold).squeeze(-1)
        total = -(chances * share).sum() + penalty / 2 * own.square().sum()
        total.backward()
        return total

    optimiser.step(objective)
    return LinearProbes((weights * allowed[..., None]).detach(), bias.detach(), mean, scale)


def _standardised(features: Floats, mean: Tensor, scale: Tensor) -> Tensor:
    return (torch.from_numpy(np.asarray(features, np.float32)) - mean) / scale


def _scores(x: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """(task, example, class), by one product for all tasks."""
    tasks, width, classes = weights.shape
    flat = x @ weights.permute(1, 0, 2).reshape(width, tasks * classes)
    return flat.view(len(x), tasks, classes).transpose(0, 1) + bias[:, None]
