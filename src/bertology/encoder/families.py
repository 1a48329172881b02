"""Two families that do not go through transformers' attention interface, taught to call `attend` (MPNet, DeBERTa).

Each function restates the family's own self-attention up to the softmax and hands the rest to `attend`; parity with
the original forward is tested for both. Without an active tap the original forward runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn

from bertology.encoder.attend import active_tap, attend

Forward = Callable[..., Any]


def teach(model: nn.Module) -> int:
    """Make every self-attention of these families in `model` call `attend`; returns how many were taught.

    Teaching twice is teaching once, and a deep copy of a taught model is taught.
    """
    taught = 0
    for module in model.modules():
        forward = FORWARDS.get(type(module).__name__)
        if forward is not None:
            module.forward = MethodType(_or_original(forward), module)
            taught += 1
    return taught


def _or_original(forward: Forward) -> Forward:
    def choose(module: Any, *args: Any, **kwargs: Any) -> Any:
        # The class's own forward, not the instance's: a deep copy must not call the module it was copied from.
        chosen = type(module).forward if active_tap() is None else forward
        return chosen(module, *args, **kwargs)

    return choose


def _mpnet(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | None = None,
    output_attentions: bool = False,
    **_: Any,
) -> tuple[Tensor]:
    shape = (*hidden_states.shape[:-1], -1, module.attention_head_size)
    query, key, value = (
        projection(hidden_states).view(shape).transpose(1, 2) for projection in (module.q, module.k, module.v)
    )
    context = attend(
        _tap(),
        query,
        key,
        value,
        mask=attention_mask,
        bias=position_bias,
        scaling=1 / math.sqrt(module.attention_head_size),
        dropout=module.dropout.p if module.training else 0.0,
    )
    return (module.o(context.transpose(1, 2).reshape((*hidden_states.shape[:-1], -1))),)


def _disentangled(
    module: Any,
    hidden_states: Tensor,
    attention_mask: Tensor,
    output_attentions: bool = False,
    query_states: Tensor | None = None,
    relative_pos: Tensor | None = None,
    rel_embeddings: Tensor | None = None,
) -> tuple[Tensor, None]:
    heads = module.num_attention_heads
    asking = hidden_states if query_states is None else query_states
    query = module.transpose_for_scores(module.query_proj(asking), heads)
    key = module.transpose_for_scores(module.key_proj(hidden_states), heads)
    value = module.transpose_for_scores(module.value_proj(hidden_states), heads)
    terms = 1 + sum(kind in module.pos_att_type for kind in ("c2p", "p2c"))
    bias = None
    if module.relative_attention:
        bias = module.disentangled_attention_bias(query, key, relative_pos, module.pos_dropout(rel_embeddings), terms)
        bias = bias.view(-1, heads, *bias.shape[-2:])
    mask = torch.zeros_like(attention_mask, dtype=query.dtype).masked_fill(
        ~attention_mask.bool(), torch.finfo(query.dtype).min
    )
    split = (-1, heads, hidden_states.shape[1], query.shape[-1])
    context = attend(
        _tap(),
        query.view(split),
        key.view(split),
        value.view(split),
        mask=mask,
        bias=bias,
        scaling=1 / math.sqrt(query.shape[-1] * terms),
        dropout=module.dropout.p if module.training else 0.0,
    )
    return context.transpose(1, 2).reshape((*hidden_states.shape[:-1], -1)), None


def _tap() -> Any:
    return active_tap()


FORWARDS: dict[str, Forward] = {"MPNetSelfAttention": _mpnet, "DisentangledSelfAttention": _disentangled}
