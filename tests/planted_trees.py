"""Planted trees: hidden states in which the dependency tree lies, and treebanks short enough for them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import planted
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.corpus.sentence import ROOT
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.sites import RAW

SITE = RAW["hidden.words"]
LONGEST = 12
WIDTH = 16


def short_sentences(count: int = 120) -> Corpus:
    """Sentences with trees of 2 to 12 words."""
    corpus = corpus_named("english", limit=600)
    kept = [item for item in corpus if 2 <= len(item.parts[0]) <= LONGEST]
    return Corpus(tuple(kept[:count]), name="short")


def embedded(entry: Entry) -> planted.Floats:
    """(word, WIDTH): every word is one step from its head along a direction of its own, the root nowhere.

    Squared distances are tree distances, squared lengths depths.
    """
    heads = entry.input.parts[0].heads or ()
    states = np.zeros((len(heads), WIDTH))
    for word in range(len(heads)):
        above = word
        while heads[above] != ROOT:
            states[word, above] += 1
            above = heads[above]
    return states


def mixed(entry: Entry) -> planted.Floats:
    """The same behind a fixed linear map that can be undone."""
    mixing = np.eye(WIDTH) + 0.3 * np.random.default_rng(7).normal(size=(WIDTH, WIDTH)) / np.sqrt(WIDTH)
    return embedded(entry) @ mixing


def noise(entry: Entry) -> planted.Floats:
    """States that depend on the words of the sentence and on nothing else."""
    return np.random.default_rng(entry.pieces.ids.tolist()).normal(size=(entry.pieces.words, WIDTH))


def recording_of(corpus: Corpus, *layers: Callable[[Entry], planted.Floats]) -> Recording:
    """A recording whose layers have these states of words, and zeros for special tokens."""

    def hidden(entry: Entry) -> planted.Floats:
        states = np.zeros((len(layers), len(entry.pieces), WIDTH))
        states[:, entry.pieces.word >= 0] = np.stack([layer(entry) for layer in layers])
        return states

    return planted.recording_of(corpus, [[planted.uniform]] * max(1, len(layers) - 1), hidden)
