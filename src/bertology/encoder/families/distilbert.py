"""DistilBERT (Sanh et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.encoder.families import LayerSpec, ModelFamily

if TYPE_CHECKING:
    from torch import Tensor


def _feed_forward(layer: Any, states: Tensor) -> Tensor:
    return layer.output_layer_norm(layer.ffn(states) + states)


FAMILY = ModelFamily(
    name="DistilBERT",
    model_types=("distilbert",),
    layer_classes=("TransformerBlock",),
    layer=LayerSpec(
        attention="attention",
        output_projection="attention.out_lin",
        attention_norm="sa_layer_norm",
        feed_forward=_feed_forward,
        qkv_projections=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    ),
    prunable=True,
)
