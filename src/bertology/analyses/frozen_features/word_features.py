"""Word features of sentences, extracted once and cached: every classifier, training size and seed uses the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.cache import AnalysisCache, warn_of_damage
from bertology.analyses.cache_key import cache_key
from bertology.checked_files import DamagedFileError, read_arrays, write_arrays
from bertology.corpus.sentence import Sentence

if TYPE_CHECKING:
    from bertology.analyses.frozen_features.extractors import FeatureExtractor

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class WordFeatures:
    """`by_sentence[i]` is (word, width) for sentence i; words without a vector are zeros, and counted."""

    name: str
    by_sentence: tuple[FloatArray, ...]
    counts: Mapping[str, int] = field(default_factory=dict[str, int])

    def __len__(self) -> int:
        return len(self.by_sentence)

    @property
    def width(self) -> int:
        """The width of a vector; 0 if there is no sentence."""
        return self.by_sentence[0].shape[1] if self.by_sentence else 0

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all vectors."""
        digest = hashlib.sha256(str([vectors.shape for vectors in self.by_sentence]).encode())
        for vectors in self.by_sentence:
            digest.update(np.ascontiguousarray(vectors).data)
        return digest.hexdigest()[:32]

    def sentence_means(self) -> FloatArray:
        """(sentence, width) means over words; zeros for a sentence without words."""
        return np.stack(
            [vectors.mean(0) if len(vectors) else np.zeros(self.width, np.float32) for vectors in self.by_sentence]
        )

    def subset(self, indices: Sequence[int]) -> WordFeatures:
        """The features of some sentences; `counts` stay those of all."""
        return WordFeatures(self.name, tuple(self.by_sentence[index] for index in indices), self.counts)


def extract_cached(extractor: FeatureExtractor, sentences: Sequence[Sentence], cache: AnalysisCache) -> WordFeatures:
    """The features of the sentences, from the cache or computed now.

    Without a store, or for an extractor without a fingerprint, they are always computed.
    """
    progress = cache.progress_meter(f"features of {extractor.name}")
    if cache.directory is None or not extractor.fingerprint:
        return extractor.extract(sentences, progress)
    texts = [(sentence.words, sentence.text, sentence.offsets) for sentence in sentences]
    key = cache_key(type(extractor).extract, {"extractor": extractor.fingerprint, "sentences": texts})
    file, stored = cache.file(key, ".npz"), cache.read(key)
    if stored is not None:
        try:
            vectors = read_arrays(file, stored["value"]["vectors"])["vectors"]
            return WordFeatures(extractor.name, _split_by_sentence(vectors, sentences), stored["value"]["counts"])
        except DamagedFileError as error:
            warn_of_damage(error)
    features = extractor.extract(sentences, progress)
    vectors = np.concatenate([np.zeros((0, features.width), np.float32), *features.by_sentence])
    cache.write(key, {"vectors": write_arrays(file, {"vectors": vectors}), "counts": dict(features.counts)})
    return features


def _split_by_sentence(vectors: FloatArray, sentences: Sequence[Sentence]) -> tuple[FloatArray, ...]:
    ends = np.cumsum([len(sentence) for sentence in sentences])[:-1]
    return tuple(np.split(vectors, ends)) if len(sentences) else ()
