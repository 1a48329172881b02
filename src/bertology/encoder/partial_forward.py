"""Parts of a layer: what follows its heads, and its output at selected positions only.

Disabling a head changes nothing before that head's output. The head outputs of a layer are kept, and every
intervention resumes there, without projections and attention.

Of the last layer only the positions that a task head reads are needed, often [CLS] alone. Then the query is
projected instead of all keys and values: a score is q (K h + k) = (q K) h + q k, where q k is the same for all tokens
and cancels in the softmax; the output is V (mean of h under attention) + v, because attention sums to 1. The results
are those of the full layer up to the order of sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bertology.encoder.attention_hook import (
    UNCHANGED,
    Gates,
    LayerActivations,
    PostAttention,
    apply_scale_and_offset,
    head_changes,
    select_uniform,
    softmax,
    uniform_attention,
)
from bertology.encoder.families import layer_spec
from bertology.encoder.layer_hooks import build_post_attention
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor, nn

MAX_SPARSE_FRACTION = 0.25
"""Up to this fraction of the positions, projected queries are cheaper, at any length up to 512."""


@dataclass(frozen=True, eq=False)
class ReadPositions:
    """Token positions that a task head reads, (row, k), and the attention mask of the rows as booleans."""

    positions: Tensor
    attention_mask: Tensor

    @property
    def is_sparse(self) -> bool:
        """Whether to compute these positions alone."""
        return self.positions.shape[1] <= MAX_SPARSE_FRACTION * self.attention_mask.shape[1]

    def repeat(self, repeats: int) -> ReadPositions:
        """The positions of all rows, repeated."""
        return ReadPositions(self.positions.repeat(repeats, 1), self.attention_mask.repeat(repeats, 1))

    def gather(self, states: Tensor) -> Tensor:
        """(row, k, width) of (row, token, width)."""
        return states.gather(1, self.positions[..., None].expand(-1, -1, states.shape[-1]))

    def gather_heads(self, head_outputs: Tensor) -> Tensor:
        """(row, head, k, size) of (row, head, token, size)."""
        indices = self.positions[:, None, :, None].expand(-1, head_outputs.shape[1], -1, head_outputs.shape[-1])
        return head_outputs.gather(2, indices)


@dataclass(frozen=True, eq=False)
class HeadOutputs:
    """Head outputs of one layer, (row, head, token, size), and the part of the layer after them.

    `uniform_outputs` are the outputs under uniform attention.
    """

    outputs: Tensor
    uniform_outputs: Tensor
    post_attention: PostAttention

    @classmethod
    def from_activations(cls, layer: LayerActivations) -> HeadOutputs:
        """The head outputs in the activations of a forward pass."""
        assert layer.head_outputs is not None and layer.value is not None and layer.post_attention is not None
        uniform = uniform_attention(layer.attention_mask, layer.attention).to(layer.value.dtype) @ layer.value
        return cls(layer.head_outputs, uniform, layer.post_attention)

    def at_positions(self, read_positions: ReadPositions) -> HeadOutputs:
        """The same at selected positions."""
        post_attention = replace(self.post_attention, residual=read_positions.gather(self.post_attention.residual))
        return HeadOutputs(
            read_positions.gather_heads(self.outputs), read_positions.gather_heads(self.uniform_outputs), post_attention
        )

    def forward_gated(self, gates: Gates, layer: int, repeats: int) -> Tensor:
        """(row, token, width) output of the layer for all rows, repeated, each under its own gates."""
        assert gates.zeroed_values is None, "zeroed values act before the head outputs"
        outputs = _repeat_rows(self.outputs, repeats)
        if gates.uniform is not None:
            outputs = select_uniform(gates.uniform[layer], _repeat_rows(self.uniform_outputs, repeats), outputs)
        return self.post_attention.forward(apply_scale_and_offset(outputs, gates, layer))


def _repeat_rows(head_outputs: Tensor, repeats: int) -> Tensor:
    """All rows repeated, in the memory layout that the output projection reads."""
    return head_outputs.transpose(1, 2).repeat(repeats, 1, 1, 1).transpose(1, 2)


def has_plain_qkv(layer: nn.Module) -> bool:
    """Whether queries, keys and values are linear in the layer's input, so that it can run at selected positions."""
    spec = layer_spec(layer)
    if spec is None or spec.qkv_projections is None:
        return False
    return head_changes(layer.get_submodule(spec.attention)) == UNCHANGED


def forward_at_positions(layer: nn.Module, states: Tensor, read_positions: ReadPositions, n_heads: int) -> Tensor:
    """(row, k, width) output of a layer at selected positions."""
    post_attention = build_post_attention(layer, read_positions.gather(states))
    return post_attention.forward(
        _attend_at_positions(layer, states, post_attention.residual, read_positions.attention_mask, n_heads)
    )


def _attend_at_positions(
    layer: nn.Module, states: Tensor, query_states: Tensor, attention_mask: Tensor, n_heads: int
) -> Tensor:
    """(row, head, k, size) head outputs at the positions of the query states."""
    spec = layer_spec(layer)
    assert spec is not None and spec.qkv_projections is not None, f"{type(layer).__name__} has no plain projections"
    projections: list[Any] = [layer.get_submodule(path) for path in spec.qkv_projections]
    query, key, value = projections
    queries = query(query_states).unflatten(-1, (n_heads, -1))
    size = queries.shape[-1]
    keys, values = (linear.weight.unflatten(0, (n_heads, size)) for linear in (key, value))
    projected = torch.einsum("rkhs,hsw->rhkw", queries * size**-0.5, keys).flatten(1, 2)
    scores = torch.matmul(projected, states.transpose(1, 2)).masked_fill_(~attention_mask[:, None], -torch.inf)
    attention = softmax(scores).to(states)
    mixed = torch.matmul(attention, states).unflatten(1, (n_heads, -1))
    return torch.einsum("rhkw,hsw->rhks", mixed, values) + value.bias.view(n_heads, 1, size)
