"""When context pays: planted names that only context tells apart gain from it, where they are ambiguous or unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planted_context
from bertology.analyses.meaning.properties import ALIKE, properties
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import read
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.meaning.context_gain import PARTS, Judged, split_scores
from bertology.results.shapes import Table

WORDS, CONTEXT = "call:planted_context:of_words", "call:planted_context:of_context"


@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return load("tiny")


def table_of(encoder: Encoder, corpus: Corpus, **options: Any) -> Table:
    data = run(properties, Subject(corpus, encoder), options).data
    assert isinstance(data, Table)
    return data


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory, tiny: Encoder) -> Table:
    folder = tmp_path_factory.mktemp("planted")
    learnt, judged = folder / "learn.conll", folder / "judge.conll"
    learnt.write_text(planted_context.conll(30, 1), "utf-8")
    judged.write_text(planted_context.conll(8, 2), "utf-8")
    return table_of(tiny, read(judged), features=f"{CONTEXT},{WORDS}", train=str(learnt), items=0)


def row(table: Table, property: str, part: str) -> int:
    return table.rows_named.index(f"{property}, {part}")


def test_context_pays_where_words_are_ambiguous(planted: Table) -> None:
    gain = planted.measures[f"{CONTEXT} - {WORDS}"]
    lower, upper, difference = (gain[row(planted, "ambiguity", part)] for part in PARTS)
    assert abs(lower.value) < 0.05 and 0.4 < upper.value < 0.6
    assert difference.low > 0.2
    assert planted.measures[CONTEXT].value[row(planted, "ambiguity", "upper half")] == 1
    assert planted.measures[WORDS].value[row(planted, "ambiguity", "lower half")] == 1
    # Half of the names that a table of words cannot tell are of the kind that it says.
    assert lower.n == 16 and upper.n == 16 and difference.n == 32


def test_context_pays_where_words_are_unseen(planted: Table) -> None:
    gain = planted.measures[f"{CONTEXT} - {WORDS}"]
    lower, upper, difference = (gain[row(planted, "unseen words", part)] for part in PARTS)
    # The lower half is 16 frequent names of one kind and 8 of either, of which a table of words gets half.
    np.testing.assert_allclose([lower.value, upper.value], [8 / 24 / 2, 0.5])
    assert difference.low > 0
    assert "16 without a word that training has" in planted.notes["ambiguity, lower half"]


def test_what_does_not_differ_has_no_halves(planted: Table) -> None:
    """Every planted name is one word long."""
    for part in PARTS:
        place = row(planted, "complexity", part)
        for estimates in planted.measures.values():
            assert np.isnan(estimates.value[place]) and estimates.n[place] == 0


def test_random_halves_have_the_gain_of_all(planted: Table) -> None:
    found = planted.baselines[ALIKE][f"{CONTEXT} - {WORDS}"]
    places = [row(planted, "ambiguity", part) for part in PARTS]
    gain = planted.measures[f"{CONTEXT} - {WORDS}"].value[places]
    np.testing.assert_allclose(found.value[places], [gain[:2].mean(), gain[:2].mean(), 0], atol=1e-12)


def judged(values: list[float], units: list[int]) -> Judged:
    table = np.stack([np.array(values, float)] * 3, 1)
    return Judged("name", np.array(units), tuple(range(len(values))), table, max(units) + 1)


def test_the_means_of_the_halves_are_those_of_their_items() -> None:
    generator = np.random.default_rng(0)
    values = generator.integers(1, 9, size=80).astype(float)
    values[::9] = np.nan
    units = np.sort(generator.integers(20, size=80))
    first, second = generator.random((2, 3, 80))
    found, whole = split_scores(judged(values.tolist(), units.tolist()), [first, second], 0, seed=0)
    middle = np.nanmedian(values)
    cuts = [values > middle, values >= middle]
    defined = np.isfinite(values)
    upper = min(cuts, key=lambda cut: abs(2 * cut.sum() - defined.sum()))
    lower = defined & ~upper
    expected = [
        [first[:, own].mean(), second[:, own].mean(), (first - second)[:, own].mean()] for own in (lower, upper)
    ]
    np.testing.assert_allclose(found.value, [*expected, np.subtract(expected[1], expected[0])])
    np.testing.assert_allclose(whole.value[0], [part[:, defined].mean() for part in (first, second, first - second)])
    np.testing.assert_array_equal(found.n[:, 0], [lower.sum(), upper.sum(), defined.sum()])
    assert (found.low <= found.value).all() and (found.value <= found.high).all()


def test_noise_shows_no_difference_between_halves_more_often_than_it_should() -> None:
    outside = 0
    for number in range(40):
        generator = np.random.default_rng(number)
        values = generator.random(60)
        scores = [(generator.random((1, 60)) < 0.5).astype(float) for _ in range(2)]
        found, _ = split_scores(judged(values.tolist(), list(range(60))), scores, 0, seed=0)
        outside += not found.low[2, 2] <= 0 <= found.high[2, 2]
    assert outside <= 6


def test_texts_with_classes_have_no_complexity_without_trees(tiny: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "reviews.tsv"
    lines = [f"{'pos' if n % 2 else 'neg'}\tfilm {'good' if n % 2 else 'bad'} word{n % 7}" for n in range(80)]
    path.write_text("label\ttext\n" + "\n".join(lines), "utf-8")
    found = table_of(tiny, read(path), features="model,random:8", seeds=2)
    assert (found.measures["model"].n[: len(PARTS)] == 0).all()
    assert "without a tree" in found.notes["complexity, lower half"]
    assert set(found.baselines) == {"majority", ALIKE}
    place = row(found, "ambiguity", "lower half")
    assert found.measures["random:8"].value[place] == 1


def test_tagged_words_have_the_distance_of_their_head(tiny: Encoder) -> None:
    found = table_of(tiny, corpus_named("english", limit=60), layer="pos", features="static,random:8", seeds=1)
    assert "words in" in found.notes["complexity, lower half"]
    assert "rank correlation with complexity" in found.notes["unseen words, lower half"]
    place = row(found, "complexity", "lower half")
    assert found.measures["static"].n[place] > 50


def test_only_short_names_are_judged_where_that_is_asked(tiny: Encoder) -> None:
    corpus = corpus_named("english", limit=80)
    every, short = (table_of(tiny, corpus, features="static,random:8", seeds=1, longest=n) for n in (0, 1))
    counts = [int(found.measures["static"].n[row(found, "unseen words", PARTS[2])]) for found in (every, short)]
    assert counts[0] > counts[1] > 0
    assert short.measures["static"].n[row(short, "complexity", PARTS[0])] == 0


def test_what_cannot_be_compared_is_refused(tiny: Encoder) -> None:
    corpus = corpus_named("english", limit=30)
    with pytest.raises(Refusal, match="two or more"):
        table_of(tiny, corpus, features="model")
    with pytest.raises(Refusal, match="one or more of"):
        table_of(tiny, corpus, learner="cnn")
