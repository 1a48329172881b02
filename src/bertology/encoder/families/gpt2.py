"""GPT-2 (Radford et al. 2019): causal, pre-norm; weights are stored as (in, out)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.encoder.families import LayerSpec, ModelFamily

if TYPE_CHECKING:
    from torch import Tensor


def _feed_forward(layer: Any, states: Tensor) -> Tensor:
    return states + layer.mlp(layer.ln_2(states))


FAMILY = ModelFamily(
    name="GPT-2",
    model_types=("gpt2",),
    layer_classes=("GPT2Block",),
    layer=LayerSpec(
        attention="attn",
        output_projection="attn.c_proj",
        attention_norm=None,
        feed_forward=_feed_forward,
        conv1d_weights=True,
    ),
    embeddings=("wte", "wpe"),
    causal=True,
)
