"""One input as an encoder sees it: word pieces, each aligned by character offsets to the word it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Offsets = Sequence[tuple[int, int]]
"""Where stretches of a text begin and end, in characters."""

NOWHERE = -1


class Special(IntEnum):
    """What kind of special token a piece is."""

    NONE = 0
    CLS = 1
    SEP = 2
    OTHER = 3


def ends_of(word: NDArray[np.integer], start: int, end: int) -> NDArray[np.int64] | None:
    """The first and the last of the pieces of words `start` to `end`, by the words of all pieces.

    None where one of these words has no piece.
    """
    inside = np.flatnonzero((word >= start) & (word < end))
    whole = set(word[inside].tolist()) == set(range(start, end))
    return inside[[0, -1]].astype(np.int64) if whole else None


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
        return tuple(np.flatnonzero(self._counts == 0).tolist())

    @property
    def unaligned(self) -> int:
        """How many ordinary pieces belong to no word."""
        return int(((self.word == NOWHERE) & (self.special == Special.NONE)).sum())

    @property
    def split(self) -> int:
        """How many words have more than one piece."""
        return int((self._counts > 1).sum())

    @property
    def _counts(self) -> NDArray[np.intp]:
        """(word,) how many pieces each word has."""
        return np.bincount(self.word[self.word >= 0], minlength=self.words)


@dataclass(frozen=True, slots=True)
class Alignment:
    """The word of each piece, and how many pieces cover more than one word."""

    word: tuple[int, ...]
    straddling: int


def align(pieces: Offsets, words: Offsets, text: str) -> Alignment:
    """The word each piece belongs to, both given by their offsets in the text.

    A piece belongs to the word it shares most visible characters with, the earlier one on a tie. A piece of nothing
    but white space (a lone SentencePiece underline, or a space that RoBERTa's tokeniser has trimmed away) belongs to
    the word it lies in, else to the word after it. A piece that touches no word gets -1.
    """
    given, spans = _array(pieces), _array(words)
    start, end = _trimmed(given, text)
    blank = start == end
    start, end = np.where(blank, given.T, (start, end))
    first, last = np.searchsorted(spans[:, 1], start, "right"), np.searchsorted(spans[:, 0], end, "left")
    one = (last - first == 1) | ((last <= first) & blank & (first < len(spans)))
    assigned: list[int] = np.where(one, first, NOWHERE).tolist()
    straddling = 0
    for piece in np.flatnonzero(last - first > 1).tolist():
        here = spans[first[piece] : last[piece]]
        common = (text[max(start[piece], low) : min(end[piece], high)] for low, high in here.tolist())
        shared = [len(some if blank[piece] else "".join(some.split())) for some in common]
        straddling += sum(count > 0 for count in shared) > 1
        assigned[piece] = int(first[piece]) + shared.index(max(shared))
    return Alignment(tuple(assigned), straddling)


def _array(offsets: Offsets) -> NDArray[np.int64]:
    """(stretch, 2) where stretches of a text begin and end."""
    return np.fromiter(chain.from_iterable(offsets), np.int64, 2 * len(offsets)).reshape(-1, 2)


def _trimmed(offsets: NDArray[np.int64], text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where stretches of the text begin and end without white space around them; twice the end for nothing but that."""
    space = _spaces()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    visible = ~space[np.minimum(codes, len(space) - 1)]
    places = np.arange(len(codes))
    following = np.minimum.accumulate(np.append(np.where(visible, places, len(codes)), len(codes))[::-1])[::-1]
    preceding = np.maximum.accumulate(np.append(0, np.where(visible, places + 1, 0)))
    start = np.minimum(following[offsets[:, 0]], offsets[:, 1])
    return start, np.maximum(preceding[offsets[:, 1]], start)


@cache
def _spaces() -> NDArray[np.bool_]:
    """Which characters are white space. The last one has the number 0x3000; the last entry stands for all beyond."""
    return np.array([chr(code).isspace() for code in range(0x3002)])
