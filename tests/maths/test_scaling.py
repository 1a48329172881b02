"""Scaling finds the plane where there is one, and no worse a map than scikit-learn's where there is none."""

from __future__ import annotations

import warnings

import numpy as np

from bertology.maths.scaling import between, classical, raw_stress, smacof


def test_points_in_the_plane_are_found_again() -> None:
    points = np.random.default_rng(0).normal(size=(15, 2))
    distances = between(points)
    np.testing.assert_allclose(between(classical(distances)), distances, atol=1e-8)
    np.testing.assert_allclose(between(smacof(distances)), distances, atol=1e-6)


def test_the_stress_is_no_worse_than_that_of_scikit_learn() -> None:
    from sklearn.manifold import MDS

    distances = between(np.random.default_rng(1).normal(size=(25, 6)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = MDS(2, metric="precomputed", n_init=2, init="random", max_iter=500, eps=1e-9, random_state=0)
        theirs = raw_stress(np.asarray(peer.fit_transform(distances)), distances)
    ours = raw_stress(smacof(distances), distances)
    assert ours < 1.05 * theirs
    assert ours < raw_stress(classical(distances), distances)


def test_equal_items_fall_together() -> None:
    np.testing.assert_allclose(smacof(np.zeros((4, 4))), np.zeros((4, 2)), atol=1e-12)
