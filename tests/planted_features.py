"""Planted data for frozen features: texts whose labels follow known rules, and vectors with or without the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bertology.arrays import Array
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import Span, sentence_from_words

MARKERS = ("left", "right")
TARGETS = tuple(f"t{number}" for number in range(6))
FILLERS = tuple(f"f{number}" for number in range(12))
WORDS = (*MARKERS, *TARGETS, *FILLERS, "good", "bad")


def entities(*, ambiguous: bool, count: int = 120, seed: int = 0) -> Corpus:
    """Targets are entities; their type is the marker before them if `ambiguous`, else it follows from the word."""
    generator = np.random.default_rng(seed)
    examples: list[Example] = []
    for _ in range(count):
        words: list[str] = []
        spans: list[Span] = []
        for _ in range(3):
            marker, target, filler = (str(generator.choice(pool)) for pool in (MARKERS, TARGETS, FILLERS))
            words += [filler, marker, target]
            spans.append(Span(len(words) - 1, len(words), (marker if ambiguous else type_of(target)).upper()))
        examples.append(Example((replace(sentence_from_words(words), entities=tuple(spans)),)))
    return Corpus(tuple(examples), name="planted")


def type_of(target: str) -> str:
    """`left` for even targets, `right` for odd ones."""
    return MARKERS[int(target[1:]) % 2]


def sentiments(*, shuffled: bool = False, count: int = 160, seed: int = 0) -> Corpus:
    """Texts labelled by the word `good` or `bad` in them, or at random if `shuffled`."""
    generator = np.random.default_rng(seed)
    examples: list[Example] = []
    for number in range(count):
        label = ("bad", "good")[number % 2]
        words = [str(word) for word in generator.choice(FILLERS, 6)]
        words[int(generator.integers(6))] = label
        gold = ("bad", "good")[int(generator.integers(2))] if shuffled else label
        examples.append(Example((sentence_from_words([*words, f"n{number}"]),), label=gold))
    return Corpus(tuple(examples), name="planted")


def pairs(count: int = 160, seed: int = 0) -> Corpus:
    """Pairs labelled `same` if both texts have the same target, else `different`."""
    generator = np.random.default_rng(seed)
    examples: list[Example] = []
    for number in range(count):
        first, second = (str(word) for word in generator.choice(TARGETS, 2, replace=False))
        label = ("different", "same")[number % 2]
        texts = ([first, f"n{number}"], [first if number % 2 else second, str(generator.choice(FILLERS))])
        examples.append(Example(tuple(sentence_from_words(text) for text in texts), "pair", label=label))
    return Corpus(tuple(examples), name="planted")


def identity(words: Sequence[str]) -> Array:
    """A one-hot vector for each word, whatever its context; zeros for unknown words."""
    vectors = np.zeros((len(words), len(WORDS)))
    for row, word in enumerate(words):
        if word in WORDS:
            vectors[row, WORDS.index(word)] = 1
    return vectors


def context(words: Sequence[str]) -> Array:
    """The one-hot vectors of the word and of the word before."""
    vectors = identity(words)
    before = np.concatenate([np.zeros((1, vectors.shape[1])), vectors[:-1]])
    return np.concatenate([vectors, before], 1)


def gold_labels(words: Sequence[str]) -> Array:
    """The labels of ambiguous `entities` and of `sentiments`, with a little noise."""
    vectors = np.zeros((len(words), 8))
    for row, word in enumerate(words):
        vectors[row] = 0.05 * np.random.default_rng(sum(map(ord, "".join(words))) + row).normal(size=8)
        if word in TARGETS:
            vectors[row, MARKERS.index(words[row - 1])] += 3
        if word in {"good", "bad"}:
            vectors[row, 2 + (word == "good")] += 3
    return vectors


def label_by_word(words: Sequence[str]) -> Array:
    """The label of unambiguous `entities`, the same vector for all words with this label."""
    vectors = np.zeros((len(words), 3))
    for row, word in enumerate(words):
        vectors[row, MARKERS.index(type_of(word)) if word in TARGETS else 2] = 3
    return vectors


def noise(words: Sequence[str]) -> Array:
    """Random vectors."""
    return np.random.default_rng(sum(map(ord, "".join(words)))).normal(size=(len(words), 4))
