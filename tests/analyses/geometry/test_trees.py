"""A planted tree is drawn true: every edge has the squared length 1, and longer relations are found long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planted
import planted_trees
from bertology.analyses.geometry.trees import LENGTH, PLAIN, SQUARED, trees
from bertology.analyses.run import Subject, run
from bertology.corpus.sentence import ROOT
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.results.shapes import Curve, Scatter, Shape, Table

CORPUS = planted_trees.short_sentences()
QUICK = {"seeds": 2, "epochs": 60, "batch": 5, "layer": 1}


def found_in(layer: Any, **options: Any) -> Shape:
    recording = planted_trees.recording_of(CORPUS, planted_trees.noise, layer)
    return run(trees, Subject(recording=recording), {**QUICK, **options}).data


def test_every_relation_of_a_planted_tree_has_the_length_one() -> None:
    table = found_in(planted_trees.mixed)
    assert isinstance(table, Table)
    assert table.rows_named[0] == "all"
    np.testing.assert_allclose(table.measures[LENGTH].value, 1.0, atol=0.2)  # late words are rare in training
    assert (table.baselines["true embedding"][LENGTH].value == 1).all()
    assert table.baselines["linear chain"][LENGTH].value[0] > 1.3


def stretched(entry: Entry) -> planted.Floats:
    """Words below a `det` edge stand too far from their heads: its direction is shared by all such edges."""
    tree = entry.input.parts[0]
    heads, relations = tree.heads or (), tree.relations or ()
    states = np.zeros((len(heads), planted_trees.WIDTH))
    for word in range(len(heads)):
        above = word
        while heads[above] != ROOT:
            states[word, above if relations[above] != "det" else -1] += 1 if relations[above] != "det" else 2
            above = heads[above]
    return states


def test_a_relation_that_is_drawn_long_is_found_long() -> None:
    # The probe cannot shorten this direction and keep the second determiner of a sentence apart from the first.
    table = found_in(stretched, rate=1e-5, epochs=1)
    assert isinstance(table, Table)
    lengths = dict(zip(table.rows_named, table.measures[LENGTH].value, strict=True))
    assert lengths["det"] > 2 * lengths["all"]
    dealt = dict(zip(table.rows_named, table.baselines["shuffled relations"][LENGTH].value, strict=True))
    assert dealt["det"] < lengths["det"] / 1.5
    assert table.baselines["shuffled relations"][LENGTH].value[0] == table.measures[LENGTH].value[0]


def test_squared_distances_grow_as_paths_do() -> None:
    curve = found_in(planted_trees.mixed, show="distances")
    assert isinstance(curve, Curve)
    some = curve.measures[SQUARED].n > 5
    np.testing.assert_allclose(curve.measures[SQUARED].value[some], curve.points[some], rtol=0.1)
    np.testing.assert_allclose(curve.measures[PLAIN].value[some], np.sqrt(curve.points[some]), rtol=0.1)
    noise = found_in(planted_trees.noise, show="distances")
    assert isinstance(noise, Curve)
    assert noise.measures[SQUARED].value[3] < noise.measures[SQUARED].value[0] * 2


def test_one_sentence_lies_over_the_true_embedding() -> None:
    picture = found_in(planted_trees.mixed, show="sentence")
    assert isinstance(picture, Scatter)
    count = len(picture.labels) // 2
    assert len(picture.edges) == 2 * (count - 1)
    assert picture.labels[:count] == picture.labels[count:]
    model, true = picture.points[:count], picture.points[count:]
    assert np.abs(model - true).max() < 0.35 * np.abs(true).max()
    assert all((a < count) == (b < count) for a, b in picture.edges)


def test_a_sentence_is_chosen_by_its_number() -> None:
    with pytest.raises(Refusal, match="not among the test sentences") as refused:
        found_in(planted_trees.noise, show="sentence", sentence=10_000, epochs=1)
    number = int(str(refused.value).split("one of ")[1].split(",")[0])
    picture = found_in(planted_trees.noise, show="sentence", sentence=number, epochs=1)
    assert isinstance(picture, Scatter)
    words = CORPUS.items[number].parts[0].words
    assert picture.labels == (*words, *words)
