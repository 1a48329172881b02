"""Hidden states of words: the mean over pieces, the same on the device and from a recording of pieces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bertology.corpus.corpus import Corpus, read_text
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.recording.policy import Policy
from bertology.recording.recorder import record
from bertology.recording.sites import RAW

WORDS = RAW["hidden.words"]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return load("tiny")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return read_text("Unbelievably long words, torn apart!", "One.", "the cat sat on an extraordinary windowsill")


def test_a_word_is_the_mean_of_its_pieces(encoder: Encoder, corpus: Corpus) -> None:
    found = record(encoder, corpus, ["hidden", "hidden.words"])
    assert max(np.bincount(entry.pieces.word[entry.pieces.word >= 0]).max() for entry in found.entries) > 1
    for entry, pieces, words in zip(found.entries, found["hidden"], found["hidden.words"], strict=True):
        assert words.shape == (3, entry.pieces.words, 32)
        for word in range(entry.pieces.words):
            np.testing.assert_allclose(words[:, word], pieces[:, entry.pieces.word == word].mean(1), atol=1e-5)


def test_it_can_be_had_from_a_recording_of_pieces(encoder: Encoder, corpus: Corpus) -> None:
    kept, made = (record(encoder, corpus, [site]) for site in ("hidden.words", "hidden"))
    derived = made.with_derived([WORDS])
    assert len(derived["hidden.words"]) == len(corpus)
    for expected, found in zip(kept["hidden.words"], derived["hidden.words"], strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(derived["hidden.words"][1:][0], kept["hidden.words"][1], atol=1e-5)


def test_half_precision_halves_what_is_kept(encoder: Encoder, corpus: Corpus) -> None:
    half = record(encoder, corpus, ["hidden.words"], policy=Policy(half=True))["hidden.words"]
    assert {array.dtype for array in half} == {np.dtype(np.float16)}


def test_a_word_without_pieces_is_zero(encoder: Encoder, corpus: Corpus) -> None:
    made = record(encoder, corpus, ["hidden"])
    entry = made.entries[1]
    gone = replace(entry.pieces, word=np.where(entry.pieces.word == 0, -1, entry.pieces.word))
    vanished = replace(made, entries=(made.entries[0], replace(entry, pieces=gone), made.entries[2]))
    assert not vanished.with_derived([WORDS])["hidden.words"][1][:, 0].any()


def test_static_vectors_have_it_too(corpus: Corpus) -> None:
    found = record(load("static:tiny"), corpus, ["hidden.words"])["hidden.words"]
    assert [array.shape[1] for array in found] == [len(item.parts[0]) for item in corpus]
