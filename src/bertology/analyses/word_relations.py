"""Identical, related and predictive words of an input, by definitions instead of inspection.

Two words are **related** if they have the same lower-cased lemma, or the same form if lemmas are not annotated; with
word vectors also if the cosine of their vectors is at least `min_cosine`. Words without a letter or digit are not
related to any word. Two words are **predictive** of each other if they belong to one expression by annotation (they are
connected by the relations fixed, flat, compound, goeswith or their subtypes, directly or over other words of the
expression), or are neighbours and a collocation of a given corpus.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, combinations, compress, pairwise
from typing import Annotated

import numpy as np

from bertology.arrays import Array, FloatArray, IntArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.encoder.static import word_vectors
from bertology.encoder.token_batch import RecordedInput
from bertology.number_ranges import COSINE
from bertology.numerics.collocations import collocations

WordPairs = IntArray
"""(pair, 2) word indices of an input."""
NO_PAIRS: WordPairs = np.empty((0, 2), np.int64)

MULTIWORD_RELATIONS = ("fixed", "flat", "compound", "goeswith")


@dataclass(frozen=True)
class WordRelations:
    """The definition of related words; an option group."""

    word_vectors: Annotated[
        str, "Word vectors that define related words: glove:PATH or static:MODEL; empty: identical lemmas only."
    ] = ""
    min_cosine: Annotated[
        float, COSINE, "Minimum cosine between two word vectors for the words to count as related."
    ] = 0.6
    collocation_corpus: Annotated[
        str,
        "Corpus whose collocations (at least 5 occurrences, normalised PMI at least 0.5) count as predictive words; "
        "empty: none.",
    ] = ""

    @property
    def fingerprint(self) -> str:
        """A hash of the contents of both resources; empty without resources."""
        if not self.word_vectors and not self.collocation_corpus:
            return ""
        table = f"{_load_vectors(self.word_vectors).fingerprint} {self.min_cosine}" if self.word_vectors else ""
        corpus = _load_corpus(self.collocation_corpus).fingerprint if self.collocation_corpus else ""
        return hashlib.sha256(f"{table}/{corpus}".encode()).hexdigest()[:12]

    def lemma_ids(self, recorded_inputs: Sequence[RecordedInput]) -> IntArray:
        """(word,) an index for each lemma, or form, of all inputs; -1 for words without a letter or digit."""
        # Strings are looked up once for each distinct one: batches have tens of thousands of words.
        segments = [segment for recorded_input in recorded_inputs for segment in recorded_input.text.segments]
        words = list(chain.from_iterable(segment.words for segment in segments))
        keys = words
        if any(segment.lemmas is not None for segment in segments):
            keys = list(chain.from_iterable(s.words if s.lemmas is None else s.lemmas for s in segments))
        lowered = {key: key.lower() for key in set(keys)}
        numbers = {key: number for number, key in enumerate(dict.fromkeys(lowered.values()))}
        ids = {key: numbers[lower] for key, lower in lowered.items()}
        is_readable = {word: any(map(str.isalnum, word.lower())) for word in set(words)}
        if keys is words:
            return _look_up({word: ids[word] if flag else -1 for word, flag in is_readable.items()}, words)
        return np.where(_look_up(is_readable, words), _look_up(ids, keys), -1)

    def similar_pairs(self, recorded_input: RecordedInput) -> WordPairs:
        """Pairs of words with a letter or digit whose vectors are similar, including each word with itself."""
        if not self.word_vectors:
            return NO_PAIRS
        alphanumeric = self.lemma_ids([recorded_input]) >= 0
        similar = _cosines(recorded_input, self.word_vectors) >= self.min_cosine
        return np.argwhere(similar & alphanumeric[:, None] & alphanumeric[None, :])

    def predictive_pairs(self, recorded_input: RecordedInput) -> WordPairs:
        """Pairs of different words of one expression or collocation, in both orders."""
        pairs = [pair for expression in _expressions(recorded_input) for pair in combinations(expression, 2)]
        if self.collocation_corpus:
            collocated = _load_collocations(self.collocation_corpus)
            segments, forms = segment_of_words(recorded_input), [word.lower() for word in recorded_input.text.words]
            pairs += [
                (word, word + 1)
                for word, bigram in enumerate(pairwise(forms))
                if segments[word] == segments[word + 1] and bigram in collocated
            ]
        if not pairs:
            return NO_PAIRS
        return np.array(pairs + [(second, first) for first, second in pairs], np.int64).reshape(-1, 2)


def _expressions(recorded_input: RecordedInput) -> list[list[int]]:
    """The words of each expression: those that multiword relations connect, directly or over other words.

    In *New York City*, annotated as flat, both last words depend on the first and are siblings.
    """
    governors: dict[int, int] = {}
    first_word = 0
    for segment in recorded_input.text.segments:
        if segment.relations is not None and segment.governors is not None:
            for word in compress(range(len(segment)), map(_is_multiword, segment.relations)):
                if segment.governors[word] != ROOT:
                    governors[first_word + word] = first_word + segment.governors[word]
        first_word += len(segment)
    by_top: dict[int, set[int]] = {}
    for word in governors:
        top, visited = word, {word}
        while top in governors and governors[top] not in visited:
            top = governors[top]
            visited.add(top)
        by_top.setdefault(top, {top}).add(word)
    return [sorted(words) for words in by_top.values()]


@lru_cache(maxsize=2**12)
def _is_multiword(relation: str | None) -> bool:
    return (relation or "").split(":")[0] in MULTIWORD_RELATIONS


def _look_up(table: Mapping[str, int], texts: Sequence[str]) -> IntArray:
    return np.fromiter(map(table.__getitem__, texts), np.int64, len(texts))


def segment_of_words(recorded_input: RecordedInput) -> Array:
    """(word,) the index of the segment that each word belongs to."""
    segments = recorded_input.text.segments
    return np.repeat(np.arange(len(segments)), [len(segment) for segment in segments])


@cache
def _load_vectors(name: str) -> Encoder:
    return load(name)


@cache
def _load_corpus(name: str) -> Corpus:
    return load_corpus(name)


@cache
def _load_collocations(name: str) -> frozenset[tuple[str, str]]:
    return collocations([word.lower() for word in sentence.words] for sentence in _load_corpus(name).sentences)


def _cosines(recorded_input: RecordedInput, vectors_name: str) -> FloatArray:
    """(word, word) cosines of word vectors (means over tokens); 0 for words without a vector."""
    (means,) = word_vectors(_load_vectors(vectors_name), [recorded_input])
    norms = np.linalg.norm(means, axis=1, keepdims=True)
    normalised = np.divide(means, norms, out=np.zeros_like(means), where=norms > 0)
    return normalised @ normalised.T
