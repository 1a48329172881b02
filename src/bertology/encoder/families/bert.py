"""BERT (Devlin et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.encoder.families import LayerSpec, ModelFamily

if TYPE_CHECKING:
    from torch import Tensor


def feed_forward(layer: Any, states: Tensor) -> Tensor:
    """The feed-forward block of BERT and of families derived from it, with residual and LayerNorm."""
    return layer.output(layer.intermediate(states), states)


BERT_LAYER = LayerSpec(
    attention="attention.self",
    output_projection="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    feed_forward=feed_forward,
    qkv_projections=("attention.self.query", "attention.self.key", "attention.self.value"),
)

FAMILY = ModelFamily(
    name="BERT",
    model_types=("bert",),
    layer_classes=("BertLayer",),
    layer=BERT_LAYER,
    prunable=True,
    pretraining_heads=(("mlm", "prediction_logits"), ("nsp", "seq_relationship_logits")),
)
