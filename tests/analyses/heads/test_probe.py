"""Planted arcs are found by the probe, noise gives no more than baselines; training and test are kept apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses import registry
from bertology.analyses.heads.probe import probe
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.sentence import ROOT
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.division import training_part
from bertology.measures.heads.arc_lessons import EDGES, MAPS, gold_heads, scored
from bertology.measures.word_vectors import word_vectors
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.shapes import Table

CORPUS = corpus_named("english", limit=90)
OPTIONS = {"seeds": 2, "epochs": 15, "hidden": 8, "words": "random-vectors:8"}


def to_head(entry: planted.Entry) -> planted.Floats:
    """Every word looks at its head, a root at [CLS], a little at everything."""
    n = len(entry.pieces)
    weights = np.full((n, n), 0.05 / n)
    start = 1
    for part in entry.input.parts:
        for word, head in enumerate(part.heads or ()):
            weights[start + word, 0 if head == ROOT else start + head] += 0.95
        start += len(part) + 1
    return weights / weights.sum(1, keepdims=True)


def measured(*heads: planted.HeadMap, **options: Any) -> Table:
    recording = planted.recording_of(CORPUS, [list(heads)])
    found = run(probe, Subject(recording=recording), {**OPTIONS, **options}).data
    assert isinstance(found, Table)
    return found


def uas(table: Table, row: str = "attention only", baseline: str = "") -> float:
    measures = table.baselines[baseline] if baseline else table.measures
    return float(measures["UAS"].value[table.rows_named.index(row)])


def test_a_planted_head_gives_the_whole_tree() -> None:
    table = measured(planted.noise(1), to_head, epochs=40)  # many weights, few sentences
    assert uas(table) > 0.99
    assert uas(table, "attention and words") > 0.95
    assert uas(table, baseline="right-branching") < 0.5
    assert uas(table, baseline="distances and words") < 0.7


def test_a_head_from_heads_to_dependents_is_found_too() -> None:
    def to_dependents(entry: planted.Entry) -> planted.Floats:
        turned = to_head(entry).T + 1e-6
        return turned / turned.sum(1, keepdims=True)

    assert uas(measured(planted.noise(1), to_dependents)) > 0.9  # shared out among dependents, so less sure


def test_noise_gives_no_tree() -> None:
    table = measured(planted.noise(1), planted.noise(2))
    assert uas(table) < 0.15 < uas(table, baseline="right-branching")
    assert uas(measured(planted.uniform)) < 0.15


def test_a_head_that_looks_ahead_is_right_branching() -> None:
    table = measured(planted.looking_at(1))
    assert uas(table) == pytest.approx(uas(table, baseline="right-branching"), abs=0.1)


def test_a_limit_trains_on_fewer_sentences_and_says_so() -> None:
    table = measured(to_head, train_limit=40)
    assert uas(table) > 0.95
    assert "of 40 sentences" in table.notes["attention only"] and "not drawn" in table.notes["attention only"]
    assert "not drawn" not in measured(to_head, epochs=1).notes["attention only"]


def test_punctuation_does_not_count_and_roots_do() -> None:
    entry = planted.entries_of(CORPUS)[0]
    (sentence,) = entry.input.parts
    assert sentence.relations is not None and sentence.heads is not None
    assert "punct" in sentence.relations
    for word, (relation, head) in enumerate(zip(sentence.relations, sentence.heads, strict=True)):
        assert scored(entry)[word] == (relation != "punct")
        assert gold_heads(entry)[word] == head + 1
    table = measured(planted.uniform)
    chosen = training_part(planted.entries_of(CORPUS), 0.7)
    tested = [item.parts[0] for item, train in zip(CORPUS, chosen, strict=True) if not train]
    assert table.measures["UAS"].n[0] == len(tested)
    following = sum(
        head == word + 1
        for s in tested
        for word, (head, relation) in enumerate(zip(s.heads or (), s.relations or (), strict=True))
        if relation != "punct"
    )
    words = sum(relation != "punct" for s in tested for relation in s.relations or ())
    assert uas(table, baseline="right-branching") == pytest.approx(following / words)


def test_words_without_pieces_do_not_count() -> None:
    entry = planted.entries_of(CORPUS)[0]
    gone = replace(entry.pieces, word=np.where(entry.pieces.word == 0, -1, entry.pieces.word).astype(np.int32))
    found = gold_heads(replace(entry, pieces=gone))
    assert found[0] == -1
    assert all(found[word] == -1 for word, head in enumerate(entry.input.parts[0].heads or ()) if head == 0)


def test_documents_are_not_split_and_order_does_not_matter() -> None:
    entries = planted.entries_of(CORPUS)
    chosen = training_part(entries, 0.5)
    documents = [entry.input.parts[0].document for entry in entries]
    assert len(set(documents)) > 2
    trained, tested = ({d for d, c in zip(documents, chosen, strict=True) if c == side} for side in (True, False))
    assert trained and tested and not trained & tested
    np.testing.assert_array_equal(training_part(entries[::-1], 0.5)[::-1], chosen)
    assert 0.5 <= chosen.mean() < 0.9
    loose = planted.entries_of(planted.corpus_of("a b", "a b", "c d", "e f"))
    chosen = training_part(loose, 0.5)
    assert chosen[0] == chosen[1] and 0 < chosen.sum() < 4


def test_maps_are_half_precision_and_whole() -> None:
    encoder, corpus = load("tiny"), CORPUS[:4]
    recording = record(encoder, corpus, (MAPS, EDGES))
    for entry, maps, edges in zip(recording.entries, recording[MAPS], recording[EDGES], strict=True):
        assert maps.dtype == edges.dtype == np.float16
        assert maps.shape == (encoder.layers, encoder.heads, entry.pieces.words, entry.pieces.words)
        total = maps.astype(np.float64).sum(-1) + edges.astype(np.float64)[..., :2].sum(-1)
        np.testing.assert_allclose(total, 1, atol=5e-3)  # a word's row over words, [CLS] and [SEP]
    raw = planted.recording_of(corpus, [[planted.noise(3)]])
    derived = raw.with_derived([EDGES])
    maps = np.asarray(raw["attention"][0][0, 0])
    expected = np.stack([maps[1:-1, 0], maps[1:-1, -1], maps[0, 1:-1], maps[-1, 1:-1]], -1)
    np.testing.assert_allclose(derived[EDGES][0][0, 0], expected, atol=1e-3)


def test_word_vectors_are_means_over_pieces() -> None:
    table = load("static:tiny")
    corpus = planted.corpus_of("unbelievable cats sat")
    (entry,) = planted.entries_of(corpus)
    (pieces,) = table.tokenise([entry.input])
    states = record(table, corpus, ("hidden",))["hidden"][0][0]
    (found,) = word_vectors(table, [entry])
    for word in range(3):
        np.testing.assert_allclose(found[word], states[pieces.word == word].mean(0), rtol=1e-5)


def test_it_trains_on_another_corpus_with_the_model_only() -> None:
    subject = Subject(corpus=CORPUS[:20], encoder=load("tiny"))
    options = {"train": "english", "train_limit": 30, "seeds": 1, "epochs": 1, "hidden": 4}
    table = run(registry.get("heads/probe"), subject, options).data
    assert isinstance(table, Table)
    assert table.measures["UAS"].n[0] == 20
    assert "30 sentences" in table.notes["attention only"] and "static:" in table.notes["attention and words"]
    with pytest.raises(Refusal, match="--train"):
        measured(planted.uniform, train="english")


def test_legacy_changes_only_what_words_enter() -> None:
    plain, legacy = (measured(planted.noise(1), to_head, legacy=value, epochs=3) for value in (False, True))
    assert uas(plain) == uas(legacy)
    assert uas(plain, baseline="distances and words") != uas(legacy, baseline="distances and words")


def test_one_sentence_is_refused() -> None:
    recording: Recording = planted.recording_of(CORPUS[:1], [[planted.uniform]])
    with pytest.raises(Refusal, match="too few sentences"):
        run(probe, Subject(recording=recording), OPTIONS)
