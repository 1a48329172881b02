"""The map puts models with planted like profiles together, and does not map noise."""

from __future__ import annotations

import numpy as np

from planted_atlas import planted_atlas

IDS = [f"finding {n}" for n in range(20)]


def test_two_planted_groups_lie_apart_by_more_than_the_uncertainty() -> None:
    generator = np.random.default_rng(2)
    profiles = {"a": generator.normal(0, 0.3, 20), "b": generator.normal(0, 0.3, 20)}
    effects = {
        f"{group}{n}": dict(zip(IDS, profile.tolist(), strict=True))
        for group, profile in profiles.items()
        for n in range(3)
    }
    content = planted_atlas(effects)
    assert content.map is not None and content.map.explained > 0.7
    points = {position.model: np.array([position.x, position.y]) for position in content.map.positions}
    within = max(np.linalg.norm(points["a0"] - points[f"a{n}"]) for n in (1, 2))
    between = min(np.linalg.norm(points[f"a{n}"] - points[f"b{m}"]) for n in range(3) for m in range(3))
    assert between > 3 * within
    assert all(position.radii[0] < between for position in content.map.positions)


def test_findings_that_differ_by_sampling_alone_are_not_on_the_map() -> None:
    effects = {f"copy {n}": dict.fromkeys(IDS, 0.5) for n in range(6)}
    content = planted_atlas(effects, noise=0.02)
    assert content.map is None, "the sentences explain all differences"


def test_too_few_models_have_no_map() -> None:
    assert planted_atlas({name: dict.fromkeys(IDS, 0.5) for name in "ab"}).map is None
