"""`geometry/phrases`: planted clusters, noise at chance, spans from trees, the picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, read_text
from bertology.corpus.sentence import Span
from bertology.corpus.tree_chunks import chunks_of
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.results.shapes import LayerCurve, Scatter

NAME = "geometry/phrases"
KINDS = ("NP", "VP", "PP", "ADVP", "ADJP", "SBAR", "PRT", "O")


def kind_of_piece(entry: Entry) -> list[int]:
    """The kind of the chunk that each piece lies in; [CLS] and [SEP] lie in none."""
    kinds = [len(KINDS) - 1] * len(entry.input.words)
    for span in chunks_of(entry.input.parts[0]) or ():
        kinds[span.start : span.end] = [KINDS.index(span.label)] * (span.end - span.start)
    return [-1, *kinds, -1]


def hidden(known: bool) -> Callable[[Entry], planted.Floats]:
    """Layer 0 is noise; in layer 1 each kind of chunk is a place of its own."""

    def states(entry: Entry) -> planted.Floats:
        random = np.random.default_rng(entry.pieces.ids.tolist())
        made = random.normal(size=(2, len(entry.pieces), 8))
        if known:
            made[1] = 10 * np.eye(8)[kind_of_piece(entry)] + 0.01 * made[1]
        return made

    return states


def result(corpus: Corpus, known: bool, **options: object) -> LayerCurve | Scatter:
    recording = planted.recording_of(corpus, [[planted.uniform]], hidden(known))
    data = run(registry.get(NAME), Subject(recording=recording), options).data
    assert isinstance(data, LayerCurve | Scatter)
    return data


@pytest.fixture(scope="module")
def english() -> Corpus:
    return corpus_named("english", limit=120)


def test_planted_kinds_are_found_and_noise_is_not(english: Corpus) -> None:
    found = result(english, True)
    assert isinstance(found, LayerCurve)
    noise, planted_layer = found.measures["NMI"].value
    # One start of k-means may join two kinds: a few seeds do.
    assert planted_layer > 0.85 and found.measures["NMI"].high[1] > 0.95
    assert noise < 0.15
    assert abs(found.measures["adjusted mutual information"].value[0]) < 0.05
    shuffled = found.baselines["shuffled labels"]
    assert shuffled["NMI"].value[1] < 0.15 and abs(shuffled["adjusted mutual information"].value[1]) < 0.05


def test_annotated_chunks_come_before_trees(english: Corpus) -> None:
    chunked = english.map(lambda own: replace(own, chunks=(Span(0, 1, "FIRST"), Span(1, len(own), "REST"))))
    drawn = result(chunked, False, picture="pca")
    assert isinstance(drawn, Scatter)
    assert set(drawn.groups) == {"FIRST", "REST"}
    assert len(drawn.groups) == 240


@pytest.mark.parametrize("how", ["pca", "tsne"])
def test_the_picture_shows_the_spans(english: Corpus, how: str) -> None:
    drawn = result(english, True, picture=how, spans=60, outsiders=10)
    assert isinstance(drawn, Scatter)
    assert drawn.points.shape == (70, 2) and drawn.groups.count("O") == 10
    again = result(english, True, picture=how, spans=60, outsiders=10)
    assert isinstance(again, Scatter)
    np.testing.assert_array_equal(drawn.points, again.points)


def test_principal_components_agree_with_scikit_learn(english: Corpus) -> None:
    from sklearn.decomposition import PCA

    from bertology.analyses.geometry import phrases

    recording = planted.recording_of(english, [[planted.uniform]], hidden(False))
    chosen = phrases._drawn(phrases._phrases(recording), 50, 0, 0)  # pyright: ignore[reportPrivateUsage]
    states = phrases._states(recording, chosen)  # pyright: ignore[reportPrivateUsage]
    vectors = phrases._vectors(states, chosen, 1)  # pyright: ignore[reportPrivateUsage]
    drawn = result(english, False, picture="pca", spans=50, outsiders=0)
    assert isinstance(drawn, Scatter)
    theirs = PCA(2).fit_transform(vectors.astype(np.float64))
    np.testing.assert_allclose(np.abs(drawn.points), np.abs(theirs), atol=1e-3)


def test_spans_are_their_first_and_last_pieces(english: Corpus) -> None:
    from bertology.analyses.geometry import phrases

    encoder = load("tiny")
    from bertology.recording.recorder import record

    recording = record(encoder, english[:20], ("hidden",))
    for phrase in phrases._phrases(recording):  # pyright: ignore[reportPrivateUsage]
        pieces = recording.entries[phrase.entry].pieces
        first, last = (recording.entries[phrase.entry].input.words[pieces.word[p]] for p in (phrase.first, phrase.last))
        assert phrase.words.startswith(first) and phrase.words.endswith(last)
        assert pieces.word[phrase.first - 1] != pieces.word[phrase.first]
        assert pieces.word[phrase.last + 1] != pieces.word[phrase.last]


def test_no_chunks_and_no_trees_are_refused() -> None:
    with pytest.raises(Refusal, match="no chunks and no trees"):
        result(read_text("No annotation here."), False)
    with pytest.raises(Refusal, match="no layer 9"):
        result(corpus_named("english", limit=20), False, picture="pca", layer=9)
