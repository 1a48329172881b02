"""Planted trees: hidden states that embed the dependency tree, and treebanks of short sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import planted
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus, corpus_from_sentences
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT, Sentence, sentence_from_words
from bertology.encoder.token_batch import RecordedInput
from bertology.numerics.spanning_trees import tree_depths
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


def sentences_of_all_lengths(count: int, seed: int) -> Corpus:
    """Sentences of 2 to 50 made-up words, mostly short, with random trees: depth grows with length."""
    generator = np.random.default_rng(seed)
    sentences: list[Sentence] = []
    for length in np.clip(generator.lognormal(2.5, 0.8, size=count), 2, 50).astype(int).tolist():
        governors = [ROOT, *(int(generator.integers(max(0, word - 4), word)) for word in range(1, length))]
        sentence = sentence_from_words([f"w{generator.integers(10**6)}" for _ in range(length)])
        relations = ("root", *["dep"] * (length - 1))
        sentences.append(replace(sentence, governors=tuple(governors), relations=relations, pos=("NOUN",) * length))
    return corpus_from_sentences(sentences, name="all lengths")


def wide_states(recorded: RecordedInput, width: int = 384) -> FloatArray:
    """States as wide as those of an encoder, in which the length along one direction is the square root of the depth.

    The rest is common to all words, or to those of a sentence, some of it the more the shorter the sentence is, or
    noise: together ten times as much.
    """
    generator = np.random.default_rng(recorded.tokens.ids.tolist())
    common, short, depth = np.linalg.qr(np.random.default_rng(7).normal(size=(width, 3)))[0].T
    depths = tree_depths(recorded.text.segments[0].governors or ())
    words, sentence = 0.4 * generator.normal(size=(len(depths), width)), 0.25 * generator.normal(size=width)
    shared = 8 * common + 25 / np.sqrt(len(depths)) * short + sentence
    return shared + words + 2 * np.sqrt(depths)[:, None] * depth


def make_recording(corpus: Corpus, *layers: Callable[[RecordedInput], FloatArray]) -> Recording:
    """A recording whose layers have these states of words, and zeros for special tokens."""

    def hidden(recorded: RecordedInput) -> FloatArray:
        of_words = np.stack([layer(recorded) for layer in layers])
        states = np.zeros((len(layers), len(recorded.tokens), of_words.shape[-1]))
        states[:, recorded.tokens.word_ids >= 0] = of_words
        return states

    return planted.make_recording(corpus, [[planted.uniform_head]] * max(1, len(layers) - 1), hidden)
