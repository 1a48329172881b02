"""The one place where attention happens: what is read from it, and what is changed in it.

Every supported family calls `attend` for every layer while a `Tap` is active. The tap knows what the caller wants to
see and which heads are gated. With no tap active a model computes as it would without bertology.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import Tensor

from bertology.encoder.scores import a_few_heads_at_a_time, scores_of, softmax


@dataclass(frozen=True)
class Gates:
    """What to do with each head: multiply its output by `scale`, let it attend to all alike, silence some pieces.

    `scale` is (layer, head) and may require gradients (learned gates); `uniform` is (layer, head) booleans: the head's
    map is replaced by 1/n over the tokens it may see; `shift` is (layer, head, size), added to the scaled output of
    the head at every piece. Each of these may have an axis for the batch after that of the heads; it is then for one
    batch, and every row of it has gates of its own. `silent` is (layer, head, batch, piece) booleans, 1 for a layer
    or head axis meaning all of them: pieces whose value vectors count as zero, their attention staying as it is. It
    is for one batch.
    """

    scale: Tensor | None = None
    uniform: Tensor | None = None
    silent: Tensor | None = None
    shift: Tensor | None = None


@dataclass(frozen=True)
class Block:
    """What carries one layer's attention on: its output is projected and added to the residual.

    `residual` is (batch, piece, width); `weight` (head x size, width), the rows of each head one after the other, and
    `bias` are the output projection; `norm` is the LayerNorm that the sum goes through, None in pre-norm models;
    `feed_forward` is the rest of the layer.
    """

    residual: Tensor
    weight: Tensor
    bias: Tensor | None
    norm: torch.nn.LayerNorm | None
    feed_forward: Callable[[Tensor], Tensor]

    def projection(self, heads: int) -> Tensor:
        """(head, size, width): the part of the output projection that each head's output goes through."""
        return self.weight.view(heads, -1, self.weight.shape[-1])

    def carry_on(self, context: Tensor) -> Tensor:
        """(batch, piece, width): what the layer makes of the outputs of its heads, (batch, head, piece, size).

        The batch may be the rows of the residual several times over.
        """
        given = torch.nn.functional.linear(context.transpose(1, 2).flatten(2), self.weight.T, self.bias)
        summed = (given.unflatten(0, (-1, len(self.residual))) + self.residual).flatten(0, 1)
        return self.feed_forward(summed if self.norm is None else self.norm(summed))


@dataclass
class LayerActivations:
    """What one layer's attention computed for a batch; (batch, head, piece, size) or (batch, head, from, to).

    Only `attention` is there when it comes from a recording and not from a forward pass. `block` is there in every
    supported family. `mask` is additive and says what each piece may see, (batch or 1, 1, from, to); None: everything.
    `maps` is None until somebody looks at `attention`: statistics on an accelerator need no map. `rows` is where what
    was worked out along rows waits for the next to ask.
    """

    layer: int
    maps: Tensor | None
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    context: Tensor | None = None
    gradient: Tensor | None = None
    block: Block | None = None
    mask: Tensor | None = None
    scaling: float = 1.0
    rows: object | None = None

    @property
    def heads(self) -> int:
        """How many heads the layer has."""
        known = self.query if self.maps is None else self.maps
        assert known is not None
        return known.shape[1]

    @property
    def attention(self) -> Tensor:
        """(batch, head, from, to): what each piece gives to each; rows sum to 1."""
        if self.maps is None:
            assert self.query is not None and self.key is not None
            self.maps = softmax(scores_of(self.query, self.key, self.scaling, [self.mask]))
        return self.maps

    @attention.setter
    def attention(self, maps: Tensor) -> None:
        self.maps = maps


@dataclass
class Tap:
    """Reads and gates one forward pass; layers are numbered in the order in which they attend."""

    on_layer: Callable[[LayerActivations], None] | None = None
    gates: Gates | None = None
    keep_graph: bool = False
    layer: int = field(default=0, init=False)
    block: Block | None = field(default=None, init=False)
    kept: list[LayerActivations] = field(default_factory=list["LayerActivations"], init=False)

    def see(self, activations: LayerActivations) -> None:
        """Hand one layer to the caller, or keep it until the gradients are known."""
        if self.keep_graph:
            self.kept.append(activations)
        elif self.on_layer is not None:
            # The caller may run other models, or this one, while it looks: those are not for this tap to see.
            with tapped(None):
                self.on_layer(activations)


