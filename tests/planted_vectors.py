"""One layer's attention with value vectors and an output projection made by the test, so that the answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

import planted
from bertology.encoder.attend import Block, LayerActivations
from bertology.recording.entry import Entry
from bertology.recording.frame import Frame

TEXTS = ("the cat saw the dog .", "run , run", ("where is the cat ?", "the cat is here ."))
SIZE, WIDTH = 3, 7

Values = Callable[[Entry], planted.Floats]


def frame(*texts: str | tuple[str, str]) -> Frame:
    return Frame(planted.entries_of(planted.corpus_of(*(texts or TEXTS))))


def values(seed: int) -> Values:
    """Random value vectors: (piece, SIZE)."""
    return lambda entry: np.random.default_rng([seed, *entry.pieces.ids.tolist()]).normal(
        size=(len(entry.pieces), SIZE)
    )


def looking_back(seed: int) -> planted.HeadMap:
    """Noise that never sees what comes later, as in causal models."""

    def look(entry: Entry) -> planted.Floats:
        weights = np.tril(planted.noise(seed)(entry))
        return weights / weights.sum(1, keepdims=True)

    return look


def layer(
    shown: Frame,
    maps: Sequence[planted.HeadMap],
    vectors: Sequence[Values],
    *,
    norm: bool = True,
    causal: bool = False,
) -> LayerActivations:
    """A layer in which head h has these maps and value vectors; its projection, residual and LayerNorm are random.

    Padding attends and has random vectors too: nothing may depend on them. `causal`: its mask hides what comes later.
    """
    generator = torch.Generator().manual_seed(0)
    heads = len(maps)
    attention = torch.zeros(len(shown.entries), heads, shown.width, shown.width)
    value = torch.randn(len(shown.entries), heads, shown.width, SIZE, generator=generator)
    for row, entry in enumerate(shown.entries):
        n = len(entry.pieces)
        for head in range(heads):
            attention[row, head, :n, :n] = torch.from_numpy(maps[head](entry))
            attention[row, head, n:, n // 2] = 1  # models compute something for padding rows too
            value[row, head, :n] = torch.from_numpy(vectors[head](entry))
    later = torch.full((shown.width, shown.width), torch.finfo(torch.float32).min).triu(1)
    mask = later[None, None] if causal else None
    return LayerActivations(0, attention, value=value, block=_block(shown, heads, generator, norm), mask=mask)


def _block(shown: Frame, heads: int, generator: torch.Generator, norm: bool) -> Block:
    residual = torch.randn(len(shown.entries), shown.width, WIDTH, generator=generator)
    after = nn.LayerNorm(WIDTH)
    with torch.no_grad():
        after.weight.copy_(torch.rand(WIDTH, generator=generator) + 0.5)
    weight = torch.randn(heads * SIZE, WIDTH, generator=generator)
    return Block(residual, weight, torch.randn(WIDTH, generator=generator), after if norm else None, nn.Identity())


def transformed(seen: LayerActivations, row: int, head: int, length: int) -> planted.Floats:
    """f(x) of one sentence and head, (piece, WIDTH), by plain NumPy."""
    assert seen.value is not None and seen.block is not None
    part = seen.block.weight[head * SIZE : (head + 1) * SIZE]
    return _array(seen.value[row, head, :length]) @ _array(part)


def weights(seen: LayerActivations, row: int, head: int, length: int) -> planted.Floats:
    """The map of one sentence and head without padding."""
    return _array(seen.attention[row, head, :length, :length])


def _array(tensor: Tensor) -> planted.Floats:
    return tensor.detach().double().numpy()
