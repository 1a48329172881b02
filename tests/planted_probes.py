"""Planted data for probes: sentences with labels, and hidden states that encode them in known layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import planted
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import Array, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.encoder.token_batch import RecordedInput
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve, Shape

WIDTH = 12
TAGS = ("NOUN", "VERB", "ADV")
EncodedDimension = Callable[[RecordedInput, int], int | None]
"""The dimension of a layer in which a word has a large value, if any."""


def make_corpus(n_sentences: int = 60, n_words: int = 8, *, vocabulary: int = 40, seed: int = 0) -> Corpus:
    """Sentences of random words with random tags, relations and labels."""
    generator = np.random.default_rng(seed)
    sentences = [_sentence(generator, n_words, vocabulary, number) for number in range(n_sentences)]
    return Corpus(tuple(Example((sentence,), label=sentence.label) for sentence in sentences), name="planted")


def _sentence(generator: np.random.Generator, n_words: int, vocabulary: int, number: int) -> Sentence:
    sentence = sentence_from_words([f"w{i}" for i in generator.integers(vocabulary, size=n_words)])
    tags = tuple(TAGS[i] for i in generator.integers(len(TAGS), size=n_words))
    governors = tuple(-1 if word == 0 else int(generator.integers(word)) for word in range(n_words))
    relations = tuple("root" if governor < 0 else ("nsubj", "obj")[generator.integers(2)] for governor in governors)
    label = ("short", "long")[int(generator.integers(2))]
    document = f"d{number // 3}"
    return replace(sentence, pos=tags, governors=governors, relations=relations, label=label, document=document)


def with_tags_by_form(corpus: Corpus, seed: int = 1) -> Corpus:
    """The same sentences with one random tag per word form, which a probe can only memorise."""
    generator = np.random.default_rng(seed)
    forms = sorted({word for sentence in corpus.sentences for word in sentence.words})
    tags = {form: TAGS[generator.integers(len(TAGS))] for form in forms}
    return corpus.map_sentences(lambda sentence: replace(sentence, pos=tuple(tags[word] for word in sentence.words)))


def make_recording(
    corpus: Corpus, *layers: EncodedDimension | None, noise: float = 0.3, encode_forms: bool = False
) -> Recording:
    """A recording whose layer l encodes `layers[l]` in noise, and with `encode_forms` a vector per word form.

    Special tokens have noise only.
    """
    form_vectors: dict[str, Array] = {}

    def hidden(recorded: RecordedInput) -> FloatArray:
        generator = np.random.default_rng(recorded.tokens.ids.tolist())
        width = WIDTH * (2 if encode_forms else 1)
        states = noise * generator.normal(size=(len(layers), len(recorded.tokens), width))
        for position, word in enumerate(recorded.tokens.word_ids.tolist()):
            if word >= 0:
                form = recorded.text.words[word]
                form_seed = int(form.removeprefix("w"))
                vector = form_vectors.setdefault(form, np.random.default_rng(form_seed).normal(size=WIDTH))
                for layer, encoded in enumerate(layers):
                    dimension = None if encoded is None else encoded(recorded, word)
                    if dimension is not None:
                        states[layer, position, dimension] += 2
                    if encode_forms:
                        states[layer, position, WIDTH:] += vector
        return states

    return planted.make_recording(corpus, [[planted.uniform_head]] * (len(layers) - 1 or 1), hidden)


def tag(recorded: RecordedInput, word: int) -> int | None:
    """The index of the word's tag."""
    name = (recorded.text.segments[0].pos or ())[word]
    return TAGS.index(name) if name in TAGS else None


def run(name: str, recording: Recording, **options: Any) -> Shape:
    """The data of an analysis of a recording."""
    return run_analysis(registry.get(name), RunInputs(recording=recording), options).data


def run_curve(name: str, recording: Recording, **options: Any) -> LayerCurve:
    """The layer curve of an analysis of a recording."""
    data = run(name, recording, **options)
    assert isinstance(data, LayerCurve)
    return data
