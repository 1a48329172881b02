"""Which statistics of a layer are taken without a map: where it has none yet, and Triton is there to work on it."""

from __future__ import annotations

from functools import cache, cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.recording.frame import Frame

if TYPE_CHECKING:
    from bertology.recording.kernel_calls import Asked


class FusedRows:
    """Rows of maps that were never made; see `Rows`."""

    def __init__(self, asked: Asked, frame: Frame) -> None:
        from bertology.recording.kernel_calls import row_sums

        self.asked, self._frame = asked, frame
        self._sums = sums = row_sums(asked, frame.features)
        self.normaliser, self.ordinary = sums.normaliser, sums.ordinary
        self.peak, self.ordinary_peak = sums.peak, sums.ordinary_peak
        self.information, self.ordinary_information = sums.information, sums.ordinary_information

    @cached_property
    def to_kinds(self) -> Tensor:
        """(batch, head, kind): what all real pieces together give to each of `KINDS`."""
        return torch.einsum("bhnk,bn->bhk", self._sums.kinds, self._frame.real.float())

    @cached_property
    def distances(self) -> Tensor:
        """(batch, head, 4): attention times distance, in pieces and in words, over all pairs and over ordinary ones."""
        return torch.einsum("bhnk,bnk->bhk", self._sums.distances, self._frame.row_weights)


def fused_rows(layer: LayerActivations, frame: Frame) -> FusedRows | None:
    """The rows of a layer without maps; None where it has maps, or where there is no way but through them."""
    asked = _asked(layer)
    return None if asked is None else FusedRows(asked, frame)


def mapless(layer: LayerActivations) -> bool:
    """Whether the layer has no maps and needs none for its rows, pairs and strongest words."""
    return _asked(layer) is not None


def _asked(layer: LayerActivations) -> Asked | None:
    if layer.maps is not None or layer.query is None or layer.key is None or not _kernels():
        return None
    from bertology.recording.kernel_calls import asked_of

    return asked_of(layer.query, layer.key, layer.mask, layer.scaling)


@cache
def _kernels() -> bool:
    return find_spec("triton") is not None