_active: ContextVar[Tap | None] = ContextVar("bertology_tap", default=None)


def active_tap() -> Tap | None:
    """The tap of the forward pass now running, if any."""
    return _active.get()


@contextmanager
def tapped(tap: Tap | None) -> Generator[None]:
    """Make `tap` see every layer of the forward passes run inside; None sees nothing."""
    token = _active.set(tap)
    try:
        yield
    finally:
        _active.reset(token)


def attend(
    tap: Tap,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None,
    scaling: float,
    bias: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Softmax attention, seen and gated by the tap: (batch, head, piece, size), one context vector a piece and head.

    `mask` is additive (0 or hugely negative) and says what may be seen; `bias` is any further additive score.
    """
    layer, block = tap.layer, tap.block
    tap.layer, tap.block = layer + 1, None
    gates = tap.gates
    if gates is None and bias is None and not dropout and not tap.keep_graph and _on_accelerator(query):
        context = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
        tap.see(LayerActivations(layer, None, query, key, value, context, block=block, mask=mask, scaling=scaling))
        return context
    if gates is None and not dropout and not tap.keep_graph and _on_processor(query):
        terms = [term for term in (mask, bias) if term is not None and bool(term.any())]  # masks of full batches are 0
        attention, context = a_few_heads_at_a_time(query, key, value, scaling, terms)
        seen = LayerActivations(layer, attention, query, key, value, context, block=block, mask=mask, scaling=scaling)
        tap.see(seen)
        return context
    attention = softmax(scores_of(query, key, scaling, [bias, mask]))
    if gates is not None and gates.uniform is not None:
        attention = uniform_or_own(gates.uniform[layer], even_attention(mask, attention), attention)
    if dropout:
        attention = torch.nn.functional.dropout(attention, p=dropout)
    if tap.keep_graph and not attention.requires_grad:
        attention.requires_grad_()
    if gates is not None and gates.silent is not None:
        value = value.masked_fill(_of_layer(gates.silent, layer).to(value.device), 0.0)
    context = torch.matmul(attention.to(value.dtype), value)
    if gates is not None:
        context = scaled_and_shifted(context, gates, layer)
    seen = LayerActivations(layer, attention, query, key, value, context, block=block, mask=mask, scaling=scaling)
    tap.see(seen)
    return context


def _on_accelerator(query: Tensor) -> bool:
    """Whether maps are worth avoiding: in half precision on an accelerator, where reading them costs most."""
    return query.is_cuda and query.dtype in {torch.bfloat16, torch.float16}


def _on_processor(query: Tensor) -> bool:
    return not torch.is_grad_enabled() and query.device.type == "cpu" and query.dtype == torch.float32


def scaled_and_shifted(context: Tensor, gates: Gates, layer: int) -> Tensor:
    """The outputs of the heads of a layer, (batch, head, piece, size), by the gates' `scale` and `shift`."""
    if gates.scale is not None:
        context = context * _by_row(gates.scale[layer].to(context), 1)[..., None, None]
    if gates.shift is not None:
        context = context + _by_row(gates.shift[layer].to(context), 2).unsqueeze(-2)
    return context


def uniform_or_own(uniform: Tensor, even: Tensor, own: Tensor) -> Tensor:
    """Of a layer: what is `even` for the heads whose gates in `uniform` say so, their own for the others."""
    return torch.where(_by_row(uniform.to(own.device), 1)[..., None, None], even, own)


def even_attention(mask: Tensor | None, like: Tensor) -> Tensor:
    """(batch or 1, 1, from, to): alike over all that a piece may see; `like` is any map."""
    seen = torch.ones_like(like[:, :1]) if mask is None else (mask > torch.finfo(mask.dtype).min / 2).to(like)
    return seen / seen.sum(-1, keepdim=True).clamp(min=1)


def _by_row(gate: Tensor, axes: int) -> Tensor:
    """(batch or 1, head, ...): a gate of one layer, whose `axes` axes are more where every row has its own."""
    return gate.unsqueeze(0) if gate.ndim == axes else gate.transpose(0, 1)


def _of_layer(silent: Tensor, layer: int) -> Tensor:
    """(batch, head, piece, 1) booleans: what is silent in this layer."""
    return silent[layer if silent.shape[0] > 1 else 0].transpose(0, 1).unsqueeze(-1)
