"""Attention with a hook that reads and gates it.

Every supported family calls `hooked_attention` in each layer while an `AttentionHook` is active. The hook holds the
caller's callback and the gates of the heads. Without an active hook a model computes as it does without bertology.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

CHUNK_CELLS = 2**19
"""Attention weights computed at once on a CPU, so that scores, weights and statistics stay in its cache."""


@dataclass(frozen=True)
class Gates:
    """Interventions on heads: scale or shift a head's output, make its attention uniform, zero value vectors.

    `scale` is (layer, head) and may require gradients (learned gates). `uniform` is (layer, head) booleans: attention
    is replaced by 1/n over the visible tokens. `offset` is (layer, head, size), added to the scaled output at every
    token. Each of them may have a batch axis after that of the heads; it then fits one batch, whose rows have
    different gates. `zeroed_values` is (layer, head, batch, token) booleans, with 1 on the layer or head axis for all
    of them: the value vectors of these tokens are zero, the attention to them is unchanged. It fits one batch.
    """

    scale: Tensor | None = None
    uniform: Tensor | None = None
    zeroed_values: Tensor | None = None
    offset: Tensor | None = None


@dataclass(frozen=True)
class HeadChanges:
    """Heads of one layer, from 0, that are changed in every forward pass of a derived encoder (see `variants`).

    The value vectors of `zeroed` heads are zero, and so is all that they add; `uniform` heads attend equally to every
    visible token. An attention module with changes holds them as its attribute `head_changes`.
    """

    zeroed: frozenset[int] = frozenset()
    uniform: frozenset[int] = frozenset()


UNCHANGED = HeadChanges()


def head_changes(module: Any) -> HeadChanges:
    """The changes to the heads of an attention module."""
    return getattr(module, "head_changes", UNCHANGED)


ActivationHook = Callable[["Tensor", int], "Tensor | None"]
"""Receives activations of one layer (layers count from 1) and returns what replaces them, or None to leave them."""


@dataclass
class ActivationHooks:
    """Functions that read or replace activations in a forward pass, after gates and changes of heads.

    `attention` receives (batch, head, from, to), `head_outputs` (batch, head, token, size), `hidden` (batch, token,
    width): the output of a layer, or with layer number 0 the input of the first layer. `key` is a name that no other
    hooks have; hooks that are not open are not to be called any more.
    """

    attention: ActivationHook | None = None
    head_outputs: ActivationHook | None = None
    hidden: ActivationHook | None = None
    key: str = field(default_factory=lambda: uuid4().hex, init=False)
    is_open: bool = field(default=True, init=False)

    def apply(self, site: str, activations: Tensor, layer: int) -> Tensor:
        """The activations that the forward pass goes on with."""
        hook: ActivationHook | None = getattr(self, site)
        if hook is None:
            return activations
        # The function may run this or another model, whose layers are not this pass's.
        with use_hook(None):
            replacement: Any = hook(activations, layer)
        if replacement is None:
            return activations
        if not isinstance(replacement, torch.Tensor) or replacement.shape != activations.shape:
            shape = tuple(replacement.shape) if isinstance(replacement, torch.Tensor) else type(replacement).__name__
            raise Refusal(
                f"The hook of {site!r} returned {shape} for layer {layer}",
                f"a tensor of shape {tuple(activations.shape)}, or None to leave the activations unchanged",
                "Return a changed copy of what the hook receives",
            )
        return replacement.to(activations)


@dataclass(frozen=True)
class PostAttention:
    """The part of a layer after its heads: output projection, residual, LayerNorm and feed-forward block.

    `residual` is (batch, token, width), `output_weight` (head x size, width) with the rows of each head together;
    `layer_norm` normalises the sum, None in pre-norm models; `feed_forward` is the rest of the layer. `parallel` is a
    feed-forward block that reads the residual, beside attention.
    """

    residual: Tensor
    output_weight: Tensor
    output_bias: Tensor | None
    layer_norm: torch.nn.LayerNorm | None
    feed_forward: Callable[[Tensor], Tensor]
    parallel: Callable[[Tensor], Tensor] | None = None

    def head_projection(self, n_heads: int) -> Tensor:
        """(head, size, width): each head's part of the output projection."""
        return self.output_weight.view(n_heads, -1, self.output_weight.shape[-1])

    def forward(self, head_outputs: Tensor) -> Tensor:
        """(batch, token, width): the layer's output for head outputs (batch, head, token, size).

        The batch may repeat the rows of the residual several times.
        """
        projected = torch.nn.functional.linear(
            head_outputs.transpose(1, 2).flatten(2), self.output_weight.T, self.output_bias
        )
        unattended = self.residual if self.parallel is None else self.residual + self.parallel(self.residual)
        summed = (projected.unflatten(0, (-1, len(unattended))) + unattended).flatten(0, 1)
        return self.feed_forward(summed if self.layer_norm is None else self.layer_norm(summed))


