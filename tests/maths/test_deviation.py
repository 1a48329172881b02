"""The share of deviation is what its definition says, and its numerators tell how far it can be trusted."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.maths.deviation import share_of_deviation
from bertology.maths.resampling import bootstrap_ratio

GENERATOR = np.random.default_rng(0)


def direct(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(np.abs(rows - rows.mean(0)).sum() / (2 * rows.sum()))


def test_it_is_the_definition() -> None:
    rows = GENERATOR.dirichlet(np.ones(5), size=(7, 3, 4))
    top, bottom = share_of_deviation(list(rows))
    for place in range(3):
        assert top[:, place].sum() / bottom[:, place].sum() == pytest.approx(direct(rows[:, place]))


def test_extremes() -> None:
    alike = [np.full((2, 2), 0.5)] * 4
    assert share_of_deviation(alike)[0].sum() == pytest.approx(0)
    apart = list(np.eye(6)[:, None, :])
    top, bottom = share_of_deviation(apart)
    assert top.sum() / bottom.sum() == pytest.approx(1 - 1 / 6)


def test_unmeasured_rows_and_single_ones_do_not_count() -> None:
    rows = [*GENERATOR.random((3, 2, 2)), np.full((2, 2), np.nan)]
    top, bottom = share_of_deviation(rows)
    assert top[3] == bottom[3] == 0
    assert top.sum() / bottom.sum() == pytest.approx(direct(np.array(rows[:3])))
    alone = share_of_deviation(rows[2:])
    assert alone[0].sum() == alone[1].sum() == 0


@pytest.mark.parametrize("heavy", [False, True])
def test_the_interval_is_that_of_recomputing_the_mean(heavy: bool) -> None:
    rows = GENERATOR.dirichlet(np.ones(4), size=(80, 1))
    if heavy:  # a few rows carry nearly all of the weight
        rows *= GENERATOR.pareto(1.2, size=(80, 1, 1))
    top, bottom = share_of_deviation(list(rows))
    _, low, high, _ = bootstrap_ratio(top, bottom, seed=0)
    drawn = [direct(rows[GENERATOR.integers(80, size=80)]) for _ in range(1000)]
    expected = np.percentile(drawn, [2.5, 97.5])
    np.testing.assert_allclose([low, high], expected, atol=0.15 * (expected[1] - expected[0]) + 0.02)
