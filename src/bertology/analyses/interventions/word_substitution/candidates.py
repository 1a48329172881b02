"""Replacement candidates of a word: neighbours in a vector space or WordNet synonyms, with the same part of speech."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import TextInput
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.encoder import Encoder, ModelInputs, TaskEncoder
from bertology.encoder.load import load, static_encoder
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal
from bertology.lazy import torch

WORDNET = "wordnet"
WORD_START_MARKERS = ("Ġ", "▁")
"""Markers of word-initial tokens in vocabularies whose other tokens continue a word."""
BATCH_SIZE = 256
SUFFIX_TAGS = {
    "ly": "ADV", "ing": "VERB", "ed": "VERB", "ous": "ADJ", "ful": "ADJ", "ive": "ADJ", "able": "ADJ", "less": "ADJ",
    "ness": "NOUN", "tion": "NOUN", "ment": "NOUN", "ity": "NOUN",
}  # fmt: skip


@dataclass(frozen=True)
class SentenceEmbedder:
    """Text vectors of an encoder: the mean of the last hidden states over non-special tokens."""

    encoder: Encoder

    def embed(self, texts: Sequence[Sequence[str]]) -> FloatArray:
        """(text, width) unit vectors; zero for a text of unknown words."""
        means: list[FloatArray] = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = [TextInput((sentence_from_words(words),)) for words in texts[start : start + BATCH_SIZE]]
            tokenised = self.encoder.tokenise(batch)
            max_length = min(self.encoder.max_length, max(map(len, tokenised)))
            arrays = np.zeros((3, len(tokenised), max_length), np.int64)
            non_special = np.zeros((len(tokenised), max_length, 1))
            for row, tokens in enumerate(tokenised):
                length = min(len(tokens), max_length)
                arrays[:, row, :length] = tokens.ids[:length], tokens.type_ids[:length], np.ones(length)
                non_special[row, :length, 0] = tokens.special_kinds[:length] == SpecialToken.NONE
            with torch.no_grad():
                inputs = ModelInputs(*(torch.from_numpy(array).to(self.encoder.device) for array in arrays))
                states = (
                    self.encoder.forward(inputs, hidden=True, logits=False).hidden_states[-1].double().cpu().numpy()
                )
            means.append((states * non_special).sum(1) / non_special.sum(1).clip(1))
        vectors = np.concatenate(means) if means else np.empty((0, self.encoder.width))
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)

    def similarity(self, original: Sequence[str]) -> Callable[[Sequence[Sequence[str]]], FloatArray]:
        """A function that gives the cosine of texts with the original, -1 to 1."""
        (vector,) = self.embed([original])
        return lambda texts: self.embed(texts) @ vector


@dataclass(frozen=True)
class EmbeddingNeighbours:
    """The nearest words by cosine, among the whole words of a model's vocabulary."""

    embedder: SentenceEmbedder
    words: Sequence[str]
    n_synonyms: int
    min_cosine: float

    @cached_property
    def _matrix(self) -> FloatArray:
        return self.embedder.embed([(word,) for word in self.words])

    @cached_property
    def _known(self) -> dict[str, tuple[str, ...]]:
        return {}

    def __call__(self, word: str) -> tuple[str, ...]:
        """At most `n_synonyms` other words with a cosine of at least `min_cosine`, the nearest first."""
        key = word.lower()
        if key not in self._known:
            cosines = self._matrix @ self.embedder.embed([(key,)])[0]
            order = np.argsort(-cosines, kind="stable")[: self.n_synonyms + 1]
            nearest = (self.words[int(row)] for row in order if cosines[row] >= self.min_cosine)
            # A word outside the vocabulary is nearest to its own first token, which is not a synonym.
            synonyms = tuple(other for other in nearest if not key.startswith(other.lower()))
            self._known[key] = synonyms[: self.n_synonyms]
        return self._known[key]