@dataclass(eq=False)
class LayerActivations:
    """Activations of one layer's attention for a batch: (batch, head, token, size) or (batch, head, from, to).

    Activations from a recording have `attention` only. `post_attention` exists in every supported family.
    `attention_mask` is additive, (batch or 1, 1, from, to); None: every token is visible. `stored_attention` is None
    until `attention` is first read: fused statistics on a GPU do not need it. `log_normaliser`, (batch, head, from), is
    the natural logarithm of the softmax's sum where fused attention returned it. `hides_only_padding` is true where the
    mask is known to hide padding and nothing else, without asking the device.
    """

    layer: int
    stored_attention: Tensor | None
    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    head_outputs: Tensor | None = None
    gradient: Tensor | None = None
    post_attention: PostAttention | None = None
    attention_mask: Tensor | None = None
    scaling: float = 1.0
    log_normaliser: Tensor | None = None
    hides_only_padding: bool = False

    @property
    def heads(self) -> int:
        """Number of heads of the layer."""
        by_head = self.query if self.stored_attention is None else self.stored_attention
        assert by_head is not None
        return by_head.shape[1]

    @property
    def attention(self) -> Tensor:
        """(batch, head, from, to) attention weights; rows sum to 1."""
        if self.stored_attention is None:
            assert self.query is not None and self.key is not None
            self.stored_attention = softmax(attention_scores(self.query, self.key, self.scaling, [self.attention_mask]))
        return self.stored_attention

    @attention.setter
    def attention(self, attention: Tensor) -> None:
        self.stored_attention = attention


@dataclass
class AttentionHook:
    """Reads and gates the attention of one forward pass; layers are numbered in the order of their attention calls.

    `global_layers` are the layers in which every token sees every token of its input.
    """

    on_layer: Callable[[LayerActivations], None] | None = None
    gates: Gates | None = None
    retain_graph: bool = False
    activation_hooks: ActivationHooks | None = None
    global_layers: Collection[int] = ()
    next_layer: int = field(default=0, init=False)
    post_attention: PostAttention | None = field(default=None, init=False)
    pending: list[LayerActivations] = field(default_factory=list[LayerActivations], init=False)

    def apply(self, site: str, activations: Tensor, layer: int) -> Tensor:
        """Activations of a layer, numbered from 1, after the caller's activation hook for this site."""
        return activations if self.activation_hooks is None else self.activation_hooks.apply(site, activations, layer)

    def on_attention(self, activations: LayerActivations) -> None:
        """Pass one layer to the caller, or hold it until its gradient is known."""
        if self.retain_graph:
            self.pending.append(activations)
        elif self.on_layer is not None:
            # The callback may run this or another model, whose layers are not this hook's.
            with use_hook(None):
                self.on_layer(activations)


_active_hook: ContextVar[AttentionHook | None] = ContextVar("bertology_hook", default=None)


def active_hook() -> AttentionHook | None:
    """The hook of the forward pass now running, if any."""
    return _active_hook.get()


def current_hook() -> AttentionHook:
    """The hook of the forward pass now running; without one, a hook that reads and changes nothing."""
    return _active_hook.get() or AttentionHook()


@contextmanager
def use_hook(hook: AttentionHook | None) -> Generator[None]:
    """Activate a hook for the forward passes in the block; None deactivates any."""
    token = _active_hook.set(hook)
    try:
        yield
    finally:
        _active_hook.reset(token)


_implementation_lock = threading.Lock()
_users_by_config: dict[int, tuple[int, str | None]] = {}


