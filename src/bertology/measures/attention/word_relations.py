"""Which words of an input are identical or related, and which predict each other: defined, not eyeballed.

Two words are **related** where their lemmas are the same, lower-cased, or their forms where no lemma is annotated; with
a table of word vectors also where the cosine of their vectors is at least `closeness`. Words without a letter or digit
are related to none. Two words **predict** each other where the annotation makes them one expression (the relations
fixed, flat, compound, goeswith and their subtypes), or where they are neighbours and a collocation of a given corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.word_vectors import word_vectors
from bertology.recording.annotation import word_heads, word_layer
from bertology.recording.entry import Entry

Pairs = NDArray[np.bool_]

ONE_EXPRESSION = ("fixed", "flat", "compound", "goeswith")


@dataclass(frozen=True)
class Relations:
    """What counts as related: `vectors` names a table as `load` does, `collocates` a corpus; empty for neither."""

    vectors: str = ""
    closeness: float = 0.6
    collocates: str = ""

    @property
    def fingerprint(self) -> str:
        """What tells these relations from others, by content; empty for the plain ones."""
        import hashlib

        if not self.vectors and not self.collocates:
            return ""
        table = f"{_table(self.vectors).fingerprint} {self.closeness}" if self.vectors else ""
        corpus = _read(self.collocates).fingerprint if self.collocates else ""
        return hashlib.sha256(f"{table}/{corpus}".encode()).hexdigest()[:12]

    def related(self, entry: Entry) -> Pairs:
        """(word, word) which are identical or related, a word to itself included."""
        forms = [word.lower() for word in entry.input.words]
        lemmas = word_layer(entry, "lemmas")
        keys = [form if lemma is None else lemma.lower() for form, lemma in zip(forms, lemmas, strict=True)]
        spoken = np.array([any(character.isalnum() for character in form) for form in forms], np.bool_)
        numbers = {key: number for number, key in enumerate(keys)}  # numbers are compared much faster than words
        same = np.array([numbers[key] for key in keys])
        found = same[:, None] == same[None, :]
        if self.vectors:
            found = found | (_cosines(entry, self.vectors) >= self.closeness)
        return found & spoken[:, None] & spoken[None, :]

    def predictive(self, entry: Entry) -> Pairs:
        """(word, word) which other words belong to the same expression or collocation."""
        words = [word.lower() for word in entry.input.words]
        found = np.zeros((len(words), len(words)), np.bool_)
        for word, (head, relation) in enumerate(zip(word_heads(entry), word_layer(entry, "relations"), strict=True)):
            if head is not None and head >= 0 and (relation or "").split(":")[0] in ONE_EXPRESSION:
                found[word, head] = found[head, word] = True
        if self.collocates:
            known = _collocations(self.collocates)
            parts = part_of_words(entry)
            for word in range(len(words) - 1):
                if parts[word] == parts[word + 1] and (words[word], words[word + 1]) in known:
                    found[word, word + 1] = found[word + 1, word] = True
        return found


def part_of_words(entry: Entry) -> NDArray[np.intp]:
    """(word,) which part of the input each word stands in."""
    return np.repeat(np.arange(len(entry.input.parts)), [len(part) for part in entry.input.parts])


@cache
def _table(name: str) -> Encoder:
    from bertology.encoder.load import load

    return load(name)


@cache
def _read(name: str) -> Corpus:
    from bertology.corpus.builtin import corpus_named

    return corpus_named(name)


@cache
def _collocations(name: str) -> frozenset[tuple[str, str]]:
    from bertology.maths.collocations import collocations

    return collocations([word.lower() for word in sentence.words] for sentence in _read(name).sentences)


def _cosines(entry: Entry, vectors: str) -> NDArray[np.floating[Any]]:
    """(word, word) cosines of the words' vectors, each the mean over its pieces; 0 for words without a vector."""
    (means,) = word_vectors(_table(vectors), [entry])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    units = np.divide(means, lengths, out=np.zeros_like(means), where=lengths > 0)
    return units @ units.T
