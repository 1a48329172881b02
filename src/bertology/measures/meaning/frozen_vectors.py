"""The vectors of the words of some sentences, recorded once and kept: every model, size and seed reads the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.sentence import Sentence
from bertology.measures.work import Work
from bertology.recording.files import finish, writing

if TYPE_CHECKING:
    from bertology.measures.meaning.features import Feature

Floats = NDArray[np.float32]
Meter = Callable[[int, int], None]

FOLDER = "features"
FORMAT = 1


def unheard(done: int, total: int) -> None:
    """Nobody is told."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """`of[i]` is (word, width) for sentence i; zeros for a word that has no vector, which `counts` counts."""

    name: str
    of: tuple[Floats, ...]
    counts: Mapping[str, int] = field(default_factory=dict[str, int])

    def __len__(self) -> int:
        return len(self.of)

    @property
    def width(self) -> int:
        """The size of a vector; 0 where there is no sentence."""
        return self.of[0].shape[1] if self.of else 0

    @cached_property
    def fingerprint(self) -> str:
        """A hash of every number."""
        digest = hashlib.sha256(str([vectors.shape for vectors in self.of]).encode())
        for vectors in self.of:
            digest.update(np.ascontiguousarray(vectors).data)
        return digest.hexdigest()[:32]

    def means(self) -> Floats:
        """(sentence, width) the mean over the words of each sentence; zeros for one without words."""
        return np.stack([vectors.mean(0) if len(vectors) else np.zeros(self.width, np.float32) for vectors in self.of])

    def some(self, places: Sequence[int]) -> Vectors:
        """The vectors of some of the sentences; the counts are still those of all."""
        return Vectors(self.name, tuple(self.of[place] for place in places), self.counts)


def recorded(feature: Feature, sentences: Sequence[Sentence], work: Work) -> Vectors:
    """The vectors of the sentences: as they were kept in the store, or computed now and kept.

    Without a store, or where nobody can tell what the vectors depend on, they are computed anew.
    """
    meter = work.meter(f"features of {feature.name}")
    if work.store is None or not feature.identity:
        return feature.vectors(sentences, meter)
    digest = hashlib.sha256(f"{FORMAT} {feature.identity}".encode())
    for sentence in sentences:
        digest.update(f"\n{sentence.text}\t{sentence.offsets}".encode("utf-8", "surrogatepass"))
    file = work.store / FOLDER / f"{digest.hexdigest()[:24]}.npz"
    if file.is_file():
        with np.load(file, allow_pickle=False) as kept:
            return _unpacked(feature.name, sentences, kept)
    found = feature.vectors(sentences, meter)
    with writing(file.parent, file.name) as (stream, partial):
        np.savez(
            stream,
            vectors=np.concatenate([np.zeros((0, found.width), np.float32), *found.of]),
            names=np.array(list(found.counts), np.str_),
            counts=np.array(list(found.counts.values()), np.int64),
        )
        finish(stream, partial, file)
    return found


def _unpacked(name: str, sentences: Sequence[Sentence], kept: Mapping[str, NDArray[Any]]) -> Vectors:
    ends = np.cumsum([len(sentence) for sentence in sentences])[:-1]
    counts = dict(zip(kept["names"].tolist(), kept["counts"].tolist(), strict=True))
    return Vectors(name, tuple(np.split(kept["vectors"], ends)) if len(sentences) else (), counts)
