"""Transformed values f(x) of Kobayashi et al.: value vectors after a head's part of the output projection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations, PostAttention


def post_attention_and_values(layer: LayerActivations) -> tuple[PostAttention, Tensor]:
    """The layer's output projection, and its value vectors in single precision: (batch, head, token, size)."""
    if layer.post_attention is None or layer.value is None:
        raise Refusal(
            "The attention output projection of this model family is not known",
            "a model of a family listed in `bertology list models`, recorded in a forward pass",
            "Skip this analysis, or choose another model",
        )
    return layer.post_attention, layer.value.float()


def transformed_values_per_head(layer: LayerActivations) -> Tensor:
    """(batch, head, token, size): f(x) of each head, rotated into the head's own dimensions.

    Lengths and angles within a head equal those of f(x) = value x output projection, without bias.
    """
    post_attention, values = post_attention_and_values(layer)
    projection = post_attention.head_projection(values.shape[1]).float()
    rotated = torch.linalg.qr(projection.transpose(-1, -2), mode="r").R
    return values @ rotated.transpose(-1, -2)


def transformed_values(layer: LayerActivations) -> Tensor:
    """(batch, head, token, width): f(x) of each head, in the space of the residual stream."""
    post_attention, values = post_attention_and_values(layer)
    return values @ post_attention.head_projection(values.shape[1]).float()
