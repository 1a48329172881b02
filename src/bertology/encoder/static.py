"""Encoders without attention: each piece has one vector, whatever stands around it (the non-contextual baselines).

A word that a table of word vectors lacks is represented by zeros, and counted in `Pieces.unknown`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Input
from bertology.encoder.encoder import Batch, Objective, Output
from bertology.encoder.pieces import Ints, Pieces
from bertology.encoder.vectors import Floats, WordVectors
from bertology.maths.circulant import circulant_rows, scaled_to

if TYPE_CHECKING:
    from bertology.encoder.attend import LayerActivations

UNBOUNDED = 1_000_000
IDS = 2**31 - 1
ROWS = 2**20
"""Different random vectors that circulant ones are; each of d numbers takes 33 bits instead of 32 d."""


class Lexicon(Protocol):
    """Pieces and their vectors: all that tells one static encoder from another."""

    @property
    def fingerprint(self) -> str:
        """A hash of all that the vectors depend on."""
        ...

    @property
    def width(self) -> int:
        """Size of a vector."""
        ...

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        """The pieces of each input."""
        ...

    def vectors(self, ids: NDArray[np.int64]) -> Floats:
        """(..., width): the vector of each id."""
        ...


@dataclass(frozen=True)
class StaticEncoder:
    """An `Encoder` with no layers and no heads; its only site is `hidden`, one layer deep."""

    name: str
    lexicon: Lexicon
    device: str = "cpu"

    layers: int = field(default=0, init=False)
    heads: int = field(default=0, init=False)
    max_pieces: int = field(default=UNBOUNDED, init=False)
    outputs: frozenset[str] = field(default=frozenset[str](), init=False)
    causal: bool = field(default=False, init=False)
    reach: tuple[int | None, ...] = field(default=(), init=False)
    mask_id: int | None = field(default=None, init=False)

    @property
    def fingerprint(self) -> str:
        """A hash of every piece and vector."""
        return self.lexicon.fingerprint

    @property
    def width(self) -> int:
        """Size of a vector."""
        return self.lexicon.width

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        """The pieces of each input: words, or the pieces of the model whose embeddings these are."""
        return self.lexicon.tokenise(inputs)

    def run(
        self,
        batch: Batch,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        objective: Objective | None = None,
    ) -> Output:
        """The vectors of a batch; there is no attention to see, so `on_layer` is never called."""
        import torch

        if not hidden:
            return Output((), {})
        vectors = self.lexicon.vectors(batch.ids.cpu().numpy())
        return Output((torch.from_numpy(vectors).to(self.device),), {})


@dataclass(frozen=True)
class WordTable:
    """Words as pieces, looked up in a file's vectors as they are written, then lower-cased."""

    words: WordVectors

    @property
    def fingerprint(self) -> str:
        """A hash of every word and vector."""
        return self.words.fingerprint

    @property
    def width(self) -> int:
        """Size of a vector."""
        return self.words.table.shape[1]

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        """One piece a word; unknown ones have id 0."""
        return [_words_as_pieces(item, [self.words.row(word) for word in item.words], unknown=0) for item in inputs]

    def vectors(self, ids: NDArray[np.int64]) -> Floats:
        """Rows of the table; zeros for id 0."""
        return self.words.table[ids]


@dataclass(frozen=True, eq=False)
class PieceTable:
    """The input embeddings of a model over its own pieces, special tokens included."""

    pieces_of: Callable[[Sequence[Input]], list[Pieces]]
    pieces_fingerprint: str
    table: Floats

    @property
    def fingerprint(self) -> str:
        """A hash of the tokeniser and of every vector."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(f"static{self.pieces_fingerprint}{self.table.shape}".encode())
        digest.update(np.ascontiguousarray(self.table).data)
        return digest.hexdigest()[:32]

    @property
    def width(self) -> int:
        """Size of a vector."""
        return self.table.shape[1]

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        """The model's own pieces."""
        return self.pieces_of(inputs)

    def vectors(self, ids: NDArray[np.int64]) -> Floats:
        """Rows of the embedding matrix."""
        return self.table[ids]


@dataclass(frozen=True)
class RandomVectors:
    """Gaussian vectors that depend on the word and the seed alone: equal words are equal in every text and process.

    A word's id is a 31-bit hash of it; among 10,000 different words two share a vector in about 2 of 100 vocabularies.
    """

    width: int
    seed: int = 0

    @property
    def fingerprint(self) -> str:
        """A hash of size and seed."""
        return hashlib.sha256(f"random-vectors.v1 {self.width} {self.seed}".encode()).hexdigest()[:32]

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        """One piece a word, each known."""
        return [_words_as_pieces(item, [_word_id(word) for word in item.words], unknown=-1) for item in inputs]

    def vectors(self, ids: NDArray[np.int64]) -> Floats:
        """Independent standard normal numbers for each id."""
        # NumPy promises no stream of normal numbers across versions, hence our own counter-based generator.
        pairs = (self.width + 1) // 2
        known, where = np.unique(ids, return_inverse=True)
        place = np.arange(2 * pairs, dtype=np.uint64)
        key = _mixed(known.astype(np.uint64) ^ _mixed(np.full(1, self.seed, np.uint64)))
        bits = _mixed(key[:, None] + place * np.uint64(0x9E3779B97F4A7C15))
        uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        radius, angle = np.sqrt(-2 * np.log(uniform[:, :pairs])), 2 * np.pi * uniform[:, pairs:]
        normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:, : self.width]
        return normal.astype(np.float32)[where.reshape(ids.shape)]


@dataclass(frozen=True)
class CirculantVectors:
    """Random vectors as in Arora et al. (2020): a row a word of random circulant matrices with signs, of mean norm 1.

    There is one of `ROWS` rows for a word, by a hash of it; among 10,000 different words some 50 pairs share a row.
    """

    width: int
    seed: int = 0

    @property
    def fingerprint(self) -> str:
        """A hash of size and seed."""
        return hashlib.sha256(f"circulant-vectors.v1 {self.width} {self.seed}".encode()).hexdigest()[:32]

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        """One piece a word, each known."""
        return [_words_as_pieces(item, [_word_id(word) % ROWS for word in item.words], unknown=-1) for item in inputs]

    def vectors(self, ids: NDArray[np.int64]) -> Floats:
        """The rows with these numbers."""
        weights, signs = self._blocks
        return circulant_rows(ids, weights, signs).astype(np.float32)

    @cached_property
    def _blocks(self) -> tuple[Floats, Floats]:
        """(block, width) weights and signs; both generators have seeds of their own."""
        blocks = np.arange(-(-ROWS // self.width))
        weights, signs = (RandomVectors(self.width, 2 * self.seed + part).vectors(blocks) for part in (0, 1))
        return scaled_to(1.0, weights, ROWS), np.where(signs < 0, -1.0, 1.0).astype(np.float32)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each number's bits thoroughly mixed (the finaliser of SplitMix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _word_id(word: str) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % IDS


def _words_as_pieces(item: Input, ids: Sequence[int], *, unknown: int) -> Pieces:
    rows: Ints = np.asarray(ids, np.int32)
    nothing: Ints = np.zeros(len(rows), np.int32)
    part = np.repeat(np.arange(len(item.parts), dtype=np.int32), [len(part) for part in item.parts])
    return Pieces(
        ids=rows,
        tokens=item.words,
        types=part.copy(),
        part=part,
        word=np.arange(len(rows), dtype=np.int32),
        special=nothing,
        words=len(rows),
        unknown=int((rows == unknown).sum()),
    )
