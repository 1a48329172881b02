"""The encoder of T5 (Raffel et al. 2020) and mT5: pre-norm, relative position bias, scores without scaling.

Its attention is outside transformers' attention interface in versions before 5.10 or so, and its stack has a
configuration of its own; the first layer computes the position bias of all layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.encoder.attention_hook import current_hook, head_changes, hooked_attention
from bertology.encoder.families import LayerSpec, ModelFamily
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


def _attention(
    module: Any,
    hidden_states: Tensor,
    mask: Tensor | None = None,
    key_value_states: Tensor | None = None,
    position_bias: Tensor | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor | None, None]:
    """T5Attention.forward of an encoder up to the softmax, then `hooked_attention`."""
    assert key_value_states is None, "an encoder has no cross-attention"
    shape = (*hidden_states.shape[:-1], module.n_heads, module.key_value_proj_dim)
    query, key, value = (
        projection(hidden_states).view(shape).transpose(1, 2) for projection in (module.q, module.k, module.v)
    )
    if position_bias is None and module.has_relative_attention_bias:
        position_bias = module.compute_bias(shape[1], shape[1], device=query.device)
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, torch.finfo(query.dtype).min)
    head_outputs = hooked_attention(
        current_hook(),
        query,
        key,
        value,
        mask=mask,
        bias=position_bias,
        scaling=1.0,
        dropout=module.dropout if module.training else 0.0,
        changes=head_changes(module),
    )
    return module.o(head_outputs.transpose(1, 2).flatten(2)), position_bias, None


def _feed_forward(layer: Any, states: Tensor) -> Tensor:
    return layer.layer[-1](states)


FAMILY = ModelFamily(
    name="T5 (encoder)",
    model_types=("t5", "mt5"),
    layer_classes=("T5Block", "MT5Block"),
    layer=LayerSpec(
        attention="layer.0.SelfAttention",
        output_projection="layer.0.SelfAttention.o",
        attention_norm=None,
        feed_forward=_feed_forward,
    ),
    embeddings=("shared", "embed_tokens"),
    patched_attention={"T5Attention": _attention, "MT5Attention": _attention},
    encoder_classes={"t5": "T5EncoderModel", "mt5": "MT5EncoderModel"},
)
