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
from bertology.corpus.corpus import Corpus, corpus_from_texts
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import Span
from bertology.encoder.load import load
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.results.shapes import LayerCurve, Scatter

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
    assert all(estimates.interval == "range" for estimates in data.measures.values())


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
        run(corpus_from_texts("No annotation here."), False)
    with pytest.raises(Refusal, match="--layer was given 9"):
        run(load_corpus("english", limit=20), False, show="points", layer=9)
