"""Spans and pairs: what the vectors of both tell is found in the layer that has it."""

from __future__ import annotations

import numpy as np
import pytest

import probed
from bertology.corpus.sentence import Frame, Span
from bertology.errors import Refusal
from bertology.measures.probes.layer_mixing import Mixed, localisation
from bertology.measures.probes.probe_scores import Answers
from bertology.results.shapes import LayerCurve
from bertology.results.spread import RANGE, spread


def relation(entry: probed.Entry, word: int) -> int:
    return ("root", "nsubj", "obj").index((entry.input.parts[0].relations or ())[word])


def curve(recorded: probed.Recording, **options: object) -> LayerCurve:
    data = probed.result("probes/edge", recorded, **options).data
    assert isinstance(data, LayerCurve)
    return data


def test_a_relation_is_found_from_its_layer_on() -> None:
    data = curve(probed.recording(probed.corpus(), None, None, relation, None), task="relation", seeds=2)
    single, up_to = data.measures["accuracy"].value, data.measures["accuracy of layers up to here"].value
    assert single[2] > 0.95 and (single[[0, 1, 3]] < 0.65).all()
    assert (up_to[:2] < 0.65).all() and (up_to[2:] > 0.9).all()
    gain = data.measures["gain"]
    assert np.isnan(gain.value[0]) and gain.n[0] == 0
    assert gain.value[1:].argmax() == 1 and gain.value[2] > 0.3
    assert data.measures["mixing weight"].value.argmax() == 2
    np.testing.assert_allclose(data.measures["mixing weight"].value.sum(), 1, rtol=1e-5)


def test_a_pair_needs_both_of_its_spans() -> None:
    shown = probed.corpus(120)

    entries = {entry.input.words: entry for entry in probed.planted.entries_of(shown)}

    def side(entry: probed.Entry, word: int) -> int:
        return int(np.random.default_rng([word, *entry.pieces.ids.tolist()]).integers(2))

    def exclusive(one: probed.Sentence) -> probed.Sentence:
        """The relation tells whether the word and its head have the same side: neither of them alone tells."""
        entry = entries[one.words]
        names = tuple(
            "root" if head < 0 else ("obj", "nsubj")[side(entry, word) == side(entry, head)]
            for word, head in enumerate(one.heads or ())
        )
        return probed.replace(one, relations=names)

    recorded = probed.recording(shown.map(exclusive), side, noise=0.1)
    straight = curve(recorded, task="relation", probe="linear", seeds=1).measures["accuracy"].value[0]
    crossed = curve(recorded, task="relation", probe="bilinear:8", seeds=1).measures["accuracy"].value[0]
    assert straight < 0.7 < 0.93 < crossed


def test_a_span_is_the_mean_of_its_words() -> None:
    def with_spans(one: probed.Sentence) -> probed.Sentence:
        tags = one.pos or ()
        return probed.replace(one, entities=tuple(Span(i, i + 2, tags[i]) for i in range(0, len(one), 2)))

    data = curve(probed.recording(probed.corpus(80).map(with_spans), probed.tag), task="entity", seeds=1)
    # The first word of two has the label: half of the vector says it, half says something else.
    assert 0.55 < data.measures["accuracy"].value[0] < 0.8


def test_ranges_over_seeds_are_told_from_intervals() -> None:
    data = curve(probed.recording(probed.corpus(80), probed.tag), seeds=2)
    ranges = {name for name in data.measures if spread(data.units[name]) == RANGE}
    assert ranges == {"compression", "gain", "mixing weight"}
    assert all((data.measures[name].n <= 2).all() for name in ranges)


def test_roles_and_coreference_are_pairs() -> None:
    def annotated(one: probed.Sentence) -> probed.Sentence:
        tags = one.pos or ()
        frames = (Frame(0, "", tuple(Span(i, i + 1, tags[i]) for i in range(1, 6))),)
        mentions = tuple(Span(i, i + 1, tags[i]) for i in range(6))
        return probed.replace(one, frames=frames, mentions=mentions)

    recorded = probed.recording(probed.corpus().map(annotated), probed.tag, noise=0.1)
    assert curve(recorded, task="role", seeds=1).measures["accuracy"].value[0] > 0.95
    same = curve(recorded, task="coreference", probe="bilinear:8", seeds=1).measures["accuracy"].value[0]
    assert same > 0.9


def test_empty_spans_and_missing_annotation_are_refused() -> None:
    empty = probed.corpus().map(lambda one: probed.replace(one, entities=(Span(2, 2, "A"), Span(3, 4, "B"))))
    with pytest.raises(Refusal, match=r"from word 2 to word 2 .* empty or outside"):
        curve(probed.recording(empty, None), task="entity")
    with pytest.raises(Refusal, match="probes/edge --task role needs the annotation frames"):
        curve(probed.recording(probed.corpus(), None), task="role")


def test_the_expected_layer_and_the_centre_of_gravity_are_as_defined() -> None:
    gold = np.zeros((1, 10), int)
    said = np.array([[[1] * 6 + [0] * 4], [[1] * 4 + [0] * 6], [[1] * 1 + [0] * 9], [[1] * 2 + [0] * 8]])
    found = Mixed(Answers(said, gold), np.array([[0.1, 0.2, 0.3, 0.4]]))
    np.testing.assert_allclose(found.scores, [[0.4, 0.6, 0.9, 0.8]])
    np.testing.assert_allclose(found.expected, [(1 * 0.2 + 2 * 0.3 - 3 * 0.1) / 0.4])
    np.testing.assert_allclose(found.centre, [2.0])
    flat = Mixed(Answers(np.zeros((3, 1, 10), int), gold), np.ones((1, 3)) / 3)
    assert np.isnan(flat.expected).all()
    falling = Mixed(Answers(said[::-1], gold), np.array([[0.1, 0.2, 0.3, 0.4]]))
    assert np.isnan(falling.expected).all() and np.isnan(falling.gains_localised).all()
    np.testing.assert_allclose(found.gains_localised, localisation(np.array([[0.2, 0.3, 0.0]])))
    np.testing.assert_allclose(localisation(np.array([[1, 1, 1, 1], [0, 0, 4, 0]])), [0, 2], atol=1e-9)
