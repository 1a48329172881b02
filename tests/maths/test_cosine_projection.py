"""The map finds the directions that tell pairs apart, and holds still where held-out pairs do not agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bertology.maths.cosine_projection import fitted_projection, random_projection, separation

WIDTH = 10


def material(seed: int = 0) -> tuple[Any, Any, Any]:
    """Two classes along the first direction under much noise along the others; (vectors, alike, apart)."""
    generator = np.random.default_rng(seed)
    classes = np.arange(40) % 2
    vectors = 2 * generator.normal(size=(40, WIDTH))
    vectors[:, 0] = np.where(classes, 1.0, -1.0)
    pairs = np.array([(i, j) for i in range(40) for j in range(i)])
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    return vectors, pairs[same], pairs[~same]


def test_the_planted_direction_is_found() -> None:
    vectors, alike, apart = material()
    start = random_projection(3, WIDTH, seed=1)
    found = fitted_projection(vectors, (alike, apart), (alike, apart), start)
    assert separation(vectors @ found.T, alike, apart) > 5 * abs(separation(vectors @ start.T, alike, apart)) + 0.3
    weights = np.linalg.norm(found, axis=0)
    assert weights.argmax() == 0


def test_the_separation_is_the_difference_of_mean_cosines() -> None:
    vectors, alike, apart = material()
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = units @ units.T
    expected = np.mean([cosines[i, j] for i, j in alike]) - np.mean([cosines[i, j] for i, j in apart])
    assert separation(vectors, alike, apart) == pytest.approx(expected)


def test_what_does_not_help_held_out_pairs_is_not_kept() -> None:
    vectors, alike, apart = material()
    start = random_projection(3, WIDTH, seed=1)
    np.testing.assert_array_equal(fitted_projection(vectors, (alike, apart), (apart, alike), start), start)


def test_without_held_out_pairs_the_last_map_is_kept() -> None:
    vectors, alike, apart = material()
    start = random_projection(3, WIDTH, seed=1)
    found = fitted_projection(vectors, (alike, apart), (alike[:0], apart), start)
    assert separation(vectors @ found.T, alike, apart) > separation(vectors @ start.T, alike, apart)


def test_random_maps_keep_angles_on_average() -> None:
    rows = random_projection(4, WIDTH, seed=0)
    np.testing.assert_allclose(rows @ rows.T, np.eye(4), atol=1e-12)
    assert not np.allclose(rows, random_projection(4, WIDTH, seed=1))
