"""Planted material for frozen features: texts whose labels are known rules, and vectors that carry them or do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Span, sentence

MARKS = ("left", "right")
TARGETS = tuple(f"t{number}" for number in range(6))
FILLERS = tuple(f"f{number}" for number in range(12))
WORDS = (*MARKS, *TARGETS, *FILLERS, "good", "bad")
Vectors = np.ndarray[Any, Any]


def names(*, ambiguous: bool, count: int = 120, seed: int = 0) -> Corpus:
    """Targets are names; which is told by the mark before them where they are ambiguous, else by the word itself."""
    generator = np.random.default_rng(seed)
    items: list[Item] = []
    for _ in range(count):
        words: list[str] = []
        spans: list[Span] = []
        for _ in range(3):
            mark, target, filler = (str(generator.choice(some)) for some in (MARKS, TARGETS, FILLERS))
            words += [filler, mark, target]
            spans.append(Span(len(words) - 1, len(words), (mark if ambiguous else label_of(target)).upper()))
        items.append(Item((replace(sentence(words), entities=tuple(spans)),)))
    return Corpus(tuple(items), name="planted")


def label_of(target: str) -> str:
    """left for even targets, right for odd ones."""
    return MARKS[int(target[1:]) % 2]


def opinions(*, shuffled: bool = False, count: int = 160, seed: int = 0) -> Corpus:
    """Good where there is the word `good`, bad where there is `bad`; or labels drawn at random."""
    generator = np.random.default_rng(seed)
    items: list[Item] = []
    for number in range(count):
        label = ("bad", "good")[number % 2]
        words = [str(word) for word in generator.choice(FILLERS, 6)]
        words[int(generator.integers(6))] = label
        given = ("bad", "good")[int(generator.integers(2))] if shuffled else label
        items.append(Item((sentence([*words, f"n{number}"]),), label=given))
    return Corpus(tuple(items), name="planted")


def pairs(count: int = 160, seed: int = 0) -> Corpus:
    """The same where both texts have one target, different where they do not."""
    generator = np.random.default_rng(seed)
    items: list[Item] = []
    for number in range(count):
        first, second = (str(word) for word in generator.choice(TARGETS, 2, replace=False))
        label = ("different", "same")[number % 2]
        texts = ([first, f"n{number}"], [first if number % 2 else second, str(generator.choice(FILLERS))])
        items.append(Item(tuple(sentence(text) for text in texts), "pair", label=label))
    return Corpus(tuple(items), name="planted")


def identity(words: Sequence[str]) -> Vectors:
    """A direction for each word, whatever is around it; none for other words."""
    found = np.zeros((len(words), len(WORDS)))
    for row, word in enumerate(words):
        if word in WORDS:
            found[row, WORDS.index(word)] = 1
    return found


def context(words: Sequence[str]) -> Vectors:
    """The word before, beside the word itself."""
    own = identity(words)
    before = np.concatenate([np.zeros((1, own.shape[1])), own[:-1]])
    return np.concatenate([own, before], 1)


def told(words: Sequence[str]) -> Vectors:
    """The label of `names` where they are ambiguous, and that of `opinions`, with a little noise."""
    found = np.zeros((len(words), 8))
    for row, word in enumerate(words):
        found[row] = 0.05 * np.random.default_rng(sum(map(ord, "".join(words))) + row).normal(size=8)
        if word in TARGETS:
            found[row, MARKS.index(words[row - 1])] += 3
        if word in {"good", "bad"}:
            found[row, 2 + (word == "good")] += 3
    return found


def sorted_already(words: Sequence[str]) -> Vectors:
    """The label of `names` where they are not ambiguous, alike for all words that have it."""
    found = np.zeros((len(words), 3))
    for row, word in enumerate(words):
        found[row, MARKS.index(label_of(word)) if word in TARGETS else 2] = 3
    return found


def noise(words: Sequence[str]) -> Vectors:
    """Nothing."""
    return np.random.default_rng(sum(map(ord, "".join(words)))).normal(size=(len(words), 4))
