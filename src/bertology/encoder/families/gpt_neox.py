"""GPT-NeoX and Pythia (Biderman et al. 2023): causal, rotary positions, feed-forward block beside attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bertology.encoder.families import LayerSpec, ModelFamily

if TYPE_CHECKING:
    from torch import Tensor


def _feed_forward(layer: Any, states: Tensor) -> Tensor:
    return states if layer.use_parallel_residual else states + layer.mlp(layer.post_attention_layernorm(states))


def _parallel(layer: Any) -> Callable[[Tensor], Tensor] | None:
    if not layer.use_parallel_residual:
        return None
    return lambda residual: layer.mlp(layer.post_attention_layernorm(residual))


FAMILY = ModelFamily(
    name="GPT-NeoX",
    model_types=("gpt_neox",),
    layer_classes=("GPTNeoXLayer",),
    layer=LayerSpec(
        attention="attention",
        output_projection="attention.dense",
        attention_norm=None,
        feed_forward=_feed_forward,
        parallel_feed_forward=_parallel,
    ),
    embeddings=("embed_in",),
    causal=True,
)
