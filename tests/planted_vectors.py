"""Planted activations of one layer: attention, value vectors and output projection constructed by a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

import planted
from bertology.arrays import FloatArray
from bertology.encoder.attention_hook import LayerActivations, PostAttention
from bertology.encoder.token_batch import RecordedInput, TokenBatch

TEXTS = ("the cat saw the dog .", "run , run", ("where is the cat ?", "the cat is here ."))
HEAD_SIZE, WIDTH = 3, 7

HeadValues = Callable[[RecordedInput], FloatArray]
"""(token, HEAD_SIZE) value vectors of an input."""


def make_batch(*texts: str | tuple[str, str]) -> TokenBatch:
    return TokenBatch(planted.recorded_inputs(planted.make_corpus(*(texts or TEXTS))))


def random_values(seed: int) -> HeadValues:
    return lambda recorded: np.random.default_rng([seed, *recorded.tokens.ids.tolist()]).normal(
        size=(len(recorded.tokens), HEAD_SIZE)
    )


def random_causal_head(seed: int) -> planted.HeadAttention:
    """A head with random attention to itself and to earlier tokens."""

    def head(recorded: RecordedInput) -> FloatArray:
        weights = np.tril(planted.random_head(seed)(recorded))
        return weights / weights.sum(1, keepdims=True)

    return head


def make_layer(
    batch: TokenBatch,
    heads: Sequence[planted.HeadAttention],
    values: Sequence[HeadValues],
    *,
    norm: bool = True,
    causal: bool = False,
) -> LayerActivations:
    """A layer whose head h has the attention `heads[h]` and the value vectors `values[h]`.

    Output projection, residual connection and LayerNorm are random. Padding attends and has random vectors too, because
    nothing may depend on it. `causal` adds a causal mask.
    """
    generator = torch.Generator().manual_seed(0)
    n_heads, width = len(heads), batch.padded_length
    attention = torch.zeros(len(batch.inputs), n_heads, width, width)
    value = torch.randn(len(batch.inputs), n_heads, width, HEAD_SIZE, generator=generator)
    for row, recorded in enumerate(batch.inputs):
        n = len(recorded.tokens)
        for head in range(n_heads):
            attention[row, head, :n, :n] = torch.from_numpy(heads[head](recorded))
            attention[row, head, n:, n // 2] = 1  # models compute something for padding too
            value[row, head, :n] = torch.from_numpy(values[head](recorded))
    hidden = torch.full((width, width), torch.finfo(torch.float32).min).triu(1)
    return LayerActivations(
        0,
        attention,
        value=value,
        post_attention=_post_attention(batch, n_heads, generator, norm),
        attention_mask=hidden[None, None] if causal else None,
    )


def _post_attention(batch: TokenBatch, n_heads: int, generator: torch.Generator, norm: bool) -> PostAttention:
    residual = torch.randn(len(batch.inputs), batch.padded_length, WIDTH, generator=generator)
    layer_norm = nn.LayerNorm(WIDTH)
    with torch.no_grad():
        layer_norm.weight.copy_(torch.rand(WIDTH, generator=generator) + 0.5)
    weight = torch.randn(n_heads * HEAD_SIZE, WIDTH, generator=generator)
    bias = torch.randn(WIDTH, generator=generator)
    return PostAttention(residual, weight, bias, layer_norm if norm else None, nn.Identity())


def transformed_values(layer: LayerActivations, row: int, head: int, length: int) -> FloatArray:
    """(token, WIDTH) transformed value vectors f(x) of one input and head, computed by NumPy."""
    assert layer.value is not None and layer.post_attention is not None
    projection = layer.post_attention.output_weight[head * HEAD_SIZE : (head + 1) * HEAD_SIZE]
    return _to_numpy(layer.value[row, head, :length]) @ _to_numpy(projection)


def attention_pattern(layer: LayerActivations, row: int, head: int, length: int) -> FloatArray:
    """The attention pattern of one input and head, without padding."""
    return _to_numpy(layer.attention[row, head, :length, :length])


def _to_numpy(tensor: Tensor) -> FloatArray:
    return tensor.detach().double().numpy()
