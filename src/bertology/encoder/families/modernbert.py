"""ModernBERT (Warner et al. 2024): pre-norm, rotary positions, layers with a sliding attention window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.encoder.families import LayerSpec, ModelFamily

if TYPE_CHECKING:
    from torch import Tensor


def _feed_forward(layer: Any, states: Tensor) -> Tensor:
    return states + layer.mlp(layer.mlp_norm(states))


FAMILY = ModelFamily(
    name="ModernBERT",
    model_types=("modernbert",),
    layer_classes=("ModernBertEncoderLayer",),
    layer=LayerSpec(attention="attn", output_projection="attn.Wo", attention_norm=None, feed_forward=_feed_forward),
)
