"""DeBERTa-v2 and -v3 (He et al. 2021): disentangled attention, outside transformers' attention interface."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bertology.encoder.attention_hook import current_hook, head_changes, hooked_attention
from bertology.encoder.families import LayerSpec, ModelFamily
from bertology.encoder.families.bert import feed_forward
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


def _attention(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor,
    output_attentions: bool = False,
    query_states: Tensor | None = None,
    relative_pos: Tensor | None = None,
    rel_embeddings: Tensor | None = None,
) -> tuple[Tensor, None]:
    """DisentangledSelfAttention.forward up to the softmax, then `hooked_attention`."""
    n_heads = module.num_attention_heads
    queries = hidden_states if query_states is None else query_states
    query = module.transpose_for_scores(module.query_proj(queries), n_heads)
    key = module.transpose_for_scores(module.key_proj(hidden_states), n_heads)
    value = module.transpose_for_scores(module.value_proj(hidden_states), n_heads)
    n_terms = 1 + sum(kind in module.pos_att_type for kind in ("c2p", "p2c"))
    bias = None
    if module.relative_attention:
        bias = module.disentangled_attention_bias(query, key, relative_pos, module.pos_dropout(rel_embeddings), n_terms)
        bias = bias.view(-1, n_heads, *bias.shape[-2:])
    mask = torch.zeros_like(attention_mask, dtype=query.dtype).masked_fill(
        ~attention_mask.bool(), torch.finfo(query.dtype).min
    )
    shape = (-1, n_heads, hidden_states.shape[1], query.shape[-1])
    head_outputs = hooked_attention(
        current_hook(),
        query.view(shape),
        key.view(shape),
        value.view(shape),
        mask=mask,
        bias=bias,
        scaling=1 / math.sqrt(query.shape[-1] * n_terms),
        dropout=module.dropout.p if module.training else 0.0,
        changes=head_changes(module),
    )
    return head_outputs.transpose(1, 2).reshape((*hidden_states.shape[:-1], -1)), None


FAMILY = ModelFamily(
    name="DeBERTa-v2/v3",
    model_types=("deberta-v2",),
    layer_classes=("DebertaV2Layer",),
    layer=LayerSpec(
        attention="attention.self",
        output_projection="attention.output.dense",
        attention_norm="attention.output.LayerNorm",
        feed_forward=feed_forward,
    ),
    patched_attention={"DisentangledSelfAttention": _attention},
)