def _wordnet() -> Any:
    try:
        import wn  # pyright: ignore[reportMissingImports]  # optional
    except ImportError as error:
        raise Refusal(
            "--synonym-source wordnet needs the package `wn`, which is not installed",
            "`wn` and one of its lexicons",
            "Run `pip install wn` and `python -m wn download oewn:2024`, or omit --synonym-source",
        ) from error
    return wn


def _wordnet_lexicons() -> tuple[str, ...]:
    return tuple(f"{lexicon.id}:{lexicon.version}" for lexicon in _wordnet().lexicons())


@dataclass(frozen=True)
class WordNetSynonyms:
    """The other words of a word's synsets, from the optional package `wn` and the lexicons installed with it."""

    n_synonyms: int
    lexicons: tuple[str, ...] = field(default_factory=_wordnet_lexicons)

    def __call__(self, word: str) -> tuple[str, ...]:
        """At most `n_synonyms` single words, in the order of the synsets."""
        key = word.lower()
        lemmas = (str(lemma) for synset in _wordnet().synsets(key) for lemma in synset.lemmas())
        synonyms = dict.fromkeys(lemma for lemma in lemmas if lemma.isalpha() and lemma.lower() != key)
        return tuple(synonyms)[: self.n_synonyms]


@dataclass(frozen=True)
class PartOfSpeechLexicon:
    """Possible parts of speech of a word: from a treebank, else by suffix."""

    pos_corpus: Corpus

    def __post_init__(self) -> None:
        self.pos_corpus.require_annotations("pos", analysis_name="interventions/word_substitution --pos-corpus")

    @cached_property
    def _tags_by_word(self) -> dict[str, set[str]]:
        tags: dict[str, set[str]] = {}
        for sentence in self.pos_corpus.sentences:
            for word, tag in zip(sentence.words, sentence.pos or (), strict=False):
                tags.setdefault(word.lower(), set()).add(tag)
        return tags

    def tags(self, word: str) -> frozenset[str]:
        """The possible parts of speech; empty if unknown."""
        key = word.lower()
        by_suffix = {tag for suffix, tag in SUFFIX_TAGS.items() if key.endswith(suffix) and len(key) > len(suffix) + 2}
        return frozenset(self._tags_by_word.get(key) or by_suffix)

    def share_tag(self, word: str, other: str) -> bool:
        """Whether both words can have the same part of speech, or that of one is unknown."""
        first, second = self.tags(word), self.tags(other)
        return not first or not second or bool(first & second)


def static_embedder(name: str, encoder: Encoder) -> SentenceEmbedder:
    """The static vectors of this name, or the encoder's input embeddings if it is empty."""
    if name:
        vectors = load(name)
        if vectors.layers:
            raise Refusal(
                f"{name} is a transformer, not static word vectors",
                "glove:PATH or static:MODEL",
                f"Write for example static:{name}",
            )
        return SentenceEmbedder(vectors)
    return SentenceEmbedder(static_encoder(_require_transformer(encoder)))


def load_candidates(
    name: str, encoder: Encoder, *, n_synonyms: int, min_cosine: float
) -> EmbeddingNeighbours | WordNetSynonyms:
    """The candidate function of --synonym-source."""
    if name == WORDNET:
        return WordNetSynonyms(n_synonyms)
    words = vocabulary_words(_require_transformer(encoder))
    return EmbeddingNeighbours(static_embedder(name, encoder), words, n_synonyms=n_synonyms, min_cosine=min_cosine)


def vocabulary_words(encoder: TaskEncoder) -> list[str]:
    """The alphabetic words in a model's vocabulary, sorted."""
    tokens: list[str] = sorted(encoder.hf_tokenizer.get_vocab())
    word_initial = [token[1:] for token in tokens if token.startswith(WORD_START_MARKERS)]
    return [word for word in word_initial or tokens if word.isalpha() and len(word) > 1]


def _require_transformer(encoder: Encoder) -> TaskEncoder:
    if not isinstance(encoder, TaskEncoder):
        raise Refusal(f"{encoder.name} has no sub-word vocabulary", "a transformer", "Choose another model")
    return encoder
