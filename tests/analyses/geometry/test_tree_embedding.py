"""`geometry/tree_embedding`: edges of a planted tree have length 1, long relations are found, embeddings are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planted_trees
from bertology.analyses.geometry.tree_embedding import (
    DISTANCE,
    SQUARED_DISTANCE,
    SQUARED_LENGTH,
    principal_plane,
    pythagorean_embedding,
    tree_embedding,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import FloatArray
from bertology.corpus.sentence import ROOT
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.numerics.spanning_trees import tree_depths, tree_distances
from bertology.results.illustrations import Scatter
from bertology.results.shapes import Curve, Shape, Table

CORPUS = planted_trees.short_sentences()
QUICK = {"n_seeds": 2, "epochs": 60, "batch_size": 5, "layer": 1}
GOVERNORS = (2, 2, -1, 5, 5, 2, 5)


def run(states: Any, **options: Any) -> Shape:
    """The result for a recording whose layer 1 has these states."""
    recording = planted_trees.make_recording(CORPUS, planted_trees.noise_states, states)
    return run_analysis(tree_embedding, RunInputs(recording=recording), {**QUICK, **options}).data


def test_every_relation_of_a_planted_tree_has_the_squared_length_one() -> None:
    data = run(planted_trees.mapped_states)
    assert isinstance(data, Table)
    assert data.row_names[0] == "all relations"
    np.testing.assert_allclose(data.measures[SQUARED_LENGTH].value, 1.0, atol=0.2)  # late words are rare in training
    assert (data.baselines["exact tree embedding"][SQUARED_LENGTH].value == 1).all()
    assert data.baselines["linear chain"][SQUARED_LENGTH].value[0] > 1.3
    n_edges = data.attributes["n_edges"]
    assert len(n_edges) == len(data.row_names) and n_edges[0] == max(n for n in n_edges if isinstance(n, int))


def long_det_states(recorded: RecordedInput) -> FloatArray:
    """States that embed the tree exactly, except that `det` edges are twice as long and share one axis."""
    sentence = recorded.text.segments[0]
    governors, relations = sentence.governors or (), sentence.relations or ()
    states = np.zeros((len(governors), planted_trees.WIDTH))
    for word in range(len(governors)):
        ancestor = word
        while governors[ancestor] != ROOT:
            is_det = relations[ancestor] == "det"
            states[word, -1 if is_det else ancestor] += 2 if is_det else 1
            ancestor = governors[ancestor]
    return states


def test_a_relation_with_long_edges_has_a_large_squared_length() -> None:
    # The probe cannot shorten this axis and keep the second determiner of a sentence apart from the first.
    data = run(long_det_states, learning_rate=1e-5, epochs=1)
    assert isinstance(data, Table)
    lengths = dict(zip(data.row_names, data.measures[SQUARED_LENGTH].value, strict=True))
    assert lengths["det"] > 2 * lengths["all relations"]
    shuffled = data.baselines["shuffled relations"][SQUARED_LENGTH].value
    assert dict(zip(data.row_names, shuffled, strict=True))["det"] < lengths["det"] / 1.5
    assert shuffled[0] == data.measures[SQUARED_LENGTH].value[0]


def test_squared_distances_grow_linearly_with_tree_distance() -> None:
    data = run(planted_trees.mapped_states, show="distances")
    assert isinstance(data, Curve)
    frequent = data.measures[SQUARED_DISTANCE].n > 5
    x = data.x[frequent]
    np.testing.assert_allclose(data.measures[SQUARED_DISTANCE].value[frequent], x, rtol=0.1)
    np.testing.assert_allclose(data.measures[DISTANCE].value[frequent], np.sqrt(x), rtol=0.1)
    noise = run(planted_trees.noise_states, show="distances")
    assert isinstance(noise, Curve)
    assert noise.measures[SQUARED_DISTANCE].value[3] < noise.measures[SQUARED_DISTANCE].value[0] * 2


def test_the_points_of_a_sentence_match_the_exact_embedding() -> None:
    data = run(planted_trees.mapped_states, show="points")
    assert isinstance(data, Scatter)
    n_words = len(data.labels) // 2
    assert len(data.edges) == 2 * (n_words - 1)
    assert data.labels[:n_words] == data.labels[n_words:]
    points, exact = data.points[:n_words], data.points[n_words:]
    assert np.abs(points - exact).max() < 0.35 * np.abs(exact).max()
    assert all((a < n_words) == (b < n_words) for a, b in data.edges)


def test_a_sentence_is_chosen_by_its_number_from_one() -> None:
    with pytest.raises(Refusal, match="not a test sentence") as refusal:
        run(planted_trees.noise_states, show="points", example=10_000, epochs=1)
    number = int(str(refusal.value).split("one of ")[1].split(",")[0])
    data = run(planted_trees.noise_states, show="points", example=number, epochs=1)
    assert isinstance(data, Scatter)
    words = CORPUS.examples[number - 1].segments[0].words
    assert data.labels == (*words, *words)


def test_squared_distances_are_tree_distances_and_squared_norms_depths() -> None:
    points = pythagorean_embedding(GOVERNORS)
    squared_distances = np.square(points[:, None] - points[None]).sum(-1)
    np.testing.assert_array_equal(squared_distances, tree_distances(GOVERNORS))
    np.testing.assert_array_equal(np.square(points).sum(1), tree_depths(GOVERNORS))


def test_the_plane_is_that_of_principal_components() -> None:
    from sklearn.decomposition import PCA

    points = np.random.default_rng(0).normal(size=(12, 5)) * np.arange(1, 6)
    plane = principal_plane(points)
    np.testing.assert_allclose(np.abs(plane), np.abs(PCA(2).fit_transform(points)), atol=1e-9)
    np.testing.assert_allclose(principal_plane(points + 100), plane, atol=1e-9)


@pytest.mark.parametrize("n_points", [1, 2])
def test_few_points_have_a_plane_too(n_points: int) -> None:
    plane = principal_plane(np.random.default_rng(0).normal(size=(n_points, 5)))
    assert plane.shape == (n_points, 2)
    np.testing.assert_allclose(plane[:, 1], 0, atol=1e-9)
