"""From queries and keys to scores, and from scores to attention: whole, or a few heads at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

CELLS_AT_ONCE = 2**19
"""How many weights a processor makes at once: what its cache holds of scores, attention and what is made of them."""


def scores_of(query: Tensor, key: Tensor, scaling: float, terms: Sequence[Tensor | None]) -> Tensor:
    """(batch, head, from, to): products of queries and keys, and what is added to them."""
    scores = torch.matmul(query * scaling, key.transpose(-1, -2))
    for term in terms:
        if term is not None:
            scores += term  # over itself: a map is the largest thing a pass makes
    return scores


def softmax(scores: Tensor) -> Tensor:
    """Rows that sum to 1, at least in single precision."""
    return torch.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))


def a_few_heads_at_a_time(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, terms: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor]:
    """Attention and context, without gradients.

    What is as large as a map is made while the last of it is still in a processor's cache, over what was there before.
    """
    batch, heads, size = query.shape[:3]
    attention = query.new_empty(batch, heads, size, size)
    context = query.new_empty(batch, heads, size, value.shape[-1])
    query, key = query * scaling, key.transpose(-1, -2)
    added = [term.expand(batch, heads, -1, -1) for term in terms if term is not None]
    entries = min(batch, max(1, CELLS_AT_ONCE // (heads * size * size)))
    at_once = heads if entries > 1 else min(heads, max(1, CELLS_AT_ONCE // (size * size)))
    room = query.new_empty(entries, at_once, size, size)
    for row in range(0, batch, entries):
        for head in range(0, heads, at_once):
            some = (slice(row, row + entries), slice(head, head + at_once))
            asked = query[some]
            own = torch.matmul(asked, key[some], out=room[: asked.shape[0], : asked.shape[1]])
            for term in added:
                own += term[some]
            torch.softmax(own, dim=-1, out=attention[some])
            torch.matmul(attention[some], value[some], out=context[some])
    return attention, context
