"""What an analysis does about special tokens: keep them, or drop them and renormalise what is left of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from bertology.recording.piece_kinds import KINDS, shares_by_kind

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.recording.frame import Frame

SpecialTokens = Literal["keep", "drop"]

LEAST_SHARE = 1e-6
"""A row that puts less than this on ordinary pieces has no distribution over them to speak of, and does not count."""


def shares_with_ordinary(weights: Tensor, kinds: Tensor, frame: Frame) -> Tensor:
    """(batch, head, kind + 1): shares by kind of target, and that of punctuation where only ordinary pieces count."""
    import torch

    punctuation = KINDS.index("punctuation")
    inner = shares_by_kind(weights, kinds[..., punctuation : punctuation + 1], frame.ordinary)
    return torch.cat([shares_by_kind(weights, kinds, frame.real), inner], -1)
