"""What attention weighs: f(x), the value vector of a piece taken through a head's part of the output projection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertology.errors import Refusal

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import Block, LayerActivations


def block_and_values(layer: LayerActivations) -> tuple[Block, Tensor]:
    """What surrounds the layer's attention, and its value vectors in single precision: (batch, head, piece, size)."""
    if layer.block is None or layer.value is None:
        raise Refusal(
            "The output projection of this family's attention is not known",
            "a model of a family whose value vectors can be followed (see encoder/blocks.py)",
            "Leave this analysis out, or choose another model",
        )
    return layer.block, layer.value.float()


def head_vectors(layer: LayerActivations) -> Tensor:
    """(batch, head, piece, size): f(x) of each head, turned so that it needs no more than the head's own dimensions.

    Lengths and angles within a head are those of f(x) = value x output projection, without its bias.
    """
    import torch

    block, values = block_and_values(layer)
    projection = block.projection(values.shape[1]).float()
    turned = torch.linalg.qr(projection.transpose(-1, -2), mode="r").R
    return values @ turned.transpose(-1, -2)


def whole_vectors(layer: LayerActivations) -> Tensor:
    """(batch, head, piece, width): f(x) of each head as it is added to the residual."""
    block, values = block_and_values(layer)
    return values @ block.projection(values.shape[1]).float()
