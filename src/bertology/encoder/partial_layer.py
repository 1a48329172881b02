"""Less than a whole layer: what comes after its heads, and what is needed where only some pieces are read.

To disable a head changes nothing before the output of that head. What the heads of a layer gave is kept, and every
change of them begins there: no states are projected into the heads again, and nothing attends again.

Of the last layer only the pieces are needed that the answer is read from, often [CLS] alone. One query then meets all
states, and instead of all keys and values it is the query that is projected: a score is q (K h + k) = (q K) h + q k,
where q k is the same for all pieces and softmax takes no notice of it, and what comes out is V (the mean of h by
attention) + v, attention adding up to 1. The numbers are those of the whole layer, but for the order of sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from bertology.encoder.attend import Block, Gates, LayerActivations, even_attention, scaled_and_shifted, uniform_or_own
from bertology.encoder.blocks import LAYERS, block_of

FEW = 0.25
"""Of all pieces: from so few it is cheaper to look with projected queries, at any length up to 512."""


@dataclass(frozen=True, eq=False)
class Reading:
    """The pieces that the answers are read from, (row, k), of rows whose `real` pieces are (row, piece) booleans."""

    pieces: Tensor
    real: Tensor

    @property
    def few(self) -> bool:
        """Whether it is worth looking from these pieces alone."""
        return self.pieces.shape[1] <= FEW * self.real.shape[1]

    def times(self, times: int) -> Reading:
        """The same of all rows so many times over."""
        return Reading(self.pieces.repeat(times, 1), self.real.repeat(times, 1))

    def of(self, states: Tensor) -> Tensor:
        """(row, k, width) of (row, piece, width)."""
        return states.gather(1, self.pieces[..., None].expand(-1, -1, states.shape[-1]))

    def of_heads(self, context: Tensor) -> Tensor:
        """(row, head, k, size) of (row, head, piece, size)."""
        places = self.pieces[:, None, :, None].expand(-1, context.shape[1], -1, context.shape[-1])
        return context.gather(2, places)


@dataclass(frozen=True, eq=False)
class Attended:
    """What the heads of one layer gave in one pass, (row, head, piece, size), and what carries it on.

    `even` is what they would have given by uniform attention.
    """

    context: Tensor
    even: Tensor
    block: Block

    @classmethod
    def seen(cls, layer: LayerActivations) -> Attended:
        """What a tap saw of a forward pass."""
        assert layer.context is not None and layer.value is not None and layer.block is not None, "a pass has them"
        even = even_attention(layer.mask, layer.attention).to(layer.value.dtype) @ layer.value
        return cls(layer.context, even, layer.block)

    def at(self, reading: Reading) -> Attended:
        """The same of the pieces that are read alone."""
        block = replace(self.block, residual=reading.of(self.block.residual))
        return Attended(reading.of_heads(self.context), reading.of_heads(self.even), block)

    def under(self, gates: Gates, layer: int, times: int) -> Tensor:
        """(row, piece, width) what comes out of the layer, all rows so many times over, each under its own gates."""
        assert gates.silent is None, "pieces are silenced before heads give anything"
        context = _over(self.context, times)
        if gates.uniform is not None:
            context = uniform_or_own(gates.uniform[layer], _over(self.even, times), context)
        return self.block.carry_on(scaled_and_shifted(context, gates, layer))


def _over(context: Tensor, times: int) -> Tensor:
    """So many times over, laid out in memory as the output projection reads it."""
    return context.transpose(1, 2).repeat(times, 1, 1, 1).transpose(1, 2)


def projected_plainly(layer: nn.Module) -> bool:
    """Whether a layer's heads see its states themselves, so that it can be run for some pieces alone."""
    return LAYERS[type(layer).__name__].into is not None


def for_read_pieces(layer: nn.Module, states: Tensor, reading: Reading, heads: int) -> Tensor:
    """(row, k, width): what a layer with so many heads makes of the pieces that are read."""
    block = block_of(layer, reading.of(states))
    return block.carry_on(_looked(layer, states, block.residual, reading.real, heads))


def _looked(layer: nn.Module, states: Tensor, asking: Tensor, real: Tensor, heads: int) -> Tensor:
    """(row, head, k, size): what the heads give the pieces that ask."""
    into = LAYERS[type(layer).__name__].into
    assert into is not None, f"{type(layer).__name__} projects in a way of its own"
    query, key, value = (_linear(layer, path) for path in into)
    asked = query(asking).unflatten(-1, (heads, -1))
    size = asked.shape[-1]
    keys, values = (linear.weight.unflatten(0, (heads, size)) for linear in (key, value))
    toward = torch.einsum("rkhs,hsw->rhkw", asked * size**-0.5, keys).flatten(1, 2)
    scores = torch.matmul(toward, states.transpose(1, 2)).masked_fill_(~real[:, None], -torch.inf)
    attention = torch.softmax(scores, -1, dtype=torch.promote_types(scores.dtype, torch.float32)).to(states)
    found = torch.matmul(attention, states).unflatten(1, (heads, -1))
    return torch.einsum("rhkw,hsw->rhks", found, values) + value.bias.view(heads, 1, size)


def _linear(layer: nn.Module, path: str) -> Any:
    return layer.get_submodule(path)
