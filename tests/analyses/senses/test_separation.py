"""senses/separation: planted senses are separated in their layer, shuffled ones in none; labels of points."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import planted_senses
from bertology.analyses.senses.separation.silhouette import (
    context_snippet,
    layer_cosines,
    neighbour_purity,
    select_lemma,
    silhouettes,
)
from bertology.analyses.word_senses.occurrences import sense_occurrences
from bertology.corpus.corpus import Corpus
from bertology.errors import Refusal
from bertology.results.illustrations import Scatter, Trajectory
from bertology.results.shapes import LayerCurve

NAME = "senses/separation"


def run_separation(**options: Any) -> Any:
    return planted_senses.run(
        NAME, planted_senses.recording(planted_senses.corpus(), None, planted_senses.sense_direction), **options
    ).data


def test_planted_senses_are_separated_in_their_layer() -> None:
    data = run_separation(lemma="plant")
    assert isinstance(data, LayerCurve)
    silhouette, purity = data.measures["silhouette"], data.measures["nearest neighbour has same sense"]
    assert silhouette.value[1] > 0.5 > abs(silhouette.value[0])
    assert silhouette.low[0] < 0.1 and purity.value[1] == 1.0
    for name, chance in (("silhouette", 0.0), ("nearest neighbour has same sense", 0.5)):
        shuffled = data.baselines["shuffled senses"][name].value
        np.testing.assert_allclose(shuffled, chance, atol=0.06, err_msg=name)
    assert data.sample == {"of sense plant%0": 12, "of sense plant%1": 12}


def test_silhouettes_equal_scikit_learn_and_purity_equals_a_loop() -> None:
    from sklearn.metrics import silhouette_samples

    occurrences = sense_occurrences(
        planted_senses.recording(planted_senses.corpus(), None, planted_senses.sense_direction, noise=1.0)
    )
    indices = select_lemma(occurrences, "bank")
    similarities = layer_cosines(occurrences, indices)[1]
    vectors, senses = occurrences.examples.features[1, indices], occurrences.senses[indices]
    expected = cast("Any", silhouette_samples)(vectors, senses.astype(str), metric="cosine")
    np.testing.assert_allclose(silhouettes(similarities, senses), expected, atol=1e-5)
    documents = occurrences.documents[indices]
    purity = neighbour_purity(similarities, senses, documents)
    for row in range(len(indices)):
        others = [other for other in range(len(indices)) if documents[other] != documents[row]]
        nearest = max(others, key=lambda other: similarities[row, other])
        assert purity[row] == (senses[nearest] == senses[row])


def test_neighbours_of_the_same_document_do_not_count() -> None:
    senses = np.array(["a", "a", "b"], object)
    assert np.isnan(neighbour_purity(np.ones((3, 3)), senses, np.array(["d"] * 3, object))).all()
    purity = neighbour_purity(np.ones((3, 3)), senses, np.array(["d", "e", "f"], object))
    np.testing.assert_array_equal(purity, [0.5, 0.5, 0.0])  # all equally near: the proportion with the same sense
    assert np.isnan(silhouettes(np.ones((3, 3)), np.array(["a"] * 3, object))).all()


def test_points_are_grouped_by_sense_and_labelled_with_the_text() -> None:
    trajectory = run_separation(show="trajectory", lemma="bank")
    assert isinstance(trajectory, Trajectory)
    assert trajectory.points.shape == (2, 24, 2)
    assert set(trajectory.groups) == {"bank%0", "bank%1"}
    assert all("[bank]" in label for label in trajectory.labels)
    points = run_separation(show="points", lemma="bank", layer=1)
    assert isinstance(points, Scatter)
    assert points.axis_names[0] == "first axis, layer 1"
    means = [points.points[[group == name for group in points.groups]].mean(0) for name in ("bank%0", "bank%1")]
    std = points.points[[group == "bank%0" for group in points.groups]].std(0).max()
    assert np.linalg.norm(means[0] - means[1]) > 3 * std


def test_snippets_are_cut_around_the_word() -> None:
    occurrences = sense_occurrences(planted_senses.recording(planted_senses.corpus(length=40), None))
    label = context_snippet(occurrences, int(occurrences.word_index.argmax()))
    assert label.startswith("… ") and len(label.split()) <= 15


def test_default_lemma_has_the_most_frequent_second_sense() -> None:
    skewed, balanced = planted_senses.corpus(("bank",), 10, first_sense=0.9), planted_senses.corpus(("plant",), 8)
    corpus = Corpus((*skewed.examples, *balanced.examples), name="planted")
    occurrences = sense_occurrences(planted_senses.recording(corpus, None))
    assert set(occurrences.lemmas[select_lemma(occurrences, "")]) == {"plant"}


def test_unknown_lemmas_and_layers_are_refused() -> None:
    for options, message in (
        ({"lemma": "planet"}, "plant"),
        ({"show": "points", "layer": 9}, "--layer was given 9"),
    ):
        with pytest.raises(Refusal, match=message):
            run_separation(**options)
    with pytest.raises(Refusal, match="two senses"):
        planted_senses.run(NAME, planted_senses.recording(planted_senses.corpus(first_sense=1.0), None, None))
