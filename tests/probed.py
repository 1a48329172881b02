"""Planted material for probes: sentences with labels, and hidden states that carry them in known layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import planted
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Sentence, sentence
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.result import Result

WIDTH = 12
NAMES = ("NOUN", "VERB", "ADV")
Told = Callable[[Entry, int], int | None]
"""Which direction of a layer the word at a place of the word axis has, if any."""


def corpus(sentences: int = 60, words: int = 8, *, vocabulary: int = 40, seed: int = 0) -> Corpus:
    """Sentences of random words whose tags, relations and spans are drawn anew for every occurrence."""
    generator = np.random.default_rng(seed)
    made = [_sentence(generator, words, vocabulary, number) for number in range(sentences)]
    return Corpus(tuple(Item((one,), label=one.label) for one in made), name="planted")


def _sentence(generator: np.random.Generator, words: int, vocabulary: int, number: int) -> Sentence:
    drawn = sentence([f"w{i}" for i in generator.integers(vocabulary, size=words)])
    tags = tuple(NAMES[i] for i in generator.integers(len(NAMES), size=words))
    heads = tuple(-1 if word == 0 else int(generator.integers(word)) for word in range(words))
    relations = tuple("root" if head < 0 else ("nsubj", "obj")[generator.integers(2)] for head in heads)
    label = ("short", "long")[int(generator.integers(2))]
    return replace(drawn, pos=tags, heads=heads, relations=relations, label=label, document=f"d{number // 3}")


def by_type(shown: Corpus, seed: int = 1) -> Corpus:
    """The same sentences with one tag a form, drawn at random: what a probe can only memorise."""
    generator = np.random.default_rng(seed)
    tags = {
        form: NAMES[generator.integers(len(NAMES))] for form in sorted({w for s in shown.sentences for w in s.words})
    }
    return shown.map(lambda one: replace(one, pos=tuple(tags[word] for word in one.words)))


def recording(shown: Corpus, *layers: Told | None, noise: float = 0.3, identity: bool = False) -> Recording:
    """A recording in which layer l has a direction for what `layers[l]` tells, and noise; and the form if `identity`.

    Special tokens have noise alone.
    """
    forms: dict[str, Any] = {}

    def hidden(entry: Entry) -> planted.Floats:
        generator = np.random.default_rng(entry.pieces.ids.tolist())
        width = WIDTH * (2 if identity else 1)
        states = noise * generator.normal(size=(len(layers), len(entry.pieces), width))
        for piece, word in enumerate(entry.pieces.word.tolist()):
            if word >= 0:
                form = entry.input.words[word]
                number = int(form.removeprefix("w"))
                vector = forms.setdefault(form, np.random.default_rng(number).normal(size=WIDTH))
                for layer, told in enumerate(layers):
                    direction = None if told is None else told(entry, word)
                    if direction is not None:
                        states[layer, piece, direction] += 2
                    if identity:
                        states[layer, piece, WIDTH:] += vector
        return states

    return planted.recording_of(shown, [[planted.uniform]] * (len(layers) - 1 or 1), hidden)


def tag(entry: Entry, word: int) -> int | None:
    """The place of the word's tag among the names; none for another tag."""
    name = (entry.input.parts[0].pos or ())[word]
    return NAMES.index(name) if name in NAMES else None


def result(name: str, recorded: Recording, **options: Any) -> Result:
    return run(registry.get(name), Subject(recording=recorded), options)
