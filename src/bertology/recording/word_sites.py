"""The reduced site between words: which word each word attends to most.

The strongest word is all that accuracies of heads rest on (clark2019, section 4.2): one number a word, head and
direction leaves the device, and no map.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from bertology.recording.sites import ReducedSite
from bertology.recording.wanted import Wanted

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame
    from bertology.recording.word_level import Words

Rows = Literal["mean", "first", "max"]
DIRECTIONS = ("attends to", "attended by")
NOTHING = -1
"""Stands for a word without pieces, or one with no other word beside it."""


class _Prepared(NamedTuple):
    """`barred` is (batch, 1, word, word): a word and itself, and words without pieces."""

    words: Words
    barred: Tensor


@cache
def strongest_word(rows: Rows = "mean") -> ReducedSite:
    """The site that holds for each word the other word it attends to most, and the one that attends most to it.

    (direction, word) with `DIRECTIONS` along the first axis; of words that get alike the first; `NOTHING` where there
    is none. Attention to a word is the sum over its pieces, `rows` says how the rows of its pieces become one.
    """
    return ReducedSite(
        "attention.strongest_word" + ("" if rows == "mean" else f".{rows}"),
        ("direction", "word"),
        f"the other word each word attends to most, and the one that attends most to it (rows of pieces: {rows})",
        _strongest(rows),
        prepare=_prepare,
        wants=_wanted if rows == "mean" else None,
    )


def _prepare(frame: Frame) -> _Prepared:
    import torch

    from bertology.recording.word_level import words_of

    words = words_of(frame)
    absent = ~words.there
    itself = torch.eye(words.count, dtype=torch.bool, device=absent.device)
    return _Prepared(words, (itself | absent[:, :, None] | absent[:, None, :])[:, None])


def _wanted(prepared: _Prepared) -> Wanted:
    return Wanted(words=prepared.words)


def _strongest(rows: Rows) -> Callable[[LayerActivations, Frame, Any], Tensor]:
    def reduce(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
        """(batch, head, 2, word) places of words."""
        from bertology.recording.word_level import strongest_words

        return strongest_words(layer, prepared.words, prepared.barred, rows)

    return reduce
