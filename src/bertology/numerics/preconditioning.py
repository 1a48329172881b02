"""Rotated and scaled axes on which linear classifiers converge faster.

The solution of an L2-penalised linear classifier does not depend on the axes. Few examples span fewer axes than there
are features. On the principal axes the curvature of the loss along each axis follows from the variance and the penalty,
so that each axis can have its own step size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

FloatArray = NDArray[np.float32]

EIGH_FLOPS = 17.0
"""Operations of the eigendecomposition of the covariance, divided by the cube of the number of features."""

ITERATION_FLOPS = 5.5
"""Operations of one iteration for each example, feature and row of weights: two products and the rest."""

TOP_AXIS_DIVISOR = 16
"""The first principal axis of hidden states has about 1/16 of the variance of all features."""

ITERATIONS_SAVED, MAX_ITERATIONS_SAVED = 1.25, 30
"""Iterations saved by rotating, divided by the square root of the condition number, and their maximum."""


class FeatureAxes(NamedTuple):
    """(group, feature, axis) orthogonal axes; (group, problem, 1, axis and bias) step size of each weight."""

    axes: FloatArray
    step_scale: FloatArray | None

    def project(self, x: FloatArray) -> FloatArray:
        """(group, example, axis) coordinates of (group, example, feature)."""
        return x @ self.axes

    def unproject(self, weights: FloatArray) -> FloatArray:
        """(group, problem, row, feature) weights from weights along the axes."""
        return weights @ self.axes[:, None].transpose(0, 1, 3, 2)


def feature_axes(x: FloatArray, classes: int, penalties: tuple[float, ...], problems: int) -> FeatureAxes | None:
    """Axes for problems on (group, example, feature), or None if a change of axes does not pay."""
    _, examples, width = x.shape
    few = 0 < examples < width and 4 * examples**2 < len(penalties) * width**2
    basis = torch.linalg.qr(torch.from_numpy(x).transpose(1, 2)).Q.numpy() if few else None
    inside = x if basis is None else x @ basis
    rows = problems * len(penalties) * (1 if classes == 2 else classes)
    if not _saves_time(inside.shape[1:], width, classes, min(penalties), rows):
        return None if basis is None else FeatureAxes(basis, None)
    variances, axes = _principal_axes(torch.from_numpy(np.stack([rows.T @ rows for rows in inside]) / examples))
    step_scales = [_step_scale(variances.numpy(), classes, penalty) for penalty in penalties]
    return FeatureAxes(
        axes.numpy() if basis is None else basis @ axes.numpy(), np.tile(np.stack(step_scales, 1), (1, problems, 1, 1))
    )


def _principal_axes(covariances: Tensor) -> tuple[Tensor, Tensor]:
    """Variances along the axes of each covariance, and the axes.

    Covariances of features that vary only by rounding are near the smallest floats, where `eigh` may not converge:
    they are rescaled first. If it still does not converge, it runs in double precision.
    """
    top = covariances.abs().amax((1, 2), keepdim=True)
    scaled = covariances / torch.where(top > 0, top, 1.0)
    try:
        variances, axes = torch.linalg.eigh(scaled)
    except RuntimeError:  # torch's error for missing convergence
        variances, axes = (result.float() for result in torch.linalg.eigh(scaled.double()))
    return variances * top[:, 0], axes


def _step_scale(variances: FloatArray, classes: int, penalty: float) -> FloatArray:
    """(group, 1, axis and bias): 1 / sqrt(curvature of the loss at zero weights)."""
    curvature = (classes - 1) / classes**2
    by_axis = curvature * np.maximum(variances, 0) + max(penalty / (2 if classes == 2 else 1), 1e-6)
    return np.asarray(np.pad(by_axis, ((0, 0), (0, 1)), constant_values=curvature)[:, None] ** -0.5, np.float32)


def _saves_time(shape: tuple[int, ...], width: int, classes: int, penalty: float, rows: int) -> bool:
    """Whether the rotation saves more time than it takes."""
    examples, inside = shape
    curvature = (classes - 1) / classes**2 * width / TOP_AXIS_DIVISOR
    saved = min(MAX_ITERATIONS_SAVED, ITERATIONS_SAVED * (curvature / max(penalty, 1e-6)) ** 0.5)
    return (EIGH_FLOPS * inside + 3 * examples) * inside < ITERATION_FLOPS * saved * examples * rows
