"""Other axes of the same features, on which linear classifiers are found in less time; knows nothing of BERT.

The best weights of a penalised linear classifier are the same on any axes. Few examples span fewer of them than there
are features. On the axes of the covariance the loss bends along each by what the features vary there, and by the
penalty: steps can be as long as suits each, whatever the penalty.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

Floats = NDArray[np.float32]

TURNED = 17.0
"""So many operations for each cube of the number of features it takes to find the axes of their covariance."""

LOOKED = 5.5
"""Operations of an iteration for each example, feature and row of weights: two products, and what goes with them."""

WIDEST = 16
"""On the widest axis of hidden states lies about this part of the variance of all features."""


SAVED, MOST = 1.25, 30
"""Iterations that turning saves, as a multiple of the root of how much more one axis bends the loss than another."""


class Axes(NamedTuple):
    """(group, feature, axis) axes at right angles; (group, problem, 1, axis and bias) how far each weight goes."""

    axes: Floats
    reach: Floats | None

    def inside(self, x: Floats) -> Floats:
        """(group, example, axis) of (group, example, feature)."""
        return x @ self.axes

    def outside(self, weights: Floats) -> Floats:
        """(group, problem, row, feature) of weights along axes."""
        return weights @ self.axes[:, None].transpose(0, 1, 3, 2)


def axes_of(x: Floats, classes: int, penalties: tuple[float, ...], problems: int) -> Axes | None:
    """Axes for so many problems on (group, example, feature), or None where the features do as they are."""
    _, examples, width = x.shape
    few = 0 < examples < width and 4 * examples**2 < len(penalties) * width**2
    basis = torch.linalg.qr(torch.from_numpy(x).transpose(1, 2)).Q.numpy() if few else None
    inside = x if basis is None else x @ basis
    rows = problems * len(penalties) * (1 if classes == 2 else classes)
    if not _worthwhile(inside.shape[1:], width, classes, min(penalties), rows):
        return None if basis is None else Axes(basis, None)
    spread, axes = _principal(torch.from_numpy(np.stack([own.T @ own for own in inside]) / examples))
    reach = [_reach(spread.numpy(), classes, penalty) for penalty in penalties]
    return Axes(
        axes.numpy() if basis is None else basis @ axes.numpy(), np.tile(np.stack(reach, 1), (1, problems, 1, 1))
    )


def _principal(covariances: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Variances along the axes of each covariance, and the axes.

    Features that vary by rounding alone have covariances near the least numbers there are, where the search for axes
    may not end: it is made on their scale, and in 64 bits should it not end for any other reason.
    """
    top = covariances.abs().amax((1, 2), keepdim=True)
    scaled = covariances / torch.where(top > 0, top, 1.0)
    try:
        spread, axes = torch.linalg.eigh(scaled)
    except RuntimeError:  # as torch calls a search without an end
        spread, axes = (found.float() for found in torch.linalg.eigh(scaled.double()))
    return spread * top[:, 0], axes


def _reach(spread: Floats, classes: int, penalty: float) -> Floats:
    """(group, 1, axis and bias): one over the root of how much the loss of a classifier that knows nothing bends."""
    bend = (classes - 1) / classes**2
    each = bend * np.maximum(spread, 0) + max(penalty / (2 if classes == 2 else 1), 1e-6)
    return np.asarray(np.pad(each, ((0, 0), (0, 1)), constant_values=bend)[:, None] ** -0.5, np.float32)


def _worthwhile(shape: tuple[int, ...], width: int, classes: int, penalty: float, rows: int) -> bool:
    """Whether turning saves more than it takes."""
    examples, inside = shape
    bend = (classes - 1) / classes**2 * width / WIDEST
    saved = min(MOST, SAVED * (bend / max(penalty, 1e-6)) ** 0.5)
    return (TURNED * inside + 3 * examples) * inside < LOOKED * saved * examples * rows
