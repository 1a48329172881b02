"""The encoded examples and baselines of one task in one file, for training on another machine.

Corpus readers and scikit-learn are needed only to write the file. It names its tokeniser, and a base with another
tokeniser is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.huggingface_loading import load_directory
from bertology.training.encoded_examples import (
    IGNORE_INDEX,
    EncodedExample,
    TokeniseFunction,
    encode_classification,
    encode_tagging,
)
from pretraining.finetuning.baselines import baselines
from pretraining.finetuning.data import TASKS, TaskData

MAX_LENGTH = 128
TRAIN, VALIDATION = "train", "validation"
ARRAY_TYPES: Mapping[str, type[np.integer[Any]]] = {
    "ids": np.uint16,
    "types": np.uint8,
    "labels": np.int8,
    "lengths": np.uint8,
}
"""The arrays of a split: its examples concatenated, and their lengths."""
STORED_IGNORE_INDEX = -1
"""`IGNORE_INDEX` in the file, where labels are 8-bit integers."""


@dataclass(frozen=True)
class EncodedTask:
    """The encoded examples of a task by split; `statistics` are reported only: truncated examples and baselines."""

    task: str
    labels: tuple[str, ...]
    tokeniser: str
    splits: dict[str, list[EncodedExample]]
    statistics: dict[str, Any]

    @property
    def tags(self) -> bool:
        """Whether words are labelled, not texts."""
        return self.task == "ner"

    @property
    def test(self) -> dict[str, list[EncodedExample]]:
        """The test sets."""
        return {name: examples for name, examples in self.splits.items() if name not in {TRAIN, VALIDATION}}


def encode_task(task: str, base: Path, data: Path) -> EncodedTask:
    """Read the data of a task and encode it with the tokeniser of the base."""
    return encode_data(task, TASKS[task](data), load_directory(base).tokenise, tokeniser_hash(base))


def encode_data(
    task: str, data: TaskData, tokenise: TokeniseFunction, tokeniser: str, *, max_length: int = MAX_LENGTH
) -> EncodedTask:
    """Encode the data of a task and compute its baselines."""
    tags = task == "ner"
    encode = encode_tagging if tags else encode_classification
    splits = {TRAIN: data.train, VALIDATION: data.validation, **data.test}
    encoded = {
        name: encode(examples, tokenise, data.labels, max_length=max_length) for name, examples in splits.items()
    }
    statistics = {
        "truncated": {name: dataset.n_truncated for name, dataset in encoded.items()},
        "baselines": baselines(encoded[TRAIN], {name: encoded[name] for name in data.test}, tags=tags),
    }
    encoded_splits = {name: dataset.encoded for name, dataset in encoded.items()}
    return EncodedTask(task, data.labels, tokeniser, encoded_splits, statistics)


def write(dataset: EncodedTask, path: Path) -> None:
    """Write one compressed NumPy archive."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, examples in enumerate(dataset.splits.values()):
        arrays |= {f"{number}/{name}": array for name, array in _to_arrays(examples).items()}
    metadata = {
        "task": dataset.task,
        "labels": dataset.labels,
        "tokeniser": dataset.tokeniser,
        "statistics": dataset.statistics,
        "splits": list(dataset.splits),
        "phenomena": {name: [example.phenomenon for example in examples] for name, examples in dataset.test.items()},
    }
    arrays["metadata"] = np.frombuffer(json.dumps(metadata).encode(), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read(path: Path, base: Path) -> EncodedTask:
    """Read the archive; a base with another tokeniser is refused."""
    with np.load(path, allow_pickle=False) as arrays:
        metadata: dict[str, Any] = json.loads(arrays["metadata"].tobytes())
        if metadata["tokeniser"] != tokeniser_hash(base):
            raise ValueError(f"{path} was encoded with another tokeniser than that of {base}; prepare it for this base")
        splits = {
            name: _from_arrays(
                {array: arrays[f"{number}/{array}"] for array in ARRAY_TYPES}, metadata["phenomena"].get(name)
            )
            for number, name in enumerate(metadata["splits"])
        }
    return EncodedTask(
        metadata["task"], tuple(metadata["labels"]), metadata["tokeniser"], splits, metadata["statistics"]
    )


def tokeniser_hash(base: Path) -> str:
    """A hash of the tokeniser's file."""
    return hashlib.sha256((base / "tokenizer.json").read_bytes()).hexdigest()[:32]


def _to_arrays(examples: Sequence[EncodedExample]) -> dict[str, NDArray[Any]]:
    arrays = {
        "ids": np.concatenate([example.input_ids for example in examples]),
        "types": np.concatenate([example.token_type_ids for example in examples]),
        "labels": np.concatenate([example.labels for example in examples]),
        "lengths": np.array([len(example) for example in examples]),
    }
    arrays["labels"] = np.where(arrays["labels"] == IGNORE_INDEX, STORED_IGNORE_INDEX, arrays["labels"])
    return {name: arrays[name].astype(dtype) for name, dtype in ARRAY_TYPES.items()}


def _from_arrays(arrays: Mapping[str, NDArray[Any]], phenomena: Sequence[str] | None) -> list[EncodedExample]:
    ids, types, labels, lengths = (arrays[name].astype(np.int64) for name in ARRAY_TYPES)
    ends = np.cumsum(lengths)[:-1]
    labels[labels == STORED_IGNORE_INDEX] = IGNORE_INDEX
    # A tagger has a label for each token, a classifier one for each example.
    example_labels = np.split(labels, ends) if len(labels) == len(ids) else np.split(labels, len(lengths))
    columns = np.split(ids, ends), np.split(types, ends), example_labels, phenomena or [""] * len(lengths)
    return [EncodedExample(*values) for values in zip(*columns, strict=True)]
