"""Visibility: the tokens that each token can attend to in a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations
    from bertology.encoder.token_batch import TokenBatch


def visibility_mask(layer: LayerActivations, batch: TokenBatch) -> Tensor:
    """(batch, head, from, to) booleans from the layer's attention mask, equal for all heads; False for padding.

    Attention weights do not show visibility: small ones are rounded to 0, in half precision those below 3e-8.
    """
    from bertology.encoder.attention_hook import uniform_attention

    pairs = batch.token_mask[:, None, :, None] & batch.token_mask[:, None, None, :]
    visible = pairs & (uniform_attention(layer.attention_mask, layer.attention) > 0)
    return visible.expand(-1, layer.heads, -1, -1)
