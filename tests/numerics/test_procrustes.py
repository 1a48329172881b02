"""Procrustes similarity equals that of SciPy, and a rotated copy is rotated back."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import procrustes as scipy_procrustes
from scipy.stats import ortho_group

from bertology.numerics.covariances import covariances
from bertology.numerics.procrustes import procrustes, rotate_onto


def test_similarity_is_that_of_scipy() -> None:
    generator = np.random.default_rng(0)
    first = generator.normal(size=(400, 6)) * np.arange(1, 7) + 3
    second = first[:, :4] @ generator.normal(size=(4, 6)) + 2 * generator.normal(size=(400, 6))
    disparity = scipy_procrustes(first, second)[2]
    similarity = procrustes(next(covariances(first, second, None)))
    assert similarity == pytest.approx(np.sqrt(1 - disparity), abs=1e-9)


@pytest.mark.parametrize("width", [2, 9])
def test_a_rotated_or_mirrored_copy_is_rotated_back(width: int) -> None:
    points = np.random.default_rng(1).normal(size=(30, width))
    rotated = points @ ortho_group.rvs(width, random_state=1) + 5
    mirrored = rotated * ([1] * (width - 1) + [-1])
    for copy in (rotated, mirrored):
        np.testing.assert_allclose(rotate_onto(copy, points), points - points.mean(0), atol=1e-9)
