"""What each piece of an input can see in a layer, told by the layer's mask."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame


def seen_pieces(layer: LayerActivations, frame: Frame) -> Tensor:
    """(batch, head, from, to) booleans, the same for all heads: padding neither sees nor is seen.

    Weights do not tell it: one that is small enough is rounded to 0, in half precision one below 3e-8.
    """
    from bertology.encoder.attend import even_attention

    pairs = frame.real[:, None, :, None] & frame.real[:, None, None, :]
    seen = pairs & (even_attention(layer.mask, layer.attention) > 0)
    return seen.expand(-1, layer.heads, -1, -1)
