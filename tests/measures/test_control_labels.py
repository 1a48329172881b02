"""Control labels: one a type, in the proportions asked for, the same wherever the type occurs."""

from __future__ import annotations

import numpy as np

from bertology.measures.probes.control_labels import random_labels


def test_a_type_has_one_label_and_labels_have_their_shares() -> None:
    types = np.array([f"t{i % 5000}" for i in range(10_000)], object)
    found = random_labels(types, 3, np.array([0.2, 0.7]))
    np.testing.assert_array_equal(found[:5000], found[5000:])
    np.testing.assert_allclose(np.bincount(found) / 10_000, [0.2, 0.5, 0.3], atol=0.02)


def test_another_draw_is_another_labelling() -> None:
    types = np.array([f"t{i}" for i in range(200)], object)
    one, other = (random_labels(types, draw, np.array([0.5])) for draw in (0, 1))
    assert 0.35 < (one == other).mean() < 0.65
