"""The batched Matthews correlation equals that of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, matthews_corrcoef

from bertology.analyses.features.glue_diagnostic.scores import matthews


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0])
def test_matthews_equals_scikit_learn(classes: int, noise: float) -> None:
    generator = np.random.default_rng(classes)
    gold = generator.integers(classes, size=200)
    predicted = np.where(generator.random(200) < noise, generator.integers(classes, size=200), gold)
    counts = confusion_matrix(gold, predicted, labels=range(classes))
    np.testing.assert_allclose(matthews(counts), matthews_corrcoef(gold, predicted), atol=1e-12)
    np.testing.assert_allclose(matthews(counts / 200), matthews_corrcoef(gold, predicted), atol=1e-12)


def test_leading_axes_are_batched() -> None:
    counts = np.random.default_rng(0).integers(1, 9, size=(4, 2, 3, 3))
    correlations = matthews(counts)
    assert correlations.shape == (4, 2)
    np.testing.assert_allclose(correlations[3, 1], matthews(counts[3, 1]))


def test_constant_predictions_are_zero_and_constant_gold_labels_undefined() -> None:
    constant = np.array([[5, 0, 0], [4, 0, 0], [3, 0, 0]])
    assert matthews(constant) == 0
    assert np.isnan(matthews(constant.T))
    assert np.isnan(matthews(np.zeros((3, 3))))
    assert matthews(np.diag([2, 3, 4])) == 1
