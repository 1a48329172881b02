"""How much does each head matter, by measures that take a pass or two: gradients (michel2019), confidence (voita2019)?

What they are to foretell, the change when a head is truly removed, is in `ablation`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bertology.encoder.attend import LayerActivations
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.measures.causes.examination import Examination, Sheet

Floats = NDArray[np.float64]

TINY = 1e-20


@dataclass(frozen=True)
class Sums:
    """By item, layer and head: what the loss would lose with the head, to first order, and how sure the head is.

    `gradient` is |∂L/∂ξ| at the gate ξ = 1 of an item's loss in nats, `by_piece` the sum over pieces of what each adds
    to it, each without its sign; `highest` the sum over pieces of the highest weight on a piece that is not special,
    of `pieces` (item,) in all.
    """

    gradient: Floats
    by_piece: Floats
    highest: Floats
    pieces: Floats


def sums(encoder: HuggingFaceEncoder, examination: Examination) -> Sums:
    """One pass forth and back over the sheets.

    A gate multiplies A V, so that ∂L/∂ξ is the sum of A ∂L/∂A over all weights of a map A.
    """
    shape = (len(examination.items), encoder.layers, encoder.heads)
    gradient, by_piece, highest = (np.zeros(shape) for _ in range(3))
    pieces = np.zeros(shape[0])
    for sheet in examination.sheets:
        effect, apart, sure = (_by_item(sheet, values) for values in _by_row(encoder, sheet))
        gradient[sheet.items], by_piece[sheet.items], highest[sheet.items] = np.abs(effect), apart, sure
        pieces[sheet.items] = _by_item(sheet, sheet.shown.mask.sum(-1))
    return Sums(gradient, by_piece, highest, pieces)


def _by_row(encoder: HuggingFaceEncoder, sheet: Sheet) -> tuple[Tensor, Tensor, Tensor]:
    """(row, layer, head) effects of the gates, the same with each piece's part without its sign, highest weights."""
    layers: list[Tensor] = []
    real = sheet.shown.mask.bool()
    ordinary = real & ~_special(sheet, encoder)

    def see(layer: LayerActivations) -> None:
        assert layer.gradient is not None, "the pass has an objective"
        effects = (layer.attention * layer.gradient).sum(-1) * real[:, None]
        sure = (layer.attention * ordinary[:, None, None]).amax(-1) * real[:, None]
        layers.append(torch.stack([effects.sum(-1), effects.abs().sum(-1), sure.sum(-1)]))

    encoder.run(sheet.shown, on_layer=see, objective=lambda output: sheet.losses(output).sum())
    effect, apart, sure = torch.stack(layers, 2)
    return effect, apart, sure


def by_layer(values: Floats) -> Floats:
    """(..., layer, head) with each layer's heads scaled to a length of 1."""
    return values / (np.linalg.norm(values, axis=-1, keepdims=True) + TINY)


def _by_item(sheet: Sheet, values: Tensor) -> Floats:
    """(item, ...) sums of (row, ...)."""
    found = torch.zeros(len(sheet.items), *values.shape[1:], dtype=torch.float64)
    found.index_add_(0, torch.tensor(sheet.rows), values.detach().double().cpu())
    return found.numpy()


def _special(sheet: Sheet, encoder: HuggingFaceEncoder) -> Tensor:
    """(row, piece) which pieces open or close a text."""
    known = encoder.tokenizer
    ends = {known.cls_token_id, known.bos_token_id, known.sep_token_id, known.eos_token_id} - {None}
    return torch.isin(sheet.shown.ids, torch.tensor(sorted(ends), device=sheet.shown.ids.device))
