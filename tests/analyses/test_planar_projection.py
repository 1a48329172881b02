"""Projections to the plane: aligned planes are rotated onto each other, joint planes keep distances."""

from __future__ import annotations

import numpy as np

from bertology.analyses.planar_projection import project_to_plane


def test_aligned_planes_match_after_a_rotation_and_joint_planes_keep_distances() -> None:
    generator = np.random.default_rng(0)
    flat = generator.normal(size=(30, 2)) * (3, 1) @ generator.normal(size=(2, 8))
    rotated = flat @ np.linalg.qr(generator.normal(size=(8, 8)))[0]
    planes = project_to_plane(np.stack([flat, rotated]), "aligned-pca", seed=0)
    np.testing.assert_allclose(planes[0], planes[1], atol=1e-8)
    joint = project_to_plane(np.stack([flat, flat]), "pca", seed=0)
    distances = np.linalg.norm(joint[0, 0] - joint[0, 1:], axis=1)
    np.testing.assert_allclose(distances, np.linalg.norm(flat[0] - flat[1:], axis=1), atol=1e-8)
