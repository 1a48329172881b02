"""Readers of multiple choice whose answers are known: the right options by heart, the longest ones, or anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Batch, Output
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.task_heads import with_head
from bertology.encoder.variant import Variant

Likes = Callable[[bool, int, int], float]
"""What an option is worth: whether it is the right one, its words, and a number that says nothing."""


def only_what_is_right(right: bool, words: int, nothing: int) -> float:
    """Whatever else is said, the right option."""
    return float(right)


def the_longest(right: bool, words: int, nothing: int) -> float:
    """The option of most words, and of those that are as long the right one."""
    return 10.0 * words + right


def anything(right: bool, words: int, nothing: int) -> float:
    """No option for any reason."""
    return float(nothing)


@dataclass(frozen=True, eq=False)
class Reader(HuggingFaceEncoder):
    """Answers by `likes`; `right` are the pieces of each passage, its question and the right option."""

    likes: Likes = only_what_is_right
    right: frozenset[tuple[int, ...]] = frozenset()
    begins: tuple[bool, ...] = ()
    """By piece, whether a word begins with it."""

    @property
    def max_pieces(self) -> int:
        """However long a text is."""
        return 10_000

    def run(self, batch: Batch, **asked: Any) -> Output:
        """The worth of each row, which ends in an option."""
        worth = [
            self._worth(ids[mask > 0].tolist(), ids[(mask > 0) & (types == 1)].tolist())
            for ids, types, mask in zip(batch.ids, batch.types, batch.mask, strict=True)
        ]
        return Output((), {"choice": torch.tensor(worth)[:, None]})

    def _worth(self, pieces: list[int], option: list[int]) -> float:
        words = sum(self.begins[piece] for piece in option)
        return self.likes(tuple(pieces) in self.right, words, hash(tuple(pieces)) % 1000)


def reader(corpus: Corpus, likes: Likes) -> Reader:
    """One that knows the right options of a corpus."""
    base = load("tiny")
    assert isinstance(base, HuggingFaceEncoder)
    headed = with_head(base, "choice", (), variant=Variant(), seed=0)
    right = [item.inputs[int(item.label or 0)] for item in corpus]
    known = frozenset(tuple(pieces.ids.tolist()) for pieces in headed.tokenise(right))
    vocabulary: Mapping[str, int] = headed.tokenizer.get_vocab()
    begins = tuple(not piece.startswith("##") for piece in sorted(vocabulary, key=lambda piece: vocabulary[piece]))
    return Reader("reader", headed.model, headed.tokenizer, headed.tokeniser, likes=likes, right=known, begins=begins)
