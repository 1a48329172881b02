"""Thresholds and areas, as a search over every cut and scikit-learn have them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from bertology.maths.thresholds import area_under_curve, best_threshold


@pytest.mark.parametrize("seed", range(5))
def test_no_cut_is_better(seed: int) -> None:
    generator = np.random.default_rng(seed)
    positive = generator.random(31) < 0.4
    values = np.round(generator.normal(size=31) + positive, 1)
    found = ((values > best_threshold(values, positive)) == positive).mean()
    cuts = [-np.inf, *(values + 1e-6)]
    assert found == max(((values > cut) == positive).mean() for cut in cuts)


def test_the_area_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(0)
    positive = generator.random(50) < 0.5
    values = np.round(generator.normal(size=50) + 0.5 * positive, 1)
    assert area_under_curve(values, positive) == pytest.approx(cast("Any", roc_auc_score)(positive, values))


def test_the_threshold_lies_between_what_it_parts() -> None:
    values, positive = np.array([0.1, 0.2, 0.6, 0.8]), np.array([False, False, True, True])
    assert best_threshold(values, positive) == pytest.approx(0.4)
    assert area_under_curve(values, positive) == 1.0


def test_one_class_alone() -> None:
    values = np.array([0.1, 0.2])
    assert best_threshold(values, np.array([True, True])) < 0.1
    assert best_threshold(values, np.array([False, False])) > 0.2
    assert np.isnan(area_under_curve(values, np.array([True, True])))
    assert np.isnan(best_threshold(values[:0], np.zeros(0, np.bool_)))
