"""Planted senses: sentences with ambiguous words, and hidden states whose senses are separated in known layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import planted
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.encoder.token_batch import RecordedInput
from bertology.recording.recording import Recording
from bertology.recording.sites import resolve_sites
from bertology.results.result import Result

WIDTH = 12
N_FILLERS = 30
SenseDirection = Callable[[str], int | None]
"""The dimension along which a sense is shifted in a layer; None: not at all."""


def corpus(
    lemmas: tuple[str, ...] = ("bank", "plant"),
    n_sentences: int = 24,
    *,
    first_sense: float = 0.5,
    length: int = 6,
    seed: int = 0,
) -> Corpus:
    """`n_sentences` per lemma with one ambiguous word at a random position; two sentences make a document.

    `first_sense` is the proportion of its first sense.
    """
    generator = np.random.default_rng(seed)
    examples: list[Example] = []
    for lemma in lemmas:
        for number in range(n_sentences):
            words = [f"w{i}" for i in generator.integers(N_FILLERS, size=length)]
            position = int(generator.integers(length))
            words[position] = lemma
            sense = f"{lemma}%{0 if number < first_sense * n_sentences else 1}"
            senses = tuple(sense if word == position else None for word in range(length))
            sentence = replace(sentence_from_words(words), senses=senses, pos=("NOUN",) * length, lemmas=tuple(words))
            examples.append(Example((replace(sentence, document=f"{lemma}{number // 2}"),)))
    return Corpus(tuple(examples), name="planted")


def sense_direction(sense: str) -> int | None:
    """The first sense of every word along dimension 0, the second along dimension 1."""
    return int(sense.partition("%")[2])


def recording(corpus: Corpus, *layers: SenseDirection | None, noise: float = 0.3) -> Recording:
    """A recording with noise in every layer, and senses shifted in layer l as `layers[l]` says."""

    def hidden(recorded_input: RecordedInput) -> planted.FloatArray:
        generator = np.random.default_rng(recorded_input.tokens.ids.tolist())
        states = noise * generator.normal(size=(len(layers), len(recorded_input.tokens), WIDTH))
        segments = recorded_input.text.segments
        senses = [sense for segment in segments for sense in segment.senses or (None,) * len(segment)]
        for token, word in enumerate(recorded_input.tokens.word_ids.tolist()):
            sense = senses[word] if word >= 0 else None
            for layer, direction_of in enumerate(layers):
                direction = direction_of(sense) if direction_of is not None and sense is not None else None
                if direction is not None:
                    states[layer, token, direction] += 2
        return states

    recorded = planted.make_recording(corpus, [[planted.uniform_head]] * (len(layers) - 1 or 1), hidden)
    return recorded.with_sites(resolve_sites(["hidden.words"]))


def sentences_with(corpus: Corpus, *lemmas: str) -> Corpus:
    """The examples in which one of these lemmas is annotated with a sense."""

    def has_lemma(sentence: Sentence) -> bool:
        pairs = zip(sentence.lemmas or (), sentence.senses or (), strict=False)
        return any(sense and lemma in lemmas for lemma, sense in pairs)

    return replace(corpus, examples=tuple(example for example in corpus if any(map(has_lemma, example.segments))))


def run(name: str, recording: Recording, **options: Any) -> Result:
    return run_analysis(registry.get(name), RunInputs(recording=recording), options)
