"""The projection finds the direction that separates pairs, and stays if validation pairs do not improve."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bertology.analyses.senses.subspace_probe.projection_fit import cosine_margin, fit_projection, random_projection

WIDTH = 10


def labelled_pairs(seed: int = 0) -> tuple[Any, Any, Any]:
    """Two classes along the first dimension, noise along the others: (vectors, same-class pairs, other pairs)."""
    generator = np.random.default_rng(seed)
    classes = np.arange(40) % 2
    vectors = 2 * generator.normal(size=(40, WIDTH))
    vectors[:, 0] = np.where(classes, 1.0, -1.0)
    pairs = np.array([(i, j) for i in range(40) for j in range(i)])
    is_same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    return vectors, pairs[is_same], pairs[~is_same]


def test_planted_direction_is_found() -> None:
    vectors, same, different = labelled_pairs()
    start = random_projection(3, WIDTH, seed=1)
    projection = fit_projection(vectors, (same, different), (same, different), start)
    assert (
        cosine_margin(vectors @ projection.T, same, different)
        > 5 * abs(cosine_margin(vectors @ start.T, same, different)) + 0.3
    )
    weights = np.linalg.norm(projection, axis=0)
    assert weights.argmax() == 0


def test_cosine_margin_is_the_difference_of_mean_cosines() -> None:
    vectors, same, different = labelled_pairs()
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    expected = np.mean([cosines[i, j] for i, j in same]) - np.mean([cosines[i, j] for i, j in different])
    assert cosine_margin(vectors, same, different) == pytest.approx(expected)


def test_projection_stays_if_validation_pairs_do_not_improve() -> None:
    vectors, same, different = labelled_pairs()
    start = random_projection(3, WIDTH, seed=1)
    np.testing.assert_array_equal(fit_projection(vectors, (same, different), (different, same), start), start)


def test_last_projection_is_used_without_validation_pairs() -> None:
    vectors, same, different = labelled_pairs()
    start = random_projection(3, WIDTH, seed=1)
    projection = fit_projection(vectors, (same, different), (same[:0], different), start)
    assert cosine_margin(vectors @ projection.T, same, different) > cosine_margin(vectors @ start.T, same, different)


def test_random_projections_are_orthonormal() -> None:
    rows = random_projection(4, WIDTH, seed=0)
    np.testing.assert_allclose(rows @ rows.T, np.eye(4), atol=1e-12)
    assert not np.allclose(rows, random_projection(4, WIDTH, seed=1))
