"""A fast tokeniser as a value: texts in, pieces aligned to words out.

It is a private copy of the tokeniser's definition without truncation and padding, so that nothing done to the
original (transformers switches both on and off in place) changes what is recorded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bertology.corpus.corpus import Input
from bertology.encoder.pieces import Ints, Pieces, Special, align


class Tokeniser:
    """Pieces, their character offsets and which of them are special; the token strings are shared by all inputs."""

    def __init__(
        self, definition: str, *, cls: frozenset[int], sep: frozenset[int], unknown: int | None, split_special: bool
    ) -> None:
        """`definition` is the text of a tokenizer.json; `cls`, `sep` and `unknown` are piece ids."""
        stated = json.loads(definition)
        stated["truncation"] = stated["padding"] = None
        self._definition = json.dumps(stated, sort_keys=True)
        self._tokenizer = Tokenizer.from_str(self._definition)
        self._tokenizer.encode_special_tokens = split_special
        self._roles = [sorted(cls), sorted(sep), unknown, split_special]
        self._unknown = unknown
        vocabulary: dict[str, int] = self._tokenizer.get_vocab(with_added_tokens=True)
        size = max(vocabulary.values(), default=-1) + 1
        self._strings = [""] * size
        for token, piece in vocabulary.items():
            self._strings[piece] = token
        self._kinds = np.full(size, Special.OTHER, np.int32)
        self._kinds[sorted(sep)] = Special.SEP
        self._kinds[sorted(cls)] = Special.CLS

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the definition and of the roles of its special tokens."""
        return hashlib.sha256((self._definition + json.dumps(self._roles)).encode()).hexdigest()[:32]

    def tokenise(self, inputs: Sequence[Input]) -> list[Pieces]:
        """The pieces of each input, special tokens included, nothing truncated."""
        encoded = self._tokenizer.encode_batch([_texts(item) for item in inputs])
        return [self._pieces(item, encoding) for item, encoding in zip(inputs, encoded, strict=True)]

    def _pieces(self, item: Input, encoding: Any) -> Pieces:
        ids = np.asarray(encoding.ids, np.int32)
        part: Ints = np.asarray([-1 if p is None else p for p in encoding.sequence_ids], np.int32)
        offsets: list[tuple[int, int]] = encoding.offsets
        word = np.full(len(ids), -1, np.int32)
        straddling = first_word = 0
        for index, sentence in enumerate(item.parts):
            here: NDArray[np.intp] = np.flatnonzero(part == index)
            found = align([offsets[i] for i in here], sentence.offsets, sentence.text)
            aligned = np.asarray(found.word, np.int32)
            word[here] = np.where(aligned >= 0, aligned + first_word, -1)
            straddling += found.straddling
            first_word += len(sentence)
        strings = self._strings
        return Pieces(
            ids=ids,
            tokens=tuple([strings[i] for i in encoding.ids]),
            types=np.asarray(encoding.type_ids, np.int32),
            part=part,
            word=word,
            special=np.where(part >= 0, np.int32(Special.NONE), self._kinds[ids]),
            words=first_word,
            straddling=straddling,
            unknown=0 if self._unknown is None else int(((ids == self._unknown) & (part >= 0)).sum()),
        )


def _texts(item: Input) -> str | tuple[str, str]:
    if len(item.parts) == 1:
        return item.parts[0].text
    first, second = item.parts
    return first.text, second.text