@contextmanager
def use_attention_implementation(implementation: str, config: Any) -> Generator[None]:
    """Switch a configuration to a registered attention implementation; the last pass to leave restores its own.

    Counted by configuration: two models may share one, and passes may run in parallel.
    """
    with _implementation_lock:
        users, original = _users_by_config.get(id(config), (0, config._attn_implementation))
        _users_by_config[id(config)] = users + 1, original
        config._attn_implementation = implementation
    try:
        yield
    finally:
        with _implementation_lock:
            users, original = _users_by_config.pop(id(config))
            if users > 1:
                _users_by_config[id(config)] = users - 1, original
            else:
                config._attn_implementation = original


def hooked_attention(
    hook: AttentionHook,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None,
    scaling: float,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    changes: HeadChanges = UNCHANGED,
) -> Tensor:
    """Softmax attention, gated and passed to the hook: (batch, head, token, size) head outputs.

    `mask` is additive (0 or a large negative number) and hides tokens; `bias` is any other additive score. `changes`
    apply before the gates.
    """
    layer, post_attention = hook.next_layer, hook.post_attention
    hook.next_layer, hook.post_attention = layer + 1, None
    gates = hook.gates
    if changes.zeroed:
        value = value.index_fill(1, torch.tensor(sorted(changes.zeroed), device=value.device), 0.0)
    reads_only = (
        gates is None and hook.activation_hooks is None and not (dropout or hook.retain_graph or changes.uniform)
    )
    log_normaliser: Tensor | None = None
    if reads_only and bias is None and _is_half_precision_gpu(query):
        attention = None
        head_outputs, log_normaliser = fused_attention(query, key, value, scaling, mask)
    elif reads_only and _is_cpu_inference(query):
        terms = [term for term in (mask, bias) if term is not None and bool(term.any())]  # unpadded batches mask 0
        attention, head_outputs = chunked_attention(query, key, value, scaling, terms)
    else:
        attention = softmax(attention_scores(query, key, scaling, [bias, mask]))
        if changes.uniform:
            is_uniform = torch.tensor([head in changes.uniform for head in range(query.shape[1])])
            attention = select_uniform(is_uniform, uniform_attention(mask, attention), attention)
        if gates is not None and gates.uniform is not None:
            attention = select_uniform(gates.uniform[layer], uniform_attention(mask, attention), attention)
        if dropout:
            attention = torch.nn.functional.dropout(attention, p=dropout)
        attention = hook.apply("attention", attention, layer + 1)
        if hook.retain_graph and not attention.requires_grad:
            attention.requires_grad_()
        if gates is not None and gates.zeroed_values is not None:
            value = value.masked_fill(_layer_zeroed_values(gates.zeroed_values, layer).to(value.device), 0.0)
        head_outputs = torch.matmul(attention.to(value.dtype), value)
        if gates is not None:
            head_outputs = apply_scale_and_offset(head_outputs, gates, layer)
        head_outputs = hook.apply("head_outputs", head_outputs, layer + 1)
    hook.on_attention(
        LayerActivations(
            layer,
            attention,
            query,
            key,
            value,
            head_outputs,
            post_attention=post_attention,
            attention_mask=mask,
            scaling=scaling,
            log_normaliser=log_normaliser,
            hides_only_padding=layer in hook.global_layers,
        )
    )
    return head_outputs


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Head outputs without attention weights, and the `log_normaliser` if torch's kernel for these inputs returns it.

    The kernel is the one that torch itself chooses, so that outputs are those of the plain model.
    """
    if mask is None and not torch.is_grad_enabled():
        library: Any = torch  # what follows has no public name
        operations, choice = library.ops.aten, library._fused_sdp_choice(query, key, value, scale=scaling)
        if choice == torch.nn.attention.SDPBackend.FLASH_ATTENTION.value:
            head_outputs, log_normaliser, *_ = operations._scaled_dot_product_flash_attention(
                query, key, value, scale=scaling
            )
            return head_outputs, log_normaliser
        if choice == torch.nn.attention.SDPBackend.CUDNN_ATTENTION.value:
            head_outputs, log_normaliser, *_ = operations._scaled_dot_product_cudnn_attention(
                query, key, value, None, True, scale=scaling
            )
            return head_outputs, log_normaliser.view(query.shape[:3])
    head_outputs = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
    return head_outputs, None


def _is_half_precision_gpu(query: Tensor) -> bool:
    """Whether to leave out attention weights: in half precision on a GPU, reading them costs most."""
    return query.is_cuda and query.dtype in {torch.bfloat16, torch.float16}


def _is_cpu_inference(query: Tensor) -> bool:
    return not torch.is_grad_enabled() and query.device.type == "cpu" and query.dtype == torch.float32


def attention_scores(query: Tensor, key: Tensor, scaling: float, terms: Sequence[Tensor | None]) -> Tensor:
    """(batch, head, from, to): scaled products of queries and keys plus the additive terms."""
    scores = torch.matmul(query * scaling, key.transpose(-1, -2))
    for term in terms:
        if term is not None:
            scores += term  # in place: scores are the largest tensor of a forward pass
    return scores


def softmax(scores: Tensor) -> Tensor:
    """Softmax over the last axis, in single precision at least."""
    return torch.softmax(scores, dim=-1, dtype=torch.promote_types(scores.dtype, torch.float32))


def chunked_attention(
    query: Tensor, key: Tensor, value: Tensor, scaling: float, terms: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor]:
    """Attention weights and head outputs without gradients, computed in chunks that fit a CPU's cache."""
    batch, heads, length = query.shape[:3]
    attention = query.new_empty(batch, heads, length, length)
    head_outputs = query.new_empty(batch, heads, length, value.shape[-1])
    query, key = query * scaling, key.transpose(-1, -2)
    expanded_terms = [term.expand(batch, heads, -1, -1) for term in terms if term is not None]
    chunk_rows = min(batch, max(1, CHUNK_CELLS // (heads * length * length)))
    chunk_heads = heads if chunk_rows > 1 else min(heads, max(1, CHUNK_CELLS // (length * length)))
    buffer = query.new_empty(chunk_rows, chunk_heads, length, length)
    for row in range(0, batch, chunk_rows):
        for head in range(0, heads, chunk_heads):
            chunk = (slice(row, row + chunk_rows), slice(head, head + chunk_heads))
            queries = query[chunk]
            scores = torch.matmul(queries, key[chunk], out=buffer[: queries.shape[0], : queries.shape[1]])
            for term in expanded_terms:
                scores += term[chunk]
            torch.softmax(scores, dim=-1, out=attention[chunk])
            torch.matmul(attention[chunk], value[chunk], out=head_outputs[chunk])
    return attention, head_outputs


def apply_scale_and_offset(head_outputs: Tensor, gates: Gates, layer: int) -> Tensor:
    """Head outputs (batch, head, token, size) of a layer, scaled and shifted by the gates."""
    if gates.scale is not None:
        head_outputs = head_outputs * _with_batch_axis(gates.scale[layer].to(head_outputs), 1)[..., None, None]
    if gates.offset is not None:
        head_outputs = head_outputs + _with_batch_axis(gates.offset[layer].to(head_outputs), 2).unsqueeze(-2)
    return head_outputs


def select_uniform(uniform: Tensor, uniform_values: Tensor, values: Tensor) -> Tensor:
    """`uniform_values` for the heads of a layer that are gated as uniform, `values` for the others."""
    return torch.where(_with_batch_axis(uniform.to(values.device), 1)[..., None, None], uniform_values, values)


def uniform_attention(mask: Tensor | None, attention: Tensor) -> Tensor:
    """(batch or 1, 1, from, to): equal attention to every visible token, in shape and type of `attention`.

    A mask may be the same from all tokens and have 1 on that axis.
    """
    if mask is None:
        visible = torch.ones_like(attention[:, :1])
    else:
        visible = (mask > torch.finfo(mask.dtype).min / 2).to(attention).expand(-1, -1, attention.shape[-2], -1)
    return visible / visible.sum(-1, keepdim=True).clamp(min=1)


def _with_batch_axis(gate: Tensor, n_axes: int) -> Tensor:
    """(batch or 1, head, ...): a gate of one layer; it has more than `n_axes` axes if each row has its own."""
    return gate.unsqueeze(0) if gate.ndim == n_axes else gate.transpose(0, 1)


def _layer_zeroed_values(zeroed_values: Tensor, layer: int) -> Tensor:
    """(batch, head, token, 1) booleans: tokens without value vectors in this layer."""
    return zeroed_values[layer if zeroed_values.shape[0] > 1 else 0].transpose(0, 1).unsqueeze(-1)
