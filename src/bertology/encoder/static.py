"""Encoders without attention: one vector per token or word regardless of context (non-contextual baselines).

A word without a vector is represented by zeros and counted in `TokenisedInput.n_unknown`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import Array, IntArray
from bertology.corpus.example import TextInput
from bertology.encoder.encoder import Encoder, ModelInputs, ModelOutput, Objective, TaskEncoder
from bertology.encoder.token_batch import RecordedInput
from bertology.encoder.tokens import Int32Array, TokenisedInput
from bertology.encoder.word_vector_files import WordVectorFile
from bertology.lazy import torch

if TYPE_CHECKING:
    from bertology.encoder.attention_hook import LayerActivations

NO_LENGTH_LIMIT = 1_000_000
N_WORD_IDS = 2**31 - 1
N_ROWS = 2**20
"""Number of distinct circulant vectors; each of d numbers takes 33 bits instead of 32 d."""


@dataclass(frozen=True, eq=False)
class StaticEncoder(ABC):
    """An `Encoder` without layers and heads; its only site is `hidden`, with one layer."""

    name: str
    device: str
    layers: int = field(default=0, init=False)
    heads: int = field(default=0, init=False)
    max_length: int = field(default=NO_LENGTH_LIMIT, init=False)
    task_heads: frozenset[str] = field(default=frozenset[str](), init=False)
    causal: bool = field(default=False, init=False)
    attention_windows: tuple[int | None, ...] = field(default=(), init=False)
    mask_token_id: int | None = field(default=None, init=False)

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of everything the vectors depend on."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Size of a vector."""

    @abstractmethod
    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        """Tokens of each input."""

    @abstractmethod
    def embed(self, ids: IntArray) -> Array:
        """(..., width) vector of each id."""

    def forward(
        self,
        batch: ModelInputs,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        logits: bool = True,
        objective: Objective | None = None,
    ) -> ModelOutput:
        """The vectors of a batch as hidden states; there is no attention, so that `on_layer` is never called."""
        if not hidden:
            return ModelOutput((), {})
        return ModelOutput((torch.from_numpy(self.embed(batch.input_ids.cpu().numpy())).to(self.device),), {})


@dataclass(frozen=True, eq=False)
class WordVectors(StaticEncoder):
    """Word vectors from a file; words are looked up as written, then in lower case."""

    vectors: WordVectorFile

    @property
    def fingerprint(self) -> str:
        """A hash of every word and vector."""
        return self.vectors.fingerprint

    @property
    def width(self) -> int:
        """Size of a vector."""
        return self.vectors.matrix.shape[1]

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        """One token per word; unknown words have id 0."""
        return [_words_as_tokens(text, [self.vectors.row(w) for w in text.words], unknown_id=0) for text in inputs]

    def embed(self, ids: IntArray) -> Array:
        """Rows of the matrix; zeros for id 0."""
        return self.vectors.matrix[ids]


@dataclass(frozen=True, eq=False)
class TokenEmbeddings(StaticEncoder):
    """Input embeddings of a model, special tokens included."""

    encoder: TaskEncoder
    matrix: Array

    @property
    def fingerprint(self) -> str:
        """A hash of the tokeniser and of every vector."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(f"static{self.encoder.tokeniser.fingerprint}{self.matrix.shape}".encode())
        digest.update(np.ascontiguousarray(self.matrix).data)
        return digest.hexdigest()[:32]

    @property
    def width(self) -> int:
        """Size of a vector."""
        return self.matrix.shape[1]

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        """Tokens of the model's tokeniser."""
        return self.encoder.tokenise(inputs)

    def embed(self, ids: IntArray) -> Array:
        """Rows of the embedding matrix."""
        return self.matrix[ids]


@dataclass(frozen=True, eq=False)
class RandomVectors(StaticEncoder):
    """Gaussian vectors that depend on word and seed only: the same in every text and process.

    The id of a word is a 31-bit hash; among 10,000 different words two share a vector in about 2 of 100 vocabularies.
    """

    size: int
    seed: int
    algorithm: ClassVar[str] = "random-vectors.v1"
    n_ids: ClassVar[int] = N_WORD_IDS

    @property
    def fingerprint(self) -> str:
        """A hash of size and seed."""
        return hashlib.sha256(f"{self.algorithm} {self.size} {self.seed}".encode()).hexdigest()[:32]

    @property
    def width(self) -> int:
        """Size of a vector."""
        return self.size

    def tokenise(self, inputs: Sequence[TextInput]) -> list[TokenisedInput]:
        """One token per word, none of them unknown."""
        ids = ([_word_id(word) % self.n_ids for word in text.words] for text in inputs)
        return [_words_as_tokens(text, text_ids, unknown_id=-1) for text, text_ids in zip(inputs, ids, strict=True)]

    def embed(self, ids: IntArray) -> Array:
        """Independent standard normal numbers for each id."""
        return _standard_normal(ids, self.size, self.seed)


