"""Planted layers of similar heads are separated, mixed layers are not; divergences equal those of scipy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon, pdist, squareform
from sklearn.manifold import MDS, ClassicalMDS

import planted
from bertology.analyses.attention.head_clusters.analysis import head_clusters, head_divergence_site, plane_points
from bertology.arrays import FloatArray
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.estimates.resampling import percentile_interval
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.recording.sites import resolve_sites
from bertology.results.illustrations import Scatter
from bertology.results.shapes import Matrix, Table

TEXTS = ("a b c .", "d e , f g h", ("i j", "k l m n"), "p q r s t u v !")


def mix_heads(first: planted.HeadAttention, second: planted.HeadAttention, weight: float) -> planted.HeadAttention:
    return lambda recorded_input: weight * first(recorded_input) + (1 - weight) * second(recorded_input)


def similar_layers() -> list[list[planted.HeadAttention]]:
    """Three layers with one pattern each, and a little noise."""
    patterns = [planted.offset_head(-1), planted.special_head(SpecialToken.SEP), planted.uniform_head]
    return [
        [mix_heads(pattern, planted.random_head(10 * layer + head), 0.8) for head in range(4)]
        for layer, pattern in enumerate(patterns)
    ]


def mixed_layers() -> list[list[planted.HeadAttention]]:
    """The same heads, with one head of each pattern in every layer."""
    heads = similar_layers()
    return [[heads[pattern][layer] for pattern in range(3)] + [heads[layer][3]] for layer in range(3)]


def recording_of(layers: list[list[planted.HeadAttention]], **options: Any) -> Recording:
    sites = resolve_sites(head_clusters.sites(head_clusters.resolve_options(options)))
    return planted.make_recording(planted.make_corpus(*TEXTS), layers).with_sites(sites)


def run(layers: list[list[planted.HeadAttention]], **options: Any) -> Any:
    return head_clusters(recording_of(layers, **options), None, **options)


def test_layers_of_similar_heads_are_separated() -> None:
    table = run(similar_layers())
    assert isinstance(table, Table)
    assert table.row_names == ("layer 1", "layer 2", "layer 3", "all layers")
    assert (table.measures["divergence within layer"].value < table.measures["divergence between layers"].value).all()
    assert table.measures["silhouette"].value[3] > 0.5
    assert table.measures["p (permutation)"].value[3] == pytest.approx(0.001)
    assert table.measures["between - within"][3].clearly_above(
        table.baselines["shuffled layers"]["between - within"][3]
    )


def test_intervals_are_those_of_the_resampled_values() -> None:
    """By which two models are compared sentence by sentence."""
    table = run(similar_layers())
    for name in ("divergence within layer", "divergence between layers", "between - within"):
        estimates = table.measures[name]
        assert estimates.resampled.shape == (1000, 4) and (estimates.n_rows == len(TEXTS)).all()
        np.testing.assert_allclose(percentile_interval(estimates.resampled), (estimates.low, estimates.high), atol=1e-9)


def test_mixed_layers_are_not_separated() -> None:
    table = run(mixed_layers())
    assert table.measures["p (permutation)"].value[3] > 0.05
    assert table.measures["silhouette"].value[3] < 0


@pytest.mark.parametrize(
    "options",
    [{}, {"sqrt": True}, {"special_tokens": "exclude"}, {"legacy": True}],
    ids=["default", "square root", "no special tokens", "legacy"],
)
def test_divergences_equal_those_of_scipy(options: dict[str, Any]) -> None:
    layers = [[planted.random_head(1), planted.uniform_head], [planted.random_head(2), planted.offset_head(1)]]
    recording = recording_of(layers, **options)
    site = head_divergence_site(**options)
    for recorded_input, result in zip(recording.inputs, recording[site], strict=True):
        patterns = [head(recorded_input) for layer in layers for head in layer]
        mask = (
            recorded_input.tokens.special_kinds == SpecialToken.NONE
            if "special_tokens" in options
            else recorded_input.tokens.special_kinds >= 0
        )
        patterns = [pattern[np.ix_(mask, mask)] for pattern in patterns]
        with np.errstate(invalid="ignore"):
            patterns = [pattern / pattern.sum(1, keepdims=True) for pattern in patterns]
        if "legacy" in options:
            patterns = [0.999 * pattern + 0.001 / mask.sum() for pattern in patterns]
        for first in range(4):
            for second in range(4):
                rows = np.array([jensenshannon(p, q) for p, q in zip(patterns[first], patterns[second], strict=True)])
                rows = np.where(np.isfinite(patterns[first] + patterns[second]).all(1), rows, np.nan)
                expected = np.nanmean(rows if "sqrt" in options else rows**2)
                assert result.reshape(4, 4)[first, second] == pytest.approx(
                    expected, abs=2e-3 if "sqrt" in options else 7e-5
                )


def test_a_pass_and_recorded_attention_agree() -> None:
    encoder, corpus = load("tiny"), load_corpus("english", limit=6)
    site = head_divergence_site()
    recording = record(encoder, corpus, ["attention", site], config=RecordingConfig(tokens_per_batch=60))
    attention_only = Recording(
        recording.encoder, recording.corpus, recording.inputs, {"attention": recording["attention"]}
    )
    for in_pass, from_attention in zip(recording[site], attention_only.with_sites([site])[site], strict=True):
        assert in_pass.shape == (encoder.layers, encoder.heads, encoder.layers * encoder.heads)
        np.testing.assert_allclose(in_pass, from_attention, atol=2e-5)


def test_clusters_are_the_planted_patterns() -> None:
    table = run(mixed_layers(), show="clusters", n_clusters=3)
    assert isinstance(table, Table)
    assert list(table.attributes["heads"]) == [
        "1-1, 1-4, 2-1, 3-1",
        "1-2, 2-2, 2-4, 3-2",
        "1-3, 2-3, 3-3, 3-4",
    ]
    assert (
        table.measures["divergence within cluster"].value
        < table.baselines["all head pairs"]["divergence within cluster"].value
    ).all()
    # Of the 66 pairs of 12 heads 18 are in the same layer; here each cluster has one such pair of six.
    np.testing.assert_allclose(table.baselines["chance"]["same-layer pairs"].value, 18 / 66)
    np.testing.assert_allclose(table.measures["same-layer pairs"].value, 1 / 6)


def test_similar_heads_have_nearby_points() -> None:
    scatter = run(similar_layers(), show="points")
    assert isinstance(scatter, Scatter)
    points = scatter.points.reshape(3, 4, 2)
    centres = points.mean(1)
    radius = np.linalg.norm(points - centres[:, None], axis=-1).max()
    assert radius < min(np.linalg.norm(centres[a] - centres[b]) for a in range(3) for b in range(a))


def test_the_matrix_names_heads() -> None:
    matrix = run(similar_layers(), show="matrix")
    assert isinstance(matrix, Matrix)
    assert matrix.row_names[4] == "2-1"
    np.testing.assert_allclose(np.diag(matrix.measures["Jensen-Shannon divergence"].value), 0, atol=1e-6)
    assert matrix.units["Jensen-Shannon divergence"] == "nats, 0 to ln 2"
    assert run(similar_layers(), show="matrix", sqrt=True).units["Jensen-Shannon divergence"] == "root nats, 0 to 0.833"


def test_the_untrained_model_is_a_baseline_of_the_matrix() -> None:
    layers, untrained = similar_layers(), mixed_layers()
    matrix = head_clusters(recording_of(layers), recording_of(untrained), show="matrix")
    assert isinstance(matrix, Matrix)
    alone = run(untrained, show="matrix").measures["Jensen-Shannon divergence"]
    assert matrix.baselines["untrained model"]["Jensen-Shannon divergence"] == alone


def test_legacy_weights_tokens_equally() -> None:
    layers = similar_layers()
    recording = recording_of(layers, legacy=True)
    lengths = np.array([len(recorded_input.tokens) for recorded_input in recording.inputs])
    site = head_divergence_site(legacy=True)
    expected = np.average(np.stack(recording[site]).reshape(-1, 12, 12), axis=0, weights=lengths)
    same_layer = np.repeat(np.arange(3), 4)[:, None] == np.repeat(np.arange(3), 4)
    result = run(layers, legacy=True).measures["divergence between layers"].value[3]
    assert result == pytest.approx(expected[~same_layer].mean())
    matrix = run(layers, legacy=True, show="matrix")
    np.testing.assert_allclose(matrix.measures["Jensen-Shannon divergence"].value, expected, atol=1e-6)


def test_an_input_without_words_does_not_count_without_special_tokens() -> None:
    layers = similar_layers()
    site = head_divergence_site(special_tokens="exclude")
    corpus = planted.make_corpus(*TEXTS, "")
    recording = planted.make_recording(corpus, layers).with_sites([site])
    assert np.isnan(recording[site][-1]).all()
    table = head_clusters(recording, None, special_tokens="exclude")
    assert isinstance(table, Table)
    for name, estimates in run(layers, special_tokens="exclude").measures.items():
        np.testing.assert_allclose(table.measures[name].value, estimates.value, atol=1e-6, err_msg=name)


def test_one_layer_is_refused() -> None:
    with pytest.raises(Refusal, match="two layers"):
        run([[planted.uniform_head, planted.random_head(1)]])


def _raw_stress(points: FloatArray, distances: FloatArray) -> float:
    """Half the sum of squared differences between the distances of the points and the target distances."""
    return float(np.square(squareform(pdist(points)) - distances).sum() / 2)


def test_points_of_the_plane_are_recovered() -> None:
    distances = squareform(pdist(np.random.default_rng(0).normal(size=(15, 2))))
    np.testing.assert_allclose(squareform(pdist(plane_points(distances))), distances, atol=1e-6)


def test_the_stress_is_no_worse_than_from_random_starts() -> None:
    distances = squareform(pdist(np.random.default_rng(1).normal(size=(25, 6))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        random_starts = MDS(2, metric="precomputed", n_init=2, init="random", max_iter=500, eps=1e-9, random_state=0)
        random_stress = _raw_stress(np.asarray(random_starts.fit_transform(distances)), distances)
    stress = _raw_stress(plane_points(distances), distances)
    assert stress < 1.05 * random_stress
    assert stress < _raw_stress(ClassicalMDS(metric="precomputed").fit_transform(distances), distances)


def test_equal_heads_have_equal_points() -> None:
    np.testing.assert_allclose(plane_points(np.zeros((4, 4))), np.zeros((4, 2)), atol=1e-12)
