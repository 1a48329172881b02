"""The encoded examples of one task and its baselines in one file, for training on another machine.

Readers of texts and a bag of words are needed only where the file is made. It names the tokeniser whose pieces it
holds, and is refused for a base with another.
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
from pretraining.partners.baselines import baselines
from pretraining.partners.data import TASKS, Material

LONGEST = 128
TRAIN, STOP = "train", "stop"
FORMS: Mapping[str, type[np.integer[Any]]] = {
    "ids": np.uint16,
    "types": np.uint8,
    "labels": np.int8,
    "lengths": np.uint8,
}
"""The arrays of a part, those of its examples one after the other."""
NO_LABEL = -1


@dataclass(frozen=True)
class Pack:
    """The examples of one partner by part; `facts` holds what is only reported: items cut, and the baselines."""

    task: str
    labels: tuple[str, ...]
    tokeniser: str
    parts: dict[str, list[EncodedExample]]
    facts: dict[str, Any]

    @property
    def tags(self) -> bool:
        """Whether every word has a label, not the whole."""
        return self.task == "ner"

    @property
    def dev(self) -> dict[str, list[EncodedExample]]:
        """The parts that judge."""
        return {name: some for name, some in self.parts.items() if name not in {TRAIN, STOP}}


def prepare(task: str, base: Path, data: Path) -> Pack:
    """Read the data of a task as pieces of the base."""
    return packed(task, TASKS[task](data), load_directory(base).tokenise, tokeniser_of(base))


def packed(
    task: str, material: Material, tokenise: TokeniseFunction, tokeniser: str, *, longest: int = LONGEST
) -> Pack:
    """Material as a pack, with its baselines."""
    tags = task == "ner"
    see = encode_tagging if tags else encode_classification
    parts = {TRAIN: material.train, STOP: material.stop, **material.dev}
    seen = {name: see(items, tokenise, material.labels, max_length=longest) for name, items in parts.items()}
    facts = {
        "cut": {name: part.n_truncated for name, part in seen.items()},
        "baselines": baselines(seen[TRAIN], {name: seen[name] for name in material.dev}, tags=tags),
    }
    return Pack(task, material.labels, tokeniser, {name: part.encoded for name, part in seen.items()}, facts)


def write(pack: Pack, path: Path) -> None:
    """The pack as one compressed file of arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    for place, examples in enumerate(pack.parts.values()):
        arrays |= {f"{place}/{name}": array for name, array in _arrays(examples).items()}
    kinds = {
        name: [example.phenomenon for example in some] for name, some in pack.parts.items() if name not in {TRAIN, STOP}
    }
    about = {"task": pack.task, "labels": pack.labels, "tokeniser": pack.tokeniser, "facts": pack.facts,
             "parts": list(pack.parts), "kinds": kinds}  # fmt: skip
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def read(path: Path, base: Path) -> Pack:
    """The pack in a file, refused for a base with another tokeniser."""
    with np.load(path, allow_pickle=False) as arrays:
        about: dict[str, Any] = json.loads(arrays["about"].tobytes())
        if about["tokeniser"] != tokeniser_of(base):
            raise ValueError(f"{path} holds pieces of another tokeniser than {base} has; prepare it for this base")
        parts = {
            name: _examples({form: arrays[f"{place}/{form}"] for form in FORMS}, about["kinds"].get(name))
            for place, name in enumerate(about["parts"])
        }
    return Pack(about["task"], tuple(about["labels"]), about["tokeniser"], parts, about["facts"])


def tokeniser_of(base: Path) -> str:
    """A hash of the tokeniser's definition as it lies in its file."""
    return hashlib.sha256((base / "tokenizer.json").read_bytes()).hexdigest()[:32]


def _arrays(examples: Sequence[EncodedExample]) -> dict[str, NDArray[Any]]:
    wide = {
        "ids": np.concatenate([example.input_ids for example in examples]),
        "types": np.concatenate([example.token_type_ids for example in examples]),
        "labels": np.concatenate([example.labels for example in examples]),
        "lengths": np.array([len(example) for example in examples]),
    }
    wide["labels"] = np.where(wide["labels"] == IGNORE_INDEX, NO_LABEL, wide["labels"])
    return {name: wide[name].astype(form) for name, form in FORMS.items()}


def _examples(arrays: Mapping[str, NDArray[Any]], kinds: Sequence[str] | None) -> list[EncodedExample]:
    ids, types, labels, lengths = (arrays[name].astype(np.int64) for name in FORMS)
    ends = np.cumsum(lengths)[:-1]
    labels[labels == NO_LABEL] = IGNORE_INDEX
    labelled = np.split(labels, ends) if len(labels) == len(ids) else np.split(labels, len(lengths))
    return [
        EncodedExample(*one)
        for one in zip(np.split(ids, ends), np.split(types, ends), labelled, kinds or [""] * len(lengths), strict=True)
    ]
