"""The kinds of pieces that attention falls on: [CLS], [SEP], punctuation, all other; each real piece is one of them."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.pieces import Special
from bertology.recording.entry import Entry

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.recording.frame import Frame

KINDS = ("[CLS]", "[SEP]", "punctuation", "other")
SOURCES = ("all", "ordinary", "separators")
"""Which real pieces are summed over, as sources of attention."""


def kinds_of(frame: Frame) -> Tensor:
    """(batch, piece, kind) booleans, all False for padding."""
    import torch

    cls, sep = (frame.real & (frame.special == kind) for kind in (Special.CLS, Special.SEP))
    punct = punctuation(frame) & frame.real
    return torch.stack([cls, sep, punct, frame.real & ~cls & ~sep & ~punct], -1)


def punctuation(frame: Frame) -> Tensor:
    """(batch, piece): ordinary pieces that consist of punctuation only."""
    return frame.per_piece([_punctuation(entry) for entry in frame.entries])


def _punctuation(entry: Entry) -> NDArray[np.bool_]:
    pieces = entry.pieces
    return np.array([_is_punctuation(token) for token in pieces.tokens], np.bool_) & (pieces.special == Special.NONE)


@lru_cache(maxsize=2**16)
def _is_punctuation(token: str) -> bool:
    bare = token.strip("▁Ġ#") or token
    return bool(bare) and all(unicodedata.category(character).startswith("P") for character in bare)


def shares_by_kind(weights: Tensor, kinds: Tensor, real: Tensor) -> Tensor:
    """(batch, head, kind) the share of each row of weights that falls on a kind, mean over the rows that have any.

    Weights are (batch, head, from, to) and not negative. NaN where a sentence has no piece of that kind.
    """
    flags = kinds.to(weights.dtype).unsqueeze(1)
    totals = (weights @ real.to(weights.dtype)[:, None, :, None]).squeeze(-1)
    counted = real.unsqueeze(1) & (totals > 0)
    shares = (weights @ flags) / totals.where(counted, 1).unsqueeze(-1)
    mean = (shares * counted.unsqueeze(-1)).sum(2) / counted.sum(2).unsqueeze(-1)
    return mean.where(kinds.any(1).unsqueeze(1), float("nan"))
