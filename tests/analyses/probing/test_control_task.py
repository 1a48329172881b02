"""Control labels: one per type, in the given proportions, the same wherever the type occurs."""

from __future__ import annotations

import numpy as np

from bertology.analyses.probing.control_task import assign_control_labels


def test_a_type_has_one_label_and_labels_have_their_proportions() -> None:
    types = np.array([f"t{i % 5000}" for i in range(10_000)], object)
    labels = assign_control_labels(types, 3, np.array([0.2, 0.7]))
    np.testing.assert_array_equal(labels[:5000], labels[5000:])
    np.testing.assert_allclose(np.bincount(labels) / 10_000, [0.2, 0.5, 0.3], atol=0.02)


def test_another_seed_gives_another_labelling() -> None:
    types = np.array([f"t{i}" for i in range(200)], object)
    first, second = (assign_control_labels(types, seed, np.array([0.5])) for seed in (0, 1))
    assert 0.35 < (first == second).mean() < 0.65
