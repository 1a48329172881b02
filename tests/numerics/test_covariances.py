"""Covariances without a group of observations equal those of the remaining observations."""

from __future__ import annotations

import numpy as np

from bertology.numerics.covariances import covariances


def test_leaving_out_a_group_equals_the_remaining_observations() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(400, 9)) * np.arange(1, 10) + 3, generator.normal(size=(400, 6))
    groups = np.arange(400) % 5
    _, *by_group = covariances(first, second, groups)
    assert len(by_group) == 5
    for group, without in enumerate(by_group):
        is_included = groups != group
        alone = next(covariances(first[is_included], second[is_included], None))
        np.testing.assert_allclose(without.first, alone.first, atol=1e-8)
        np.testing.assert_allclose(without.cross, alone.cross, atol=1e-8)
        assert without.count == alone.count
