"""The trial pass that a model must stand before any number is taken from it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from bertology.encoder.attend import LayerActivations, even_attention
from bertology.encoder.encoder import Batch, Encoder, Output
from bertology.errors import Refusal

SUPPORTED = "BERT, RoBERTa, DistilBERT, ELECTRA, ALBERT, MPNet, DeBERTa-v2/v3, ModernBERT and GPT-2"

# The second, shorter input shows whether padding is masked as the model itself masks it.
LENGTHS = (7, 4)
TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-6}
HALF_TOLERANCE = 5e-2


def looks_back(encoder: Encoder, own: Callable[[Batch], Output], *, vocabulary: int) -> bool:
    """Whether no piece may see what is after it, as found in a trial pass: not every family says so of itself.

    Refused where not every layer and head shows its attention, or where being watched changes the output. `own` runs
    the model as it would run without bertology and returns its hidden states.
    """
    batch = _batch(vocabulary, encoder.device)
    seen: list[LayerActivations] = []
    try:
        with torch.no_grad():
            alone = own(batch).hidden
            watched = encoder.run(batch, on_layer=seen.append, hidden=True).hidden
        expected = [encoder.heads] * encoder.layers
    except Refusal:
        raise
    except Exception as error:  # whatever stops a trial pass, this model cannot be watched
        raise _refusal(encoder, f"fails in a trial pass ({' '.join(str(error).split())[:200]})") from error
    if [layer.heads for layer in seen] != expected:
        raise _refusal(encoder, f"showed the attention of {len(seen)} layers in a trial pass and has {len(expected)}")
    if len(watched) != len(expected) + 1:
        raise _refusal(encoder, f"returns {len(watched)} hidden states for {len(expected)} layers")
    if not _alike(alone[-1], watched[-1], batch.mask.bool()):
        raise _refusal(encoder, "does not compute the same in a trial pass with its attention watched")
    ahead = {bool(even_attention(layer.mask, layer.attention)[0].triu(1).any()) for layer in seen}
    if len(ahead) > 1:
        raise _refusal(encoder, "has layers that look ahead and layers that do not")
    return not ahead.pop() if ahead else encoder.causal


def _batch(vocabulary: int, device: str) -> Batch:
    places = torch.arange(max(LENGTHS), device=device)
    ids = torch.stack([(places * 7 + 5 + row) % vocabulary for row in range(len(LENGTHS))])
    mask = torch.stack([(places < length).long() for length in LENGTHS])
    return Batch(ids, torch.zeros_like(ids), mask)


def _alike(alone: Tensor, watched: Tensor, real: Tensor) -> bool:
    if alone.shape != watched.shape:
        return False
    before, after = alone[real], watched[real]
    tolerance = TOLERANCE.get(before.dtype, HALF_TOLERANCE) * float(before.abs().max())
    return bool((before - after).abs().max() <= tolerance)


def _refusal(encoder: Encoder, what: str) -> Refusal:
    return Refusal(
        f"{encoder.name} {what}",
        "a model whose every layer attends through transformers' attention interface, by queries, keys, values, mask "
        "and bias alone",
        f"Choose a model of a supported family: {SUPPORTED}",
    )
