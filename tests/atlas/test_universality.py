"""What models say together: planted universal findings, findings of one model, and what seeds and training explain."""

from __future__ import annotations

from bertology.atlas.content import Atlas
from planted_atlas import planted_atlas

NOISE = [f"noise {n}" for n in range(5)]


def agreement(content: Atlas, id: str) -> str:
    return next(each.agreement for each in content.agreements if each.finding == id)


def test_planted_agreements() -> None:
    ids: tuple[str, ...] = ("everywhere", "untrained too", "nowhere", "only in a", "differs", "open")
    effects = {
        "a": dict(zip(ids, (0.5, 0.5, -0.5, 0.5, 0.5, 0.02), strict=True)),
        "b": dict(zip(ids, (0.5, 0.5, -0.5, -0.3, 0.4, 0.5), strict=True)),
        "c": dict(zip(ids, (0.5, 0.5, -0.5, -0.3, -0.5, 0.5), strict=True)),
        "random:a": dict(zip(ids, (-0.2, 0.5, -0.5, -0.3, -0.5, -0.2), strict=True)),
    }
    content = planted_atlas(effects, untrained=["random:a"], seed=3)
    kinds = [agreement(content, id) for id in ids]
    assert kinds == ["universal", "without training", "nowhere", "one model", "differs", "undecided"]
    assert [model.name for model in content.trained] == ["a", "b", "c"]


def test_a_difference_that_may_be_noise_is_not_called_one() -> None:
    """One model just holds and the other just fails; sampling explains the difference."""
    ids = [f"finding {n}" for n in range(40)]
    content = planted_atlas({name: dict.fromkeys(ids, 0.0) for name in "abc"}, noise=0.5)
    assert all(each.agreement in {"undecided", "nowhere"} or each.n_different for each in content.agreements)
    assert sum(each.n_different for each in content.agreements) <= 1


def test_what_sets_a_model_apart_is_what_was_planted() -> None:
    same = {"x": 0.5, **dict.fromkeys(NOISE, 0.5)}
    content = planted_atlas({"a": same, "b": same, "c": {**same, "x": 0.9}, "d": {**same, "x": 0.5}})
    assert [(each.model, each.finding, each.is_larger) for each in content.peculiarities] == [("c", "x", True)]
    assert 0.25 < content.peculiarities[0].least_difference < 0.55


def test_seeds_bound_what_is_called_larger_than_their_spread() -> None:
    """The difference of a and b is real, and no larger than that of two seeds; that of a and c is."""
    effects = {"runs/seed-1": 0.3, "runs/seed-2": 0.6, "a": 0.3, "b": 0.5, "c": 0.95}
    content = planted_atlas({name: {"x": value} for name, value in effects.items()})
    [family] = content.families
    assert family.models == ("runs/seed-1", "runs/seed-2") and 0.2 < family.spreads["x"] < 0.4
    [agreement] = content.agreements
    beyond = [
        {d.first, d.second} for d in content.differences if d.is_significant and abs(d.value) > family.spreads["x"]
    ]
    assert agreement.n_beyond_seeds == len(beyond) < agreement.n_different_trained == agreement.n_different
    assert {"a", "c"} in beyond and {"a", "b"} not in beyond


def test_seeds_of_untrained_models_say_nothing_about_trained_ones() -> None:
    effects = {"a": 0.3, "b": 0.9, "random:a": -0.5, "random:a@1": -0.5}
    content = planted_atlas(
        {name: {"x": value} for name, value in effects.items()}, untrained=["random:a", "random:a@1"]
    )
    [family] = content.families
    [agreement] = content.agreements
    assert not family.is_trained and agreement.n_different == 5 and agreement.n_different_trained == 1
    assert agreement.n_beyond_seeds is None
