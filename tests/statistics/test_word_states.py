"""Hidden states of words: the mean over tokens, equal in the pass and from recorded token states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.recording.sites import RAW_SITES

WORD_SITE = RAW_SITES["hidden.words"]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load("tiny")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return as_corpus(["Unbelievably long words, torn apart!", "One.", "the cat sat on an extraordinary windowsill"])


def test_a_word_is_the_mean_of_its_tokens(encoder: Encoder, corpus: Corpus) -> None:
    recording = record(encoder, corpus, ["hidden", "hidden.words"])
    word_ids = [recorded.tokens.word_ids for recorded in recording.inputs]
    assert max(np.bincount(ids[ids >= 0]).max() for ids in word_ids) > 1
    for recorded, tokens, words in zip(recording.inputs, recording["hidden"], recording["hidden.words"], strict=True):
        assert words.shape == (3, recorded.tokens.n_words, 32)
        for word in range(recorded.tokens.n_words):
            expected = tokens[:, recorded.tokens.word_ids == word].mean(1)
            np.testing.assert_allclose(words[:, word], expected, atol=1e-5)


def test_word_states_can_be_derived_from_token_states(encoder: Encoder, corpus: Corpus) -> None:
    words, tokens = (record(encoder, corpus, [site]) for site in ("hidden.words", "hidden"))
    derived = tokens.with_sites([WORD_SITE])
    assert len(derived["hidden.words"]) == len(corpus)
    for expected, states in zip(words["hidden.words"], derived["hidden.words"], strict=True):
        np.testing.assert_allclose(states, expected, atol=1e-5)
    np.testing.assert_allclose(derived["hidden.words"][1:][0], words["hidden.words"][1], atol=1e-5)


def test_word_states_can_be_stored_in_half_precision(encoder: Encoder, corpus: Corpus) -> None:
    states = record(encoder, corpus, ["hidden.words"], config=RecordingConfig(half_precision=True))["hidden.words"]
    assert {array.dtype for array in states} == {np.dtype(np.float16)}


def test_a_word_without_tokens_is_zero(encoder: Encoder, corpus: Corpus) -> None:
    recording = record(encoder, corpus, ["hidden"])
    first, second, third = recording.inputs
    word_ids = np.where(second.tokens.word_ids == 0, -1, second.tokens.word_ids)
    unaligned = replace(second, tokens=replace(second.tokens, word_ids=word_ids))
    changed = replace(recording, inputs=(first, unaligned, third))
    assert not changed.with_sites([WORD_SITE])["hidden.words"][1][:, 0].any()


def test_static_vectors_have_word_states(corpus: Corpus) -> None:
    states = record(load("static:tiny"), corpus, ["hidden.words"])["hidden.words"]
    assert [array.shape[1] for array in states] == [len(example.segments[0]) for example in corpus]
