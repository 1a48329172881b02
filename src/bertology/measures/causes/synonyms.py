"""Words that could stand for a word: near in a table of vectors or in a synset of WordNet, and of the same class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus, Input
from bertology.corpus.sentence import sentence
from bertology.encoder.encoder import Batch, Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load, static_form
from bertology.encoder.pieces import Special
from bertology.errors import Refusal

Floats = NDArray[np.float64]

WORDNET = "wordnet"
BEGINNINGS = ("Ġ", "▁")
"""What begins a word in vocabularies whose other pieces are fragments."""
AT_ONCE = 256
ENDINGS = {
    "ly": "ADV", "ing": "VERB", "ed": "VERB", "ous": "ADJ", "ful": "ADJ", "ive": "ADJ", "able": "ADJ", "less": "ADJ",
    "ness": "NOUN", "tion": "NOUN", "ment": "NOUN", "ity": "NOUN",
}  # fmt: skip


class Vectors:
    """Texts as vectors of an encoder: the mean over ordinary pieces of its last states."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder

    def of(self, texts: Sequence[Sequence[str]]) -> Floats:
        """(text, width), each of length 1; zeros for a text of which nothing is known."""
        import torch

        found: list[Floats] = []
        for start in range(0, len(texts), AT_ONCE):
            pieces = self.encoder.tokenise([Input((sentence(words),)) for words in texts[start : start + AT_ONCE]])
            longest = min(self.encoder.max_pieces, max(map(len, pieces)))
            padded = np.zeros((3, len(pieces), longest), np.int64)
            ordinary = np.zeros((len(pieces), longest, 1))
            for row, some in enumerate(pieces):
                size = min(len(some), longest)
                padded[:, row, :size] = some.ids[:size], some.types[:size], np.ones(size)
                ordinary[row, :size, 0] = some.special[:size] == Special.NONE
            with torch.no_grad():
                batch = Batch(*(torch.from_numpy(array).to(self.encoder.device) for array in padded))
                states = self.encoder.run(batch, hidden=True).hidden[-1].double().cpu().numpy()
            found.append((states * ordinary).sum(1) / ordinary.sum(1).clip(1))
        vectors = np.concatenate(found) if found else np.empty((0, self.encoder.width))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)

    def alike(self, original: Sequence[str]) -> Callable[[Sequence[Sequence[str]]], Floats]:
        """The cosine of texts with the original, -1 to 1."""
        (whole,) = self.of([original])
        return lambda texts: self.of(texts) @ whole


class Neighbours:
    """The nearest words in a table of vectors, among the whole words of a model's vocabulary."""

    def __init__(self, vectors: Vectors, words: Sequence[str], *, count: int, closeness: float) -> None:
        self._vectors, self._words, self._count, self._closeness = vectors, tuple(words), count, closeness
        self._known: dict[str, tuple[str, ...]] = {}

    @cached_property
    def _table(self) -> Floats:
        return self._vectors.of([(word,) for word in self._words])

    def __call__(self, word: str) -> tuple[str, ...]:
        """At most `count` other words with a cosine of `closeness` or more, the nearest first."""
        key = word.lower()
        if key not in self._known:
            cosines = self._table @ self._vectors.of([(key,)])[0]
            order = np.argsort(-cosines, kind="stable")[: self._count + 1]
            near = (self._words[row] for row in order if cosines[row] >= self._closeness)
            # A word that is not in the vocabulary is nearest to its own beginning, which is no word of its own.
            self._known[key] = tuple(other for other in near if not key.startswith(other.lower()))[: self._count]
        return self._known[key]


class WordNet:
    """The other words of a word's synsets, by the package `wn`, which is not installed with bertology."""

    def __init__(self, *, count: int) -> None:
        try:
            import wn  # pyright: ignore[reportMissingImports]  # optional
        except ImportError as error:
            raise Refusal(
                "--candidates wordnet needs the package wn, which is not installed",
                "wn and one of its lexicons",
                "Run `pip install wn` and `python -m wn download oewn:2024`, or leave --candidates out",
            ) from error
        self._wn: Any = wn
        self._count = count

    def __call__(self, word: str) -> tuple[str, ...]:
        """At most `count` single words, in the order of the synsets."""
        key = word.lower()
        lemmas = (str(lemma) for synset in self._wn.synsets(key) for lemma in synset.lemmas())
        return tuple(dict.fromkeys(lemma for lemma in lemmas if lemma.isalpha() and lemma.lower() != key))[
            : self._count
        ]


class WordClasses:
    """Which parts of speech a word can be: by a treebank, else by its ending; of others nothing is known."""

    def __init__(self, treebank: Corpus) -> None:
        """Reads every word with its part of speech."""
        treebank.require("pos", purpose="causes/substitution --treebank")
        self._seen: dict[str, set[str]] = {}
        for part in treebank.sentences:
            for word, tag in zip(part.words, part.pos or (), strict=False):
                self._seen.setdefault(word.lower(), set()).add(tag)

    def of(self, word: str) -> frozenset[str]:
        """The parts of speech; none where nothing is known."""
        key = word.lower()
        by_ending = {tag for ending, tag in ENDINGS.items() if key.endswith(ending) and len(key) > len(ending) + 2}
        return frozenset(self._seen.get(key) or by_ending)

    def agree(self, one: str, other: str) -> bool:
        """Whether both can be the same part of speech, or nothing is known of one of them."""
        first, second = self.of(one), self.of(other)
        return not first or not second or bool(first & second)


def static_vectors(name: str, encoder: Encoder) -> Vectors:
    """The static vectors of a name; without one those of the encoder's own embedding layer."""
    if name:
        found = load(name)
        if found.layers:
            raise Refusal(
                f"{name} is no table of vectors", "glove:PATH or static:MODEL", f"Write for example static:{name}"
            )
        return Vectors(found)
    assert isinstance(encoder, HuggingFaceEncoder), "only such a one has a head to be attacked"
    return Vectors(static_form(encoder))


def candidates_named(
    name: str, encoder: Encoder, *, count: int, closeness: float
) -> tuple[Callable[[str], tuple[str, ...]], str]:
    """Where candidates come from, and all that they depend on in one line."""
    if name == WORDNET:
        return WordNet(count=count), f"wordnet {count}"
    if not isinstance(encoder, HuggingFaceEncoder):
        raise Refusal(f"{encoder.name} has no vocabulary of pieces", "a transformer", "Choose another model")
    vectors = static_vectors(name, encoder)
    named = f"{vectors.encoder.fingerprint} {encoder.tokeniser.fingerprint} {count} {closeness}"
    return Neighbours(vectors, whole_words(encoder), count=count, closeness=closeness), named


def whole_words(encoder: HuggingFaceEncoder) -> list[str]:
    """The words of letters in a model's vocabulary, in order."""
    tokens: list[str] = sorted(encoder.tokenizer.get_vocab())
    marked = [token for token in tokens if token.startswith(BEGINNINGS)]
    return (
        [word for word in (token[1:] for token in marked) if _is_word(word)]
        if marked
        else list(filter(_is_word, tokens))
    )


def _is_word(token: str) -> bool:
    return token.isalpha() and len(token) > 1
