from __future__ import annotations

import numpy as np
import pytest

import bertology
from bertology.analyses.contextual_neighbours import NeighbourIndex
from bertology.encoder.token_batch import RecordedInput
from planted import make_corpus, make_recording, uniform_head


def test_the_nearest_words_are_those_of_all_cosines() -> None:
    recording = bertology.record("tiny", bertology.read("english", limit=20), ["hidden.words"])
    index = NeighbourIndex(recording)
    states = [np.asarray(recording["hidden.words"][i][1], np.float64) for i in range(len(recording.inputs))]
    query = states[4][2]
    cosines = [
        (float(row @ query / np.linalg.norm(row) / np.linalg.norm(query)), number, word)
        for number, rows in enumerate(states)
        for word, row in enumerate(rows)
    ]
    expected = sorted(cosines, reverse=True)[:5]
    found = index.nearest(query, 1, 5)
    assert [(n.input_index, n.word_index) for n in found.neighbours] == [entry[1:] for entry in expected]
    np.testing.assert_allclose([n.cosine for n in found.neighbours], [entry[0] for entry in expected], atol=1e-5)
    assert found.n == len(cosines)
    everything = np.concatenate(states)
    everything /= np.linalg.norm(everything, axis=1, keepdims=True)
    gram = everything @ everything.T
    mean = (gram.sum() - len(gram)) / (len(gram) * (len(gram) - 1))
    assert found.chance == pytest.approx(mean, abs=0.03)


def test_planted_states_are_found() -> None:
    directions = {"sun": [1.0, 0.0], "moon": [0.9, 0.1], "car": [0.0, 1.0]}

    def hidden(recorded: RecordedInput) -> np.ndarray:
        words = [directions.get(token, [-1.0, -1.0]) for token in recorded.tokens.tokens]
        return np.array([words, words])

    corpus = make_corpus("the sun", "the moon", "a car")
    recording = make_recording(corpus, [[uniform_head]], hidden).with_sites(())
    from dataclasses import replace

    words = [np.asarray(a)[:, 1:-1] for a in recording["hidden"]]
    index = NeighbourIndex(replace(recording, sites={"hidden.words": words}))
    nearest = index.nearest(np.array([1.0, 0.0]), 1, 2).neighbours
    assert [(n.input_index, n.word_index) for n in nearest] == [(0, 1), (1, 1)]
