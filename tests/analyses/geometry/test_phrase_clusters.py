"""`geometry/phrase_clusters`: planted clusters are found, noise is at chance, spans come from chunks or trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses import registry
from bertology.analyses.geometry import phrase_clusters
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import FloatArray
from bertology.corpus.chunking import sentence_chunks
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus, load_corpus
from bertology.corpus.sentence import Span
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.results.illustrations import Scatter
from bertology.results.shapes import LayerCurve

NAME = "geometry/phrase_clusters"
PHRASE_TYPES = ("NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "O")
ADJUSTED = "adjusted mutual information"


def token_types(recorded: RecordedInput) -> list[int]:
    """The phrase type of each token; [CLS] and [SEP] have the last."""
    types = [len(PHRASE_TYPES) - 1] * len(recorded.text.words)
    for span in sentence_chunks(recorded.text.segments[0]) or ():
        types[span.start : span.end] = [PHRASE_TYPES.index(span.label)] * (span.end - span.start)
    return [-1, *types, -1]


def make_states(clustered: bool) -> Callable[[RecordedInput], FloatArray]:
    """Layer 0 is noise; in layer 1 each phrase type is a cluster if `clustered`."""

    def states(recorded: RecordedInput) -> FloatArray:
        generator = np.random.default_rng(recorded.tokens.ids.tolist())
        hidden = generator.normal(size=(2, len(recorded.tokens), 8))
        if clustered:
            hidden[1] = 10 * np.eye(8)[token_types(recorded)] + 0.01 * hidden[1]
        return hidden

    return states


def run(corpus: Corpus, clustered: bool, **options: object) -> LayerCurve | Scatter:
    recording = planted.make_recording(corpus, [[planted.uniform_head]], make_states(clustered))
    data = run_analysis(registry.get(NAME), RunInputs(recording=recording), options).data
    assert isinstance(data, LayerCurve | Scatter)
    return data


def run_scatter(corpus: Corpus, clustered: bool, **options: object) -> Scatter:
    data = run(corpus, clustered, show="points", **options)
    assert isinstance(data, Scatter)
    return data


@pytest.fixture(scope="module")
def english() -> Corpus:
    return load_corpus("english", limit=120)


def test_planted_phrase_types_are_found_and_noise_is_not(english: Corpus) -> None:
    data = run(english, True)
    assert isinstance(data, LayerCurve)
    noise, clustered = data.measures["NMI"].value
    # A single start of k-means may merge two types in some seeds.
    assert clustered > 0.85 and data.measures["NMI"].high[1] > 0.95
    assert noise < 0.15
    assert abs(data.measures[ADJUSTED].value[0]) < 0.05
    shuffled = data.baselines["shuffled labels"]
    assert shuffled["NMI"].value[1] < 0.15 and abs(shuffled[ADJUSTED].value[1]) < 0.05
    for estimates in data.measures.values():
        assert estimates.interval == "bootstrap" and (estimates.n <= len(english)).all()
        assert (estimates.low <= estimates.value).all() and (estimates.value <= estimates.high).all()
    assert data.measures["NMI"].low[1] > data.measures["NMI"].high[0]


def simulated_runs(generator: np.random.Generator, n_sentences: int) -> list[phrase_clusters.ClusteredSpans]:
    """Spans whose clusters follow their types, less so in some sentences and seeds; each seed scores a part."""
    n_spans, n_types, n_seeds = 6, 4, 3
    sentences = np.repeat(np.arange(n_sentences), n_spans)
    types = generator.integers(n_types, size=len(sentences))
    noise = np.repeat(generator.uniform(0.1, 0.6, n_sentences), n_spans)
    runs: list[phrase_clusters.ClusteredSpans] = []
    for _ in range(n_seeds):
        is_noise = generator.random(len(types)) < noise + generator.normal(0, 0.03)
        clusters = np.where(is_noise, generator.integers(n_types, size=len(types)), types)
        scored = generator.permutation(len(types))[: len(types) // 2]
        runs.append(phrase_clusters.ClusteredSpans(sentences[scored], types[None, scored], clusters[None, scored]))
    return runs


def test_intervals_hold_as_often_as_they_say_and_agree_between_seeds() -> None:
    generator = np.random.default_rng(0)
    for name in ("NMI", ADJUSTED):
        intervals: list[tuple[float, float, float]] = []
        for seed in range(100):
            runs = simulated_runs(generator, 40)
            estimate = phrase_clusters.bootstrap_information(runs, "geometric", seed=seed)[name][0]
            intervals.append((estimate.value, estimate.low, estimate.high))
        values, lows, highs = np.array(intervals).T
        covered = ((lows <= values.mean()) & (values.mean() <= highs)).mean()
        assert covered >= 0.88, (name, covered)
        disjoint = (lows[::2] > highs[1::2]) | (highs[::2] < lows[1::2])
        assert disjoint.mean() <= 0.04, name


def test_resampled_scores_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score

    run = simulated_runs(np.random.default_rng(1), 30)[0]
    table = run.tables(np.unique(run.sentences)).sum(0)
    labels, clusters = run.labels[0], run.clusters[0]
    for method in ("geometric", "arithmetic"):
        adjusted = np.array([adjusted_mutual_info_score(labels, clusters)])
        expected = phrase_clusters._expected_information(table, adjusted)  # pyright: ignore[reportPrivateUsage]
        scores = phrase_clusters._information(table, expected, method)  # pyright: ignore[reportPrivateUsage]
        nmi = normalized_mutual_info_score(labels, clusters, average_method=method)
        np.testing.assert_allclose(scores[:, 0], [nmi, adjusted[0]], atol=1e-9)


def test_annotated_chunks_take_precedence_over_trees(english: Corpus) -> None:
    chunked = english.map_sentences(
        lambda sentence: replace(sentence, chunks=(Span(0, 1, "FIRST"), Span(1, len(sentence), "REST")))
    )
    data = run_scatter(chunked, False)
    assert set(data.groups) == {"FIRST", "REST"}
    assert len(data.groups) == 240


@pytest.mark.parametrize("projection", ["pca", "tsne"])
def test_points_are_the_sampled_spans(english: Corpus, projection: str) -> None:
    options = {"projection": projection, "sample_size": 60, "non_phrase_spans": 10}
    data = run_scatter(english, True, **options)
    assert data.points.shape == (70, 2) and data.groups.count("O") == 10
    np.testing.assert_array_equal(data.points, run_scatter(english, True, **options).points)


def test_layers_are_counted_from_the_embeddings_or_from_the_last(english: Corpus) -> None:
    points = {layer: run_scatter(english, True, sample_size=40, layer=layer).points for layer in (0, 1, -1, -2, "auto")}
    np.testing.assert_array_equal(points[1], points[-1])
    np.testing.assert_array_equal(points[1], points["auto"])
    np.testing.assert_array_equal(points[0], points[-2])
    assert not np.array_equal(points[0], points[1])


def test_principal_components_agree_with_scikit_learn(english: Corpus) -> None:
    from sklearn.decomposition import PCA

    recording = planted.make_recording(english, [[planted.uniform_head]], make_states(False))
    all_spans = phrase_clusters._extract_spans(recording)  # pyright: ignore[reportPrivateUsage]
    spans = phrase_clusters._sample_spans(all_spans, 50, 0, 0)  # pyright: ignore[reportPrivateUsage]
    states = phrase_clusters._span_states(recording, spans)  # pyright: ignore[reportPrivateUsage]
    vectors = phrase_clusters._span_vectors(states, spans, 1)  # pyright: ignore[reportPrivateUsage]
    data = run_scatter(english, False, sample_size=50, non_phrase_spans=0)
    expected = PCA(2).fit_transform(vectors.astype(np.float64))
    np.testing.assert_allclose(np.abs(data.points), np.abs(expected), atol=1e-3)


def test_spans_are_represented_by_their_first_and_last_tokens(english: Corpus) -> None:
    recording = record(load("tiny"), english[:20], ("hidden",))
    for span in phrase_clusters._extract_spans(recording):  # pyright: ignore[reportPrivateUsage]
        recorded = recording.inputs[span.input_index]
        word_ids = recorded.tokens.word_ids
        first, last = (recorded.text.words[word_ids[position]] for position in (span.first, span.last))
        assert span.words.startswith(first) and span.words.endswith(last)
        assert word_ids[span.first - 1] != word_ids[span.first]
        assert word_ids[span.last + 1] != word_ids[span.last]


def test_missing_chunks_and_unknown_layers_are_refused() -> None:
    with pytest.raises(Refusal, match="neither chunks nor trees"):
        run(as_corpus(["No annotation here."]), False)
    with pytest.raises(Refusal, match="--layer was given 9"):
        run(load_corpus("english", limit=20), False, show="points", layer=9)
