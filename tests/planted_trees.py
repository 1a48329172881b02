"""Planted trees: hidden states that embed the dependency tree, and treebanks of short sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import planted
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT
from bertology.encoder.token_batch import RecordedInput
from bertology.recording.recording import Recording
from bertology.recording.sites import RAW_SITES

SITE = RAW_SITES["hidden.words"]
MAX_WORDS = 12
WIDTH = 16


def short_sentences(count: int = 120) -> Corpus:
    """Sentences with trees of 2 to 12 words."""
    corpus = load_corpus("english", limit=600)
    examples = [example for example in corpus if 2 <= len(example.segments[0]) <= MAX_WORDS]
    return Corpus(tuple(examples[:count]), name="short")


def exact_states(recorded: RecordedInput) -> FloatArray:
    """(word, WIDTH) states in which each word is one step from its governor along its own axis, and the root is 0.

    Squared distances are tree distances, squared norms depths.
    """
    governors = recorded.text.segments[0].governors or ()
    states = np.zeros((len(governors), WIDTH))
    for word in range(len(governors)):
        ancestor = word
        while governors[ancestor] != ROOT:
            states[word, ancestor] += 1
            ancestor = governors[ancestor]
    return states


def mapped_states(recorded: RecordedInput) -> FloatArray:
    """The exact states after a fixed invertible linear map."""
    linear_map = np.eye(WIDTH) + 0.3 * np.random.default_rng(7).normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH)
    return exact_states(recorded) @ linear_map


def noise_states(recorded: RecordedInput) -> FloatArray:
    """Random states that depend only on the words of the sentence."""
    return np.random.default_rng(recorded.tokens.ids.tolist()).normal(size=(recorded.tokens.n_words, WIDTH))


def make_recording(corpus: Corpus, *layers: Callable[[RecordedInput], FloatArray]) -> Recording:
    """A recording whose layers have these states of words, and zeros for special tokens."""

    def hidden(recorded: RecordedInput) -> FloatArray:
        states = np.zeros((len(layers), len(recorded.tokens), WIDTH))
        states[:, recorded.tokens.word_ids >= 0] = np.stack([layer(recorded) for layer in layers])
        return states

    return planted.make_recording(corpus, [[planted.uniform_head]] * max(1, len(layers) - 1), hidden)
