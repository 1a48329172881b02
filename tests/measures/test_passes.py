"""Which inputs are drawn for analyses that run the model many times."""

from __future__ import annotations

import planted
from bertology.corpus.corpus import Corpus
from bertology.encoder.load import load
from bertology.measures.passes import drawn, frames_of
from bertology.recording.recorder import record

CORPUS = planted.corpus_of(*(f"Word number {n} of many ." for n in range(40)))


def _texts(corpus: Corpus, count: int, seed: int) -> set[str]:
    recording = record(load("tiny"), corpus, [])
    return {recording.entries[place].input.parts[0].text for place in drawn(recording, count, seed)}


def test_as_many_as_asked_for_whatever_their_order_and_others_by_another_seed() -> None:
    first = _texts(CORPUS, 10, 0)
    assert len(first) == 10
    assert first == _texts(CORPUS[::-1], 10, 0) != _texts(CORPUS, 10, 1)
    assert len(_texts(CORPUS, 0, 0)) == len(_texts(CORPUS, 99, 0)) == 40


def test_frames_hold_each_drawn_entry_once_under_its_place() -> None:
    encoder = load("tiny")
    recording = record(encoder, CORPUS, [])
    seen = [place for places, _ in frames_of(recording, encoder, sentences=7, seed=3) for place in places]
    assert sorted(seen) == drawn(recording, 7, 3)
    for places, frame in frames_of(recording, encoder, sentences=7, seed=3):
        assert [entry.item for entry in frame.entries] == places
