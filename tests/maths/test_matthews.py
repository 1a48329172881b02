"""Matthews' correlation: equal to scikit-learn's, and its edges."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, matthews_corrcoef

from bertology.maths.matthews import matthews


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_it_is_that_of_scikit_learn(classes: int, noise: float) -> None:
    generator = np.random.default_rng(classes)
    so = generator.integers(classes, size=200)
    said = np.where(generator.random(200) < noise, generator.integers(classes, size=200), so)
    counts = confusion_matrix(so, said, labels=range(classes))
    np.testing.assert_allclose(matthews(counts), matthews_corrcoef(so, said), atol=1e-12)
    np.testing.assert_allclose(matthews(counts / 200), matthews_corrcoef(so, said), atol=1e-12)


def test_leading_axes_are_kept() -> None:
    counts = np.random.default_rng(0).integers(1, 9, size=(4, 2, 3, 3))
    found = matthews(counts)
    assert found.shape == (4, 2)
    np.testing.assert_allclose(found[3, 1], matthews(counts[3, 1]))


def test_one_answer_is_chance_and_one_class_is_nothing_to_tell() -> None:
    always = np.array([[5, 0, 0], [4, 0, 0], [3, 0, 0]])
    assert matthews(always) == 0
    assert np.isnan(matthews(always.T))
    assert np.isnan(matthews(np.zeros((3, 3))))
    assert matthews(np.diag([2, 3, 4])) == 1
