"""One input as an encoder sees it: word pieces, each aligned by character offsets to the word it belongs to."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]

NOWHERE = -1


class Special(IntEnum):
    """What kind of special token a piece is."""

    NONE = 0
    CLS = 1
    SEP = 2
    OTHER = 3


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of one input.

    `word[i]` is the index of piece i on the word axis of the input (the words of all its parts, one after the
    other) and -1 for special and unaligned pieces; `part[i]` is 0 or 1, and -1 for special pieces. `straddling`
    counts pieces that cover more than one word, `unknown` pieces that stand for whatever the vocabulary lacks.
    """

    ids: Ints
    tokens: tuple[str, ...]
    types: Ints
    part: Ints
    word: Ints
    special: Ints
    words: int
    straddling: int = 0
    unknown: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def vanished(self) -> tuple[int, ...]:
        """Words that no piece belongs to (zero-width characters, or swallowed by a neighbour's piece)."""
        present = set(self.word.tolist())
        return tuple(index for index in range(self.words) if index not in present)

    @property
    def unaligned(self) -> int:
        """How many ordinary pieces belong to no word."""
        return int(((self.word == NOWHERE) & (self.special == Special.NONE)).sum())

    @property
    def split(self) -> int:
        """How many words have more than one piece."""
        _, counts = np.unique(self.word[self.word >= 0], return_counts=True)
        return int((counts > 1).sum())


@dataclass(frozen=True, slots=True)
class Alignment:
    """The word of each piece, and how many pieces cover more than one word."""

    word: tuple[int, ...]
    straddling: int


def align(pieces: Sequence[tuple[int, int]], words: Sequence[tuple[int, int]], text: str) -> Alignment:
    """The word each piece belongs to, both given by their offsets in the text.

    A piece belongs to the word it shares most visible characters with, the earlier one on a tie. A piece of nothing
    but white space (a lone SentencePiece underline, or a space that RoBERTa's tokeniser has trimmed away) belongs to
    the word it lies in, else to the word after it. A piece that touches no word gets -1.
    """
    starts = [start for start, _ in words]
    ends = [end for _, end in words]
    assigned: list[int] = []
    straddling = 0
    for piece_start, piece_end in pieces:
        start, end = piece_start, piece_end
        while start < end and text[start].isspace():
            start += 1
        while end > start and text[end - 1].isspace():
            end -= 1
        blank = start == end
        if blank:
            start, end = piece_start, piece_end
        first, last = bisect_right(ends, start), bisect_left(starts, end)
        if last - first == 1:
            assigned.append(first)
        elif last > first:
            common = (text[max(start, starts[w]) : min(end, ends[w])] for w in range(first, last))
            shared = [len(some if blank else "".join(some.split())) for some in common]
            straddling += sum(count > 0 for count in shared) > 1
            assigned.append(first + shared.index(max(shared)))
        elif blank and first < len(words):
            assigned.append(first)
        else:
            assigned.append(NOWHERE)
    return Alignment(tuple(assigned), straddling)
