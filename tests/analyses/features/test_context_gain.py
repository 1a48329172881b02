"""features/context_gain: planted entities gain from context if they are ambiguous or rare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted_context
from bertology.analyses.features.context_gain.analysis import RANDOM_HALVES, ZERO, context_gain
from bertology.analyses.features.context_gain.property_halves import (
    COMPLEXITY,
    HALF_NAMES,
    RARITY,
    ScoredUnits,
    split_scores,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus, read
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.shapes import Table

WORD, CONTEXT = "call:planted_context:word_only", "call:planted_context:word_and_previous"


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load("tiny")


def run_table(encoder: Encoder, corpus: Corpus, **options: Any) -> Table:
    data = run_analysis(context_gain, RunInputs(corpus, encoder), options).data
    assert isinstance(data, Table)
    return data


@pytest.fixture(scope="module")
def planted_table(tmp_path_factory: pytest.TempPathFactory, tiny: Encoder) -> Table:
    folder = tmp_path_factory.mktemp("planted")
    train, test = folder / "train.conll", folder / "test.conll"
    train.write_text(planted_context.conll(30, 1), "utf-8")
    test.write_text(planted_context.conll(8, 2), "utf-8")
    return run_table(tiny, read(test), features=f"{CONTEXT},{WORD}", train_corpus=str(train), sample_size=0)


def row(table: Table, property: str, half: str) -> int:
    return table.row_names.index(f"{property}: {half}")


def test_context_helps_ambiguous_entities(planted_table: Table) -> None:
    gain = planted_table.measures[f"{CONTEXT} - {WORD}"]
    lower, upper, difference = (gain[row(planted_table, "ambiguity", half)] for half in HALF_NAMES)
    assert abs(lower.value) < 0.05 and 0.4 < upper.value < 0.6
    assert difference.low > 0.2
    assert planted_table.measures[CONTEXT].value[row(planted_table, "ambiguity", "upper half")] == 1
    assert planted_table.measures[WORD].value[row(planted_table, "ambiguity", "lower half")] == 1
    # Without context half of the ambiguous entities get the right type.
    assert lower.n == 16 and upper.n == 16 and difference.n == 32


def test_context_helps_unseen_entities(planted_table: Table) -> None:
    gain = planted_table.measures[f"{CONTEXT} - {WORD}"]
    lower, upper, difference = (gain[row(planted_table, "rarity", half)] for half in HALF_NAMES)
    # The lower half has 16 frequent entities of one type and 8 of both types; half of the 8 are right without context.
    np.testing.assert_allclose([lower.value, upper.value], [8 / 24 / 2, 0.5])
    assert difference.low > 0
    assert planted_table.attribute("n_undefined", row(planted_table, "ambiguity", "lower half")) == 16


def test_constant_property_has_no_halves(planted_table: Table) -> None:
    """Every planted entity has one word."""
    for half in HALF_NAMES:
        index = row(planted_table, "structural complexity", half)
        for estimates in planted_table.measures.values():
            assert np.isnan(estimates.value[index]) and estimates.n[index] == 0


def test_random_halves_have_the_gain_of_all_units(planted_table: Table) -> None:
    random_halves = planted_table.baselines[RANDOM_HALVES][f"{CONTEXT} - {WORD}"]
    rows = [row(planted_table, "ambiguity", half) for half in HALF_NAMES]
    gain = planted_table.measures[f"{CONTEXT} - {WORD}"].value[rows]
    np.testing.assert_allclose(random_halves.value[rows], [gain[:2].mean(), gain[:2].mean(), 0], atol=1e-12)


def make_units(values: list[float], units: list[int]) -> ScoredUnits:
    table = np.stack([np.array(values, float)] * 3, 1)
    return ScoredUnits("entity", np.array(units), tuple(range(len(values))), table, max(units) + 1)


def test_means_of_halves_are_those_of_their_units() -> None:
    generator = np.random.default_rng(0)
    values = generator.integers(1, 9, size=80).astype(float)
    values[::9] = np.nan
    units = np.sort(generator.integers(20, size=80))
    first, second = generator.random((2, 3, 80))
    halves, random_halves = split_scores(make_units(values.tolist(), units.tolist()), [first, second], 0, seed=0)
    middle = np.nanmedian(values)
    cuts = [values > middle, values >= middle]
    defined = np.isfinite(values)
    upper = min(cuts, key=lambda cut: abs(2 * cut.sum() - defined.sum()))
    lower = defined & ~upper
    expected = [
        [first[:, half].mean(), second[:, half].mean(), (first - second)[:, half].mean()] for half in (lower, upper)
    ]
    np.testing.assert_allclose(halves.value, [*expected, np.subtract(expected[1], expected[0])])
    np.testing.assert_allclose(
        random_halves.value[0], [half[:, defined].mean() for half in (first, second, first - second)]
    )
    np.testing.assert_array_equal(halves.n[:, 0], [lower.sum(), upper.sum(), defined.sum()])
    assert (halves.low <= halves.value).all() and (halves.value <= halves.high).all()


def test_intervals_of_random_halves_contain_zero() -> None:
    outside = 0
    for number in range(40):
        generator = np.random.default_rng(number)
        values = generator.random(60)
        scores = [(generator.random((1, 60)) < 0.5).astype(float) for _ in range(2)]
        halves, _ = split_scores(make_units(values.tolist(), list(range(60))), scores, 0, seed=0)
        outside += not halves.low[2, 2] <= 0 <= halves.high[2, 2]
    assert outside <= 6


def test_texts_without_trees_have_no_complexity(tiny: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "reviews.tsv"
    lines = [f"{'pos' if n % 2 else 'neg'}\tfilm {'good' if n % 2 else 'bad'} word{n % 7}" for n in range(80)]
    path.write_text("label\ttext\n" + "\n".join(lines), "utf-8")
    table = run_table(tiny, read(path), features="model,random:8", n_seeds=2)
    assert (table.measures["model"].n[: len(HALF_NAMES)] == 0).all()
    assert table.attribute("n_defined", 0) == 0
    assert set(table.baselines) == {"majority class", RANDOM_HALVES, ZERO}
    assert table.measures["random:8"].value[row(table, "ambiguity", "lower half")] == 1


def test_complexity_of_a_word_is_the_distance_to_its_governor(tiny: Encoder) -> None:
    table = run_table(tiny, load_corpus("english", limit=60), label="pos", features="static,random:8", n_seeds=1)
    assert "words" in table.units["static"] and table.sample["test words"] > 50
    assert isinstance(table.attribute(f"Spearman with {COMPLEXITY}", row(table, RARITY, "lower half")), float)
    assert table.measures["static"].n[row(table, COMPLEXITY, "lower half")] > 50


def test_long_entities_can_be_excluded(tiny: Encoder) -> None:
    corpus = load_corpus("english", limit=80)
    all_lengths, short = (
        run_table(tiny, corpus, features="static,random:8", n_seeds=1, max_entity_words=n) for n in (0, 1)
    )
    counts = [int(table.measures["static"].n[row(table, RARITY, HALF_NAMES[2])]) for table in (all_lengths, short)]
    assert counts[0] > counts[1] > 0
    assert short.measures["static"].n[row(short, COMPLEXITY, HALF_NAMES[0])] == 0


def test_unsuitable_features_and_classifiers_are_refused(tiny: Encoder) -> None:
    corpus = load_corpus("english", limit=30)
    with pytest.raises(Refusal, match="two or more"):
        run_table(tiny, corpus, features="model")
    with pytest.raises(Refusal, match="one or more of"):
        run_table(tiny, corpus, classifier="cnn")
