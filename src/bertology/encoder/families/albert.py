"""ALBERT (Lan et al. 2020): all layers share their weights, and narrow embeddings are projected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.encoder.families import LayerSpec, ModelFamily

if TYPE_CHECKING:
    from torch import Tensor


def _feed_forward(layer: Any, states: Tensor) -> Tensor:
    return layer.full_layer_layer_norm(layer.ff_chunk(states) + states)


FAMILY = ModelFamily(
    name="ALBERT",
    model_types=("albert",),
    layer_classes=("AlbertLayer",),
    layer=LayerSpec(
        attention="attention",
        output_projection="attention.dense",
        attention_norm="attention.LayerNorm",
        feed_forward=_feed_forward,
        qkv_projections=("attention.query", "attention.key", "attention.value"),
    ),
    embeddings=("embeddings", "embedding_hidden_mapping_in"),
    pretraining_heads=(("mlm", "prediction_logits"), ("sop", "sop_logits")),
)
