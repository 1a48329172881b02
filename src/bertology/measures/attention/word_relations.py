"""Which words of an input are identical or related, and which predict each other: defined, not eyeballed.

Two words are **related** where their lemmas are the same, lower-cased, or their forms where no lemma is annotated; with
a table of word vectors also where the cosine of their vectors is at least `closeness`. Words without a letter or digit
are related to none. Two words **predict** each other where the annotation makes them one expression (the relations
fixed, flat, compound, goeswith and their subtypes), or where they are neighbours and a collocation of a given corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.word_vectors import word_vectors
from bertology.recording.annotation import word_heads, word_layer
from bertology.recording.entry import Entry

WordPairs = NDArray[np.int64]
"""(pair, 2) words of an entry."""
NO_PAIRS: WordPairs = np.empty((0, 2), np.int64)

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

    def keys(self, entry: Entry) -> NDArray[np.int64]:
        """(word,) a number for each lemma, or form, of the entry; -1 for words without a letter or digit."""
        forms = [word.lower() for word in entry.input.words]
        lemmas = word_layer(entry, "lemmas")
        numbers: dict[str, int] = {}
        found = [
            numbers.setdefault(form if lemma is None else lemma.lower(), len(numbers)) if _spoken(form) else -1
            for form, lemma in zip(forms, lemmas, strict=True)
        ]
        return np.array(found, np.int64)

    def near(self, entry: Entry) -> WordPairs:
        """Words with a letter or digit whose vectors are near, a word and itself included."""
        if not self.vectors:
            return NO_PAIRS
        spoken = self.keys(entry) >= 0
        return np.argwhere((_cosines(entry, self.vectors) >= self.closeness) & spoken[:, None] & spoken[None, :])

    def predictive(self, entry: Entry) -> WordPairs:
        """Different words that belong to the same expression or collocation, both ways round."""
        relations = enumerate(zip(word_heads(entry), word_layer(entry, "relations"), strict=True))
        found = [
            (word, head)
            for word, (head, relation) in relations
            if head is not None and head >= 0 and (relation or "").split(":")[0] in ONE_EXPRESSION
        ]
        if self.collocates:
            known = _collocations(self.collocates)
            parts, words = part_of_words(entry), [word.lower() for word in entry.input.words]
            neighbours = enumerate(pairwise(words))
            found += [(at, at + 1) for at, two in neighbours if parts[at] == parts[at + 1] and two in known]
        return np.array(found + [(other, word) for word, other in found], np.int64).reshape(-1, 2)


@lru_cache(maxsize=2**16)
def _spoken(form: str) -> bool:
    return any(character.isalnum() for character in form)


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
