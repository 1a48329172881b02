"""Llama (Touvron et al. 2023) and Mistral: causal, pre-norm, rotary positions, heads that share keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.encoder.families import LayerSpec, ModelFamily

if TYPE_CHECKING:
    from torch import Tensor


def _feed_forward(layer: Any, states: Tensor) -> Tensor:
    return states + layer.mlp(layer.post_attention_layernorm(states))


LLAMA_LAYER = LayerSpec(
    attention="self_attn", output_projection="self_attn.o_proj", attention_norm=None, feed_forward=_feed_forward
)

FAMILY = ModelFamily(
    name="Llama",
    model_types=("llama", "mistral"),
    layer_classes=("LlamaDecoderLayer", "MistralDecoderLayer"),
    layer=LLAMA_LAYER,
    embeddings=("embed_tokens",),
    causal=True,
)
