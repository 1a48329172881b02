"""Planted differences are found, and copies with noise are told apart no more often than the level allows."""

from __future__ import annotations

import numpy as np

from bertology.atlas.differences import ModelDifference, compare_models
from planted_atlas import planted_atlas, planted_finding, planted_model

IDS = [f"finding {n}" for n in range(20)]


def significant(differences: tuple[ModelDifference, ...]) -> set[tuple[str, str, str]]:
    return {(d.finding, d.first, d.second) for d in differences if d.is_significant}


def test_a_planted_difference_is_found_and_nothing_else() -> None:
    same = dict.fromkeys(IDS, 0.5)
    effects = {"a": same, "b": same, "c": {**same, "finding 3": 0.7}}
    content = planted_atlas(effects)
    found = significant(content.differences)
    assert found == {("finding 3", "a", "c"), ("finding 3", "b", "c")}
    [difference] = [d for d in content.differences if (d.finding, d.first, d.second) == ("finding 3", "a", "c")]
    assert difference.is_paired and difference.low < -0.2 < difference.high < 0


def test_twenty_copies_with_noise_have_no_differences() -> None:
    """Of 3,800 comparisons of equal models each atlas may be wrong once in 20; ten atlases have at most two."""
    wrong = 0
    for seed in range(10):
        content = planted_atlas({f"copy {n}": dict.fromkeys(IDS, 0.5) for n in range(20)}, seed=seed)
        assert len(content.differences) == 20 * 190
        raw = np.array([difference.p for difference in content.differences])
        assert 0.03 < (raw < 0.05).mean() < 0.07, "p values of equal models are uniform"
        wrong += bool(significant(content.differences))
    assert wrong <= 2


def test_pairing_takes_out_how_hard_the_sentences_are() -> None:
    """Sentences differ three times as much as models do: without pairing the difference would not be seen."""
    content = planted_atlas({"a": dict.fromkeys(IDS, 0.5), "b": dict.fromkeys(IDS, 0.6)}, noise=0.05)
    paired = [d.high - d.low for d in content.differences]
    other = [finding.model_copy(update={"corpora": ("another",)}) for finding in content.models[1].findings]
    unpaired = compare_models([content.models[0], content.models[1].model_copy(update={"findings": tuple(other)})])
    assert all(d.is_paired for d in content.differences) and not any(d.is_paired for d in unpaired)
    assert np.mean(paired) < np.mean([d.high - d.low for d in unpaired]) / 3
    assert len(significant(content.differences)) == len(IDS) and len(significant(unpaired)) == 0


def test_sentences_that_one_model_does_not_have_leave_the_others_paired() -> None:
    """As where a tokeniser drops words of a sentence: its row is resampled and not measured."""
    generator = np.random.default_rng(0)
    sentences = generator.normal(0.0, 0.3, 60)
    values = {name: sentences + effect + generator.normal(0.0, 0.05, 60) for name, effect in (("a", 0.5), ("b", 0.6))}
    values["b"][[3, 17, 40]] = np.nan
    first, second = (planted_model(name, [planted_finding("x", each)]) for name, each in values.items())
    [difference] = compare_models([first, second])
    assert difference.is_paired and difference.is_significant and -0.2 < difference.low < -0.1 < difference.high < 0

    shorter = planted_model("b", [planted_finding("x", values["b"][np.isfinite(values["b"])])])
    [difference] = compare_models([first, shorter])
    assert not difference.is_paired and not difference.is_significant, "other rows are not resampled together"


def test_equal_models_with_other_missing_sentences_differ_as_often_as_the_level_allows() -> None:
    generator = np.random.default_rng(1)
    p_values: list[float] = []
    for _ in range(400):
        values = generator.normal(0.5, 0.3, 60) + generator.normal(0.0, 0.1, (2, 60))
        values[0, :6] = values[1, 3:12] = np.nan
        models = [planted_model(name, [planted_finding("x", each)]) for name, each in zip("ab", values, strict=True)]
        [difference] = compare_models(models)
        assert difference.is_paired
        p_values.append(difference.p)
    assert 0.03 < np.mean(np.array(p_values) < 0.05) < 0.07


def test_few_sentences_and_exact_numbers_are_not_tested() -> None:
    content = planted_atlas({"a": {"x": 0.5}, "b": {"x": 0.9}})
    first, second = content.models
    finding = first.findings[0]
    assert finding.effect is not None
    few = finding.model_copy(update={"effect": finding.effect.model_copy(update={"n": 9})})
    exact = finding.model_copy(
        update={"effect": finding.effect.model_copy(update={"standard_error": None, "resampled": ""})}
    )
    for changed in (few, exact):
        assert compare_models([first.model_copy(update={"findings": (changed,)}), second]) == ()


def test_p_is_never_below_that_of_a_sign_test() -> None:
    content = planted_atlas({"a": {"x": 0.1}, "b": {"x": 0.9}}, noise=1e-6)
    [difference] = content.differences
    assert difference.p == 2 * 0.5**60
