"""`probes/edge`: labels of spans and span pairs are predicted from the layer that encodes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planted
import planted_probes
from bertology.corpus.sentence import SemanticFrame, Sentence, Span
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve


def relation(recorded: RecordedInput, word: int) -> int:
    return ("root", "nsubj", "obj").index((recorded.text.segments[0].relations or ())[word])


def curve(recording: Recording, **options: object) -> LayerCurve:
    return planted_probes.run_curve("probes/edge", recording, **options)


def test_a_relation_is_predicted_from_its_layer_on() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), None, None, relation, None)
    data = curve(recording, label="relation", n_seeds=2)
    single, cumulative = data.measures["accuracy"].value, data.measures["cumulative accuracy"].value
    assert single[2] > 0.95 and (single[[0, 1, 3]] < 0.65).all()
    assert (cumulative[:2] < 0.65).all() and (cumulative[2:] > 0.9).all()
    gain = data.measures["accuracy gain of the layer"]
    assert np.isnan(gain.value[0]) and gain.n[0] == 0
    assert gain.value[1:].argmax() == 1 and gain.value[2] > 0.3
    assert data.measures["scalar-mix weight"].value.argmax() == 2
    np.testing.assert_allclose(data.measures["scalar-mix weight"].value.sum(), 1, rtol=1e-5)


def test_a_pair_needs_both_of_its_spans() -> None:
    corpus = planted_probes.make_corpus(120)
    inputs = {recorded.text.words: recorded for recorded in planted.recorded_inputs(corpus)}

    def random_bit(recorded: RecordedInput, word: int) -> int:
        return int(np.random.default_rng([word, *recorded.tokens.ids.tolist()]).integers(2))

    def with_xor_relations(sentence: Sentence) -> Sentence:
        """Relations by whether word and governor have the same bit, which neither word alone determines."""
        recorded = inputs[sentence.words]
        relations = tuple(
            "root" if governor < 0 else ("obj", "nsubj")[random_bit(recorded, word) == random_bit(recorded, governor)]
            for word, governor in enumerate(sentence.governors or ())
        )
        return replace(sentence, relations=relations)

    recording = planted_probes.make_recording(corpus.map_sentences(with_xor_relations), random_bit, noise=0.1)
    linear, bilinear = (
        curve(recording, label="relation", probe=probe, n_seeds=1).measures["accuracy"].value[0]
        for probe in ("linear", "bilinear:8")
    )
    assert linear < 0.7 < 0.93 < bilinear


def test_a_span_is_the_mean_of_its_words() -> None:
    def with_entities(sentence: Sentence) -> Sentence:
        tags = sentence.pos or ()
        return replace(sentence, entities=tuple(Span(i, i + 2, tags[i]) for i in range(0, len(sentence), 2)))

    corpus = planted_probes.make_corpus(80).map_sentences(with_entities)
    data = curve(planted_probes.make_recording(corpus, planted_probes.tag), label="entity", n_seeds=1)
    # The first of two words has the label: only half of the mean encodes it.
    assert 0.55 < data.measures["accuracy"].value[0] < 0.8


def test_only_mixing_weights_are_ranges_over_seeds() -> None:
    recording = planted_probes.make_recording(planted_probes.make_corpus(80), planted_probes.tag)
    data = curve(recording, n_seeds=2)
    ranges = {name for name, estimates in data.measures.items() if estimates.interval == "range"}
    assert ranges == {"scalar-mix weight"}
    assert (data.measures["scalar-mix weight"].n == 2).all()


def test_roles_and_coreference_are_pairs() -> None:
    def annotate(sentence: Sentence) -> Sentence:
        tags = sentence.pos or ()
        frames = (SemanticFrame(0, "", tuple(Span(i, i + 1, tags[i]) for i in range(1, 6))),)
        mentions = tuple(Span(i, i + 1, tags[i]) for i in range(6))
        return replace(sentence, frames=frames, mentions=mentions)

    corpus = planted_probes.make_corpus().map_sentences(annotate)
    recording = planted_probes.make_recording(corpus, planted_probes.tag, noise=0.1)
    assert curve(recording, label="role", n_seeds=1).measures["accuracy"].value[0] > 0.95
    coreference = curve(recording, label="coreference", probe="bilinear:8", n_seeds=1).measures["accuracy"]
    assert coreference.value[0] > 0.9


def test_empty_spans_and_missing_annotations_are_refused() -> None:
    corpus = planted_probes.make_corpus()
    empty = corpus.map_sentences(lambda sentence: replace(sentence, entities=(Span(2, 2, "A"), Span(3, 4, "B"))))
    with pytest.raises(Refusal, match=r"from word 2 to 2 .* empty or outside"):
        curve(planted_probes.make_recording(empty, None), label="entity")
    with pytest.raises(Refusal, match="--label role needs the annotation frames"):
        curve(planted_probes.make_recording(corpus, None), label="role")