@dataclass(frozen=True, eq=False)
class CirculantVectors(RandomVectors):
    """Random vectors as in Arora et al. (2020): rows of random circulant matrices with signs, of mean norm 1.

    A hash selects one of `N_ROWS` rows for a word; among 10,000 different words about 50 pairs share a row.
    """

    algorithm = "circulant-vectors.v1"
    n_ids = N_ROWS

    def embed(self, ids: IntArray) -> Array:
        """Rows of the circulant matrices."""
        return circulant_rows(ids, *self._circulant_blocks).astype(np.float32)

    @cached_property
    def _circulant_blocks(self) -> tuple[Array, Array]:
        """(block, width) weights and signs, from two generators with different seeds."""
        blocks = np.arange(-(-N_ROWS // self.size))
        weights, signs = (_standard_normal(blocks, self.size, 2 * self.seed + stream) for stream in (0, 1))
        return scale_to_norm(1.0, weights, N_ROWS), np.where(signs < 0, -1.0, 1.0).astype(np.float32)


def _standard_normal(ids: IntArray, width: int, seed: int) -> Array:
    """(..., width) independent standard normal numbers for each id."""
    # NumPy does not guarantee streams of normal numbers across versions, hence this counter-based generator.
    pairs = (width + 1) // 2
    distinct, inverse = np.unique(ids, return_inverse=True)
    counter = np.arange(2 * pairs, dtype=np.uint64)
    key = _mix_bits(distinct.astype(np.uint64) ^ _mix_bits(np.full(1, seed, np.uint64)))
    bits = _mix_bits(key[:, None] + counter * np.uint64(0x9E3779B97F4A7C15))
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    radius, angle = np.sqrt(-2 * np.log(uniform[:, :pairs])), 2 * np.pi * uniform[:, pairs:]
    normal = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)[:, :width]
    return normal.astype(np.float32)[inverse.reshape(ids.shape)]


def _mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of each number (the finaliser of SplitMix64, Steele et al. 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _word_id(word: str) -> int:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % N_WORD_IDS


def _words_as_tokens(text_input: TextInput, ids: Sequence[int], *, unknown_id: int) -> TokenisedInput:
    rows: Int32Array = np.asarray(ids, np.int32)
    segment_ids = np.repeat(
        np.arange(len(text_input.segments), dtype=np.int32), [len(segment) for segment in text_input.segments]
    )
    return TokenisedInput(
        ids=rows,
        tokens=text_input.words,
        type_ids=segment_ids.copy(),
        segment_ids=segment_ids,
        word_ids=np.arange(len(rows), dtype=np.int32),
        special_kinds=np.zeros(len(rows), np.int32),
        n_words=len(rows),
        n_unknown=int((rows == unknown_id).sum()),
    )


def circulant_rows(rows: NDArray[np.integer[Any]], weights: Array, signs: Array) -> Array:
    """(..., d) rows of random circulant matrices with signs, as in the released code of Arora et al. (2020).

    Block k has weights g and signs e, both (d,); its row i is `g[(i - j) mod d] * e[j]` for j from 0 to d - 1. Row r of
    all blocks is row r mod d of block r // d.
    """
    if not np.issubdtype(rows.dtype, np.integer):
        raise TypeError(f"row indices must be integers, not {rows.dtype}")
    n_blocks, width = weights.shape
    if rows.size and not (rows.min() >= 0 and rows.max() < n_blocks * width):
        raise IndexError(f"rows {rows.min()} to {rows.max()} of {n_blocks * width}")
    block, row = np.divmod(rows[..., None], width)
    column = np.arange(width)
    return weights[block, (row - column) % width] * signs[block, column]


def scale_to_norm(norm: float, weights: Array, n_rows: int) -> Array:
    """The weights scaled such that the mean norm of the first `n_rows` rows is `norm`."""
    n_blocks, width = weights.shape
    counts = np.clip(n_rows - width * np.arange(n_blocks), 0, width)
    mean = (counts * np.linalg.norm(weights, axis=1)).sum() / n_rows
    return (weights * (norm / mean)).astype(weights.dtype)


def word_vectors(static_encoder: Encoder, inputs: Sequence[RecordedInput]) -> list[Array]:
    """(word, width) for each input: the mean static vector of a word's tokens; zeros for unknown words."""
    vectors: list[Array] = []
    for tokens in static_encoder.tokenise([recorded.text for recorded in inputs]):
        ids, types = (torch.from_numpy(np.asarray(array, np.int64))[None] for array in (tokens.ids, tokens.type_ids))
        output = static_encoder.forward(ModelInputs(ids, types, torch.ones_like(ids)), hidden=True)
        states = output.hidden_states[0][0].cpu().numpy()
        means = np.zeros((tokens.n_words, states.shape[1]), np.float32)
        for word, positions in tokens.positions_by_word().items():
            means[word] = states[positions].mean(0)
        vectors.append(means)
    return vectors
