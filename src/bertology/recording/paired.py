"""Paired sites: a few numbers of two encoders' maps of the same head on the same input.

The second encoder runs on each batch right before the first, and its maps are kept for that batch only: what leaves is
what any reduced site leaves, and no map is ever stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.encoder.encoder import Batch, Encoder
from bertology.errors import Refusal
from bertology.recording.sites import ReducedSite

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

FINGERPRINT = 16


@dataclass(frozen=True)
class PairedSite:
    """A function of the maps (batch, head, from, to) of one layer in two encoders: (batch, head, *axes) out.

    `labels` name the entries of the last axis. A recording made beside another encoder holds it under its own name.
    """

    name: str
    axes: tuple[str, ...]
    about: str
    compare: Callable[[Tensor, Tensor, Frame], Tensor]
    labels: tuple[str, ...] = ()
    version: int = 1

    @property
    def identity(self) -> str:
        """What a recording has this site under."""
        return f"{self.name}.v{self.version}"

    def beside(self, other: Encoder) -> ReducedSite:
        """The reduced site that compares whatever is recorded with what `other` does on the same pieces."""

        def prepare(frame: Frame) -> list[Tensor]:
            import torch

            _refuse_other_pieces(other, frame)
            maps: list[Tensor] = []
            given = frame.batch
            batch = Batch(given.ids.to(other.device), given.types.to(other.device), given.mask.to(other.device))
            with torch.inference_mode():
                other.run(batch, on_layer=lambda layer: maps.append(layer.attention))
            return maps

        def reduce(layer: LayerActivations, frame: Frame, maps: list[Tensor]) -> Tensor:
            own = layer.attention
            if layer.layer >= len(maps) or own.shape[1] != maps[layer.layer].shape[1]:
                raise Refusal(
                    f"{other.name} has {len(maps)} layers of {other.heads} heads, and what it is compared with has not",
                    "two models with as many layers and heads",
                    "Compare a model with another state of itself; geometry/similarity takes models of any depth",
                )
            return self.compare(own, maps[layer.layer].to(own), frame)

        name = f"{self.name}.{other.fingerprint[:FINGERPRINT]}"
        return ReducedSite(name, self.axes, self.about, reduce, self.labels, prepare, version=self.version)


def _refuse_other_pieces(other: Encoder, frame: Frame) -> None:
    """An input may have been cut, but each of its pieces must be one that the other encoder has for the same text."""
    own = other.tokenise([entry.input for entry in frame.entries])
    for entry, pieces in zip(frame.entries, own, strict=True):
        if not np.isin(entry.pieces.ids, pieces.ids).all():
            raise Refusal(
                f"{other.name} cuts the text into other pieces than the model it is compared with",
                "two models with the same vocabulary",
                "Compare a model with another state of itself; geometry/similarity compares words of any two models",
            )
