"""Planted senses lie apart in their layer, shuffled ones nowhere; points are labelled with their sentences."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

import sensed
from bertology.errors import Refusal
from bertology.measures.meaning.sense_material import occurrences
from bertology.measures.meaning.sense_places import chosen_word, in_context, layer_cosines, purities, silhouettes
from bertology.results.shapes import LayerCurve, Scatter, Trajectory

NAME = "meaning/sense_map"


def shown(**options: Any) -> Any:
    return sensed.result(NAME, sensed.recording(sensed.corpus(), None, sensed.first), **options).data


def test_planted_senses_lie_apart_in_their_layer() -> None:
    found = shown(word="plant")
    assert isinstance(found, LayerCurve)
    apart, purity = found.measures["silhouette"], found.measures["neighbours of the same sense"]
    assert apart.value[1] > 0.5 > abs(apart.value[0])
    assert apart.low[0] < 0.1 and purity.value[1] == 1.0
    for name, chance in (("silhouette", 0.0), ("neighbours of the same sense", 0.5)):
        shuffled = found.baselines["shuffled senses"][name].value
        np.testing.assert_allclose(shuffled, chance, atol=0.06, err_msg=name)
    assert "plant: plant%0 12, plant%1 12" in found.units["silhouette"]


def test_silhouettes_are_those_of_scikit_learn_and_purity_of_a_loop() -> None:
    from sklearn.metrics import silhouette_samples

    own = occurrences(sensed.recording(sensed.corpus(), None, sensed.first, noise=1.0))
    places = chosen_word(own, "bank")
    similarities = layer_cosines(own, places)[1]
    vectors, senses = own.examples.features[1, places], own.sense[places]
    expected = cast("Any", silhouette_samples)(vectors, senses.astype(str), metric="cosine")
    np.testing.assert_allclose(silhouettes(similarities, senses), expected, atol=1e-5)
    documents = own.documents[places]
    found = purities(similarities, senses, documents)
    for case in range(len(places)):
        others = [other for other in range(len(places)) if documents[other] != documents[case]]
        nearest = max(others, key=lambda other: similarities[case, other])
        assert found[case] == (senses[nearest] == senses[case])


def test_of_one_document_no_neighbour_counts() -> None:
    senses = np.array(["a", "a", "b"], object)
    assert np.isnan(purities(np.ones((3, 3)), senses, np.array(["d"] * 3, object))).all()
    alike = purities(np.ones((3, 3)), senses, np.array(["d", "e", "f"], object))
    np.testing.assert_array_equal(alike, [0.5, 0.5, 0.0])  # all as near: what share has the sense
    assert np.isnan(silhouettes(np.ones((3, 3)), np.array(["a"] * 3, object))).all()


def test_pictures_are_coloured_by_sense_and_labelled_with_the_text() -> None:
    paths = shown(show="paths", word="bank")
    assert isinstance(paths, Trajectory)
    assert paths.points.shape == (2, 24, 2)
    assert set(paths.groups) == {"bank%0", "bank%1"}
    assert all("[bank]" in label for label in paths.labels)
    points = shown(show="points", word="bank", layer=1)
    assert isinstance(points, Scatter)
    assert points.axes_named[0] == "first axis, layer 1"
    means = [points.points[[group == name for group in points.groups]].mean(0) for name in ("bank%0", "bank%1")]
    spread = points.points[[group == "bank%0" for group in points.groups]].std(0).max()
    assert np.linalg.norm(means[0] - means[1]) > 3 * spread


def test_long_sentences_are_cut_around_the_word() -> None:
    own = occurrences(sensed.recording(sensed.corpus(length=40), None))
    label = in_context(own, int(own.word.argmax()))
    assert label.startswith("… ") and len(label.split()) <= 15


def test_the_word_is_the_one_with_most_of_a_second_sense() -> None:
    both = sensed.corpus(("bank",), 10, common=0.9).items + sensed.corpus(("plant",), 8).items
    own = occurrences(sensed.recording(sensed.Corpus(both, name="both"), None))
    assert set(own.lemma[chosen_word(own, "")]) == {"plant"}


def test_what_cannot_be_shown_is_refused() -> None:
    for options, said in (
        ({"word": "planet"}, "plant"),
        ({"show": "points", "layer": 9}, "layer 9"),
    ):
        with pytest.raises(Refusal, match=said):
            shown(**options)
    with pytest.raises(Refusal, match="two senses"):
        sensed.result(NAME, sensed.recording(sensed.corpus(common=1.0), None, None))
