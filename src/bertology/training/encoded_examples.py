"""Examples encoded as token ids with labels, in batches of similar length."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import IntArray
from bertology.corpus.example import Example, TextInput
from bertology.encoder.encoder import ModelInputs
from bertology.encoder.tokens import TokenisedInput
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

IGNORE_INDEX = -100
"""Label without a loss, as in torch."""
NO_TOKEN = -1
"""Padding of token ids."""
SHUFFLE_BATCHES = 16
"""Examples are sorted by length within runs of this many batches."""

TokeniseFunction = Callable[[Sequence[TextInput]], list[TokenisedInput]]


def _no_word_ids() -> IntArray:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class EncodedExample:
    """One sequence, or one per option: token ids, token types, and labels of the example or of each token.

    `phenomenon` groups scores; `example_index` is the index of the example it encodes; `word_ids` are the word of each
    token, -1 for none, if the task is about words.
    """

    input_ids: IntArray
    token_type_ids: IntArray
    labels: IntArray
    phenomenon: str = ""
    example_index: int = 0
    word_ids: IntArray = field(default_factory=_no_word_ids)

    def __len__(self) -> int:
        return self.input_ids.shape[-1]

    @property
    def labelled_positions(self) -> IntArray:
        """Positions with a label: the first tokens of the labelled words of a tagged sentence."""
        return np.flatnonzero(self.labels != IGNORE_INDEX)

    @property
    def first_tokens(self) -> IntArray:
        """Position of the first token of each word."""
        return first_tokens(self.word_ids)


@dataclass(frozen=True)
class EncodedDataset:
    """Examples, their encodings, and the number of examples that were truncated or skipped."""

    examples: list[Example]
    encoded: list[EncodedExample]
    n_truncated: int


def encode_classification(
    examples: Sequence[Example], tokenise: TokeniseFunction, labels: Sequence[str], *, max_length: int
) -> EncodedDataset:
    """Encode labelled texts or pairs.

    A single text that is too long keeps its end, where reviews have their verdict. A pair that is too long is skipped:
    its label may depend on what would be cut. Labels not in `labels` have no loss.
    """
    label_ids = {label: index for index, label in enumerate(labels)}
    used: list[Example] = []
    encoded: list[EncodedExample] = []
    n_truncated = 0
    for example, tokens in zip(examples, tokenise([example.text_inputs[0] for example in examples]), strict=True):
        ids, types = ids_and_types(tokens)
        if len(ids) > max_length:
            n_truncated += 1
            if example.kind != "sentence":
                continue
            ids, types = np.append(ids[:1], ids[-(max_length - 1) :]), types[:max_length]
        label = np.array([label_ids.get(str(example.label), IGNORE_INDEX)])
        encoded.append(EncodedExample(ids, types, label, example.factors.get("phenomenon", ""), len(used)))
        used.append(example)
    return EncodedDataset(used, encoded, n_truncated)


def encode_tagging(
    examples: Sequence[Example],
    tokenise: TokeniseFunction,
    labels: Sequence[str],
    *,
    max_length: int,
    annotation: str = "tags",
) -> EncodedDataset:
    """Encode sentences with a tag per word, as the label of its first token; sentences too long are skipped.

    Tags not in `labels` have no loss.
    """
    label_ids = {label: index for index, label in enumerate(labels)}
    used: list[Example] = []
    encoded: list[EncodedExample] = []
    for example, tokens in zip(examples, tokenise([example.text_inputs[0] for example in examples]), strict=True):
        if len(tokens) > max_length or tokens.dropped_words:
            continue
        token_labels = np.full(len(tokens), IGNORE_INDEX)
        for word, tag in enumerate(getattr(example.segments[0], annotation) or ()):
            token_labels[int(np.argmax(tokens.word_ids == word))] = label_ids.get(tag, IGNORE_INDEX)
        word_ids = np.asarray(tokens.word_ids, np.int64)
        encoded.append(EncodedExample(*ids_and_types(tokens), token_labels, example_index=len(used), word_ids=word_ids))
        used.append(example)
    return EncodedDataset(used, encoded, len(examples) - len(used))


@dataclass(frozen=True)
class TrainingBatch:
    """Encoded examples of similar length: model inputs, labels, and their indices in the dataset."""

    inputs: ModelInputs
    labels: Tensor
    indices: list[int]


def iterate_batches(
    examples: Sequence[EncodedExample], batch_size: int, *, shuffle_seed: int | None = None
) -> Iterator[TrainingBatch]:
    """Batches of all examples, each with similar lengths; see `batch_indices` for the order."""
    for indices in batch_indices(examples, batch_size, shuffle_seed=shuffle_seed):
        yield pad_examples(examples, indices)


def batch_indices(
    examples: Sequence[EncodedExample], batch_size: int, *, shuffle_seed: int | None = None
) -> list[list[int]]:
    """Indices of the examples of each batch.

    Without a seed from the shortest to the longest. With a seed, batches and examples are shuffled, and examples are
    sorted by length only within runs of a few batches, so that each epoch groups them differently.
    """
    indices = list(range(len(examples)))
    if shuffle_seed is None:
        return _chunk_indices(_sort_by_length(examples, indices), batch_size)
    rng = random.Random(shuffle_seed)
    rng.shuffle(indices)
    batches = [
        batch
        for run in _chunk_indices(indices, SHUFFLE_BATCHES * batch_size)
        for batch in _chunk_indices(_sort_by_length(examples, run), batch_size)
    ]
    rng.shuffle(batches)
    return batches


def pad_examples(examples: Sequence[EncodedExample], indices: list[int]) -> TrainingBatch:
    """The examples at these indices as one batch, padded on the right."""
    batch = [examples[index] for index in indices]
    ids = _pad_arrays([example.input_ids for example in batch], NO_TOKEN)
    types = _pad_arrays([example.token_type_ids for example in batch], 0)
    labels = _pad_arrays([example.labels for example in batch], IGNORE_INDEX)
    arrays = (np.maximum(ids, 0), np.maximum(types, 0), (ids != NO_TOKEN).astype(np.int64))
    return TrainingBatch(ModelInputs(*(torch.from_numpy(array) for array in arrays)), torch.from_numpy(labels), indices)


def first_tokens(word_ids: IntArray) -> IntArray:
    """Position of the first token of each word, from the word of each token."""
    words, positions = np.unique(word_ids, return_index=True)
    return positions[words >= 0]


def ids_and_types(tokens: TokenisedInput) -> tuple[IntArray, IntArray]:
    """Token ids and token types."""
    return np.asarray(tokens.ids, np.int64), np.asarray(tokens.type_ids, np.int64)


def pad_rows(arrays: Sequence[IntArray]) -> IntArray:
    """Sequences of different lengths as rows, padded with `NO_TOKEN`."""
    return _pad_arrays(arrays, NO_TOKEN)


def _pad_arrays(arrays: Sequence[IntArray], value: int) -> IntArray:
    shape = np.max([array.shape for array in arrays], axis=0)
    padded = np.full((len(arrays), *shape), value, np.int64)
    for row, array in enumerate(arrays):
        padded[(row, *(slice(size) for size in array.shape))] = array
    return padded


def _sort_by_length(examples: Sequence[EncodedExample], indices: Sequence[int]) -> list[int]:
    return sorted(indices, key=lambda index: len(examples[index]))


def _chunk_indices(indices: Sequence[int], chunk_size: int) -> list[list[int]]:
    return [list(indices[start : start + chunk_size]) for start in range(0, len(indices), chunk_size)]
