"""Kappa is scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from bertology.maths.agreement import cohen_kappa


def test_it_is_scikit_learns() -> None:
    generator = np.random.default_rng(0)
    first = generator.integers(4, size=200)
    second = np.where(generator.random(200) < 0.6, first, generator.integers(4, size=200))
    joint = confusion_matrix(first, second)
    assert cohen_kappa(joint) == pytest.approx(cohen_kappa_score(first, second))
    np.testing.assert_allclose(cohen_kappa(np.stack([joint, 7.0 * joint])), cohen_kappa_score(first, second))


def test_the_extremes() -> None:
    assert cohen_kappa(np.diag([3.0, 4.0])) == pytest.approx(1)
    assert cohen_kappa(np.full((3, 3), 2.0)) == pytest.approx(0)
    assert np.isnan(cohen_kappa(np.array([[5.0, 0.0], [0.0, 0.0]])))
