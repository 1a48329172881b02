"""Divergences by features equal those of scipy up to the documented error."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from bertology.analyses.attention.head_clusters.jensen_shannon import (
    FREQUENCIES,
    HEADS_PER_TILE,
    WEIGHTS,
    jensen_shannon,
)


def random_rows(rows: int, heads: int, places: int, sharpness: float, seed: int) -> torch.Tensor:
    generator = np.random.default_rng(seed)
    return torch.from_numpy(generator.dirichlet(np.full(places, 1 / sharpness), size=(rows, heads)).astype(np.float32))


@pytest.mark.parametrize(("places", "sharpness"), [(2, 1.0), (5, 0.1), (17, 1.0), (40, 30.0), (130, 3.0)])
def test_divergences_match_scipy(places: int, sharpness: float) -> None:
    rows = random_rows(4, 9, places, sharpness, seed=places)
    result = jensen_shannon(rows)
    for row in range(4):
        for one in range(9):
            for other in range(9):
                expected = jensenshannon(rows[row, one].double(), rows[row, other].double()) ** 2
                assert float(result[row, one, other]) == pytest.approx(np.nan_to_num(expected), abs=7e-5)


def test_tiles_of_heads_are_joined() -> None:
    rows = random_rows(2, 2 * HEADS_PER_TILE + 7, 6, 2.0, seed=1)
    result = jensen_shannon(rows)
    torch.testing.assert_close(result, result.mT, rtol=0, atol=0)
    for one, other in [(0, 2 * HEADS_PER_TILE + 6), (HEADS_PER_TILE - 1, HEADS_PER_TILE), (HEADS_PER_TILE + 3, 5)]:
        expected = jensenshannon(rows[1, one].double(), rows[1, other].double()) ** 2
        assert float(result[1, one, other]) == pytest.approx(expected, abs=7e-5)


def test_the_extremes_are_exact() -> None:
    equal = random_rows(3, 1, 12, 5.0, seed=2).expand(3, 4, 12)
    torch.testing.assert_close(jensen_shannon(equal), torch.zeros(3, 4, 4), rtol=0, atol=2e-6)
    apart = torch.eye(5)[None]
    expected = np.log(2) * (1 - torch.eye(5))[None]
    torch.testing.assert_close(jensen_shannon(apart), expected.float(), rtol=0, atol=7e-5)


def test_targets_without_probability_change_nothing() -> None:
    rows = random_rows(2, 5, 9, 3.0, seed=3)
    padded = torch.nn.functional.pad(rows, (0, 4))
    torch.testing.assert_close(jensen_shannon(padded), jensen_shannon(rows), rtol=0, atol=2e-6)


def test_empty_input_gives_an_empty_result() -> None:
    assert jensen_shannon(torch.zeros(0, 3, 0)).shape == (0, 3, 3)


def test_the_approximation_error_is_below_its_bound() -> None:
    steps = np.linspace(0, 60, 60001)
    exact = (np.exp(steps / 2) * np.log1p(np.exp(-steps)) + np.exp(-steps / 2) * np.log1p(np.exp(steps))) / 2
    approximate = np.cos(np.outer(steps, FREQUENCIES)) @ np.array(WEIGHTS)
    assert (np.abs(exact - approximate) * np.exp(-steps / 2)).max() < 3.5e-5
    assert sum(WEIGHTS) == pytest.approx(np.log(2), abs=1e-7)
