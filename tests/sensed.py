"""Planted senses: sentences with ambiguous words, and hidden states in which the senses lie apart in known layers."""

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
from bertology.recording.sites import resolve
from bertology.results.result import Result

WIDTH = 12
FILLERS = 30
Apart = Callable[[str], int | None]
"""Which direction a sense has in a layer, if any."""


def corpus(
    words: tuple[str, ...] = ("bank", "plant"), each: int = 24, *, common: float = 0.5, length: int = 6, seed: int = 0
) -> Corpus:
    """Sentences with one ambiguous word at a random place; its first sense has the share `common`.

    Two sentences make a document.
    """
    generator = np.random.default_rng(seed)
    items: list[Item] = []
    for lemma in words:
        for number in range(each):
            filled = [f"w{i}" for i in generator.integers(FILLERS, size=length)]
            place = int(generator.integers(length))
            filled[place] = lemma
            sense = f"{lemma}%{0 if number < common * each else 1}"
            senses = tuple(sense if word == place else None for word in range(length))
            made = replace(sentence(filled), senses=senses, pos=("NOUN",) * length, lemmas=tuple(filled))
            items.append(Item((replace(made, document=f"{lemma}{number // 2}"),)))
    return Corpus(tuple(items), name="planted")


def first(sense: str) -> int | None:
    """The senses of every word lie along the first two directions."""
    return int(sense.partition("%")[2])


def recording(shown: Corpus, *layers: Apart | None, noise: float = 0.3) -> Recording:
    """A recording in which layer l has a direction for each sense as `layers[l]` tells, and noise."""

    def hidden(entry: Entry) -> planted.Floats:
        generator = np.random.default_rng(entry.pieces.ids.tolist())
        states = noise * generator.normal(size=(len(layers), len(entry.pieces), WIDTH))
        senses = [sense for part in entry.input.parts for sense in part.senses or (None,) * len(part)]
        for piece, word in enumerate(entry.pieces.word.tolist()):
            for layer, apart in enumerate(layers):
                sense = senses[word] if word >= 0 else None
                direction = apart(sense) if apart is not None and sense is not None else None
                if direction is not None:
                    states[layer, piece, direction] += 2
        return states

    made = planted.recording_of(shown, [[planted.uniform]] * (len(layers) - 1 or 1), hidden)
    return made.with_derived(resolve(["hidden.words"]))


def only_with(shown: Corpus, *lemmas: str) -> Corpus:
    """The sentences in which one of these words has a sense."""

    def has(own: Sentence) -> bool:
        pairs = zip(own.lemmas or (), own.senses or (), strict=False)
        return any(sense and lemma in lemmas for lemma, sense in pairs)

    return replace(shown, items=tuple(item for item in shown if any(map(has, item.parts))))


def result(name: str, recorded: Recording, **options: Any) -> Result:
    return run(registry.get(name), Subject(recording=recorded), options)
