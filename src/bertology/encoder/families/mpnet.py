"""MPNet (Song et al. 2020): relative position bias, and self-attention outside transformers' attention interface."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bertology.encoder.attention_hook import current_hook, head_changes, hooked_attention
from bertology.encoder.families import LayerSpec, ModelFamily, position_offset_after_padding
from bertology.encoder.families.bert import feed_forward

if TYPE_CHECKING:
    from torch import Tensor


def _attention(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | None = None,
    output_attentions: bool = False,
    **_: Any,
) -> tuple[Tensor]:
    """MPNetSelfAttention.forward up to the softmax, then `hooked_attention`."""
    shape = (*hidden_states.shape[:-1], -1, module.attention_head_size)
    query, key, value = (
        projection(hidden_states).view(shape).transpose(1, 2) for projection in (module.q, module.k, module.v)
    )
    head_outputs = hooked_attention(
        current_hook(),
        query,
        key,
        value,
        mask=attention_mask,
        bias=position_bias,
        scaling=1 / math.sqrt(module.attention_head_size),
        dropout=module.dropout.p if module.training else 0.0,
        changes=head_changes(module),
    )
    return (module.o(head_outputs.transpose(1, 2).reshape((*hidden_states.shape[:-1], -1))),)


FAMILY = ModelFamily(
    name="MPNet",
    model_types=("mpnet",),
    layer_classes=("MPNetLayer",),
    layer=LayerSpec(
        attention="attention.attn",
        output_projection="attention.attn.o",
        attention_norm="attention.LayerNorm",
        feed_forward=feed_forward,
    ),
    position_offset=position_offset_after_padding,
    patched_attention={"MPNetSelfAttention": _attention},
)
