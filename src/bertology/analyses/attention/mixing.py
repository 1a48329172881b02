"""How much of each state after attention comes from other pieces, and from which (kobayashi2020, kobayashi2021)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.measures.attention.head_measures import means_by_label
from bertology.measures.attention.seen_pieces import seen_pieces
from bertology.measures.attention.special_tokens import shares_with_ordinary
from bertology.measures.attention.value_vectors import block_and_values, whole_vectors
from bertology.recording.piece_kinds import KINDS, kinds_of
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.estimate import Estimates
from bertology.results.shapes import LayerCurve

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import Block, LayerActivations
    from bertology.recording.frame import Frame

RATIOS = ("mixing ratio", "mixing ratio, no LayerNorm", "mixing ratio, attention alone")
SHARES = tuple(f"norm to {kind}" for kind in KINDS)
ORDINARY = (f"{RATIOS[0]}, ordinary", f"norm to {KINDS[2]}, ordinary")
MEASURES = (*RATIOS, *SHARES, *ORDINARY)
ALL_SHARES = (*SHARES, ORDINARY[1])
EVEN, WEIGHTS = "uniform attention", "weights alone"


@reduction(
    "attention.mixing",
    axes=("measure",),
    labels=(*MEASURES, *(f"{EVEN}, {name}" for name in MEASURES), *(f"{WEIGHTS}, {share}" for share in ALL_SHARES)),
    about="what a layer's attention block takes from other pieces, all heads together (its head axis has length 1)",
    prepare=kinds_of,
    vectors=True,
    version=3,
)
def MIXING(layer: LayerActivations, frame: Frame, kinds: Tensor) -> Tensor:
    """(batch, 1, measure): mixing ratios and shares of norms, again for uniform attention, and shares of weights."""
    import torch

    block, values = block_and_values(layer)
    products = _products(whole_vectors(layer))
    weights = layer.attention.float()
    seen = seen_pieces(layer, frame).float()
    found: list[Tensor] = []
    for some in (weights, seen / seen.sum(-1, keepdim=True).clamp(min=1)):
        found.append(_ratios(some, values, block, frame.real))
        shares = shares_with_ordinary(_summed_norms(some, products), kinds, frame)
        inner = _ratios(some * frame.ordinary[:, None, None, :], values, block, frame.ordinary)
        found += [shares[..., : len(SHARES)], inner[..., :1], shares[..., len(SHARES) :]]
    return torch.cat([*found, shares_with_ordinary(weights.mean(1, keepdim=True), kinds, frame)], -1)


def _ratios(weights: Tensor, values: Tensor, block: Block, real: Tensor) -> Tensor:
    """(batch, 1, 3): with residual and LayerNorm, with the residual, and of attention alone; mean over pieces."""
    import torch

    own = _projected(weights.diagonal(dim1=-2, dim2=-1).unsqueeze(-1) * values, block)
    others = _projected(weights.tril(-1) @ values + weights.triu(1) @ values, block)
    kept = own + block.residual.float()
    pairs = ((_through(block, others), _through(block, kept)), (others, kept), (others, own))
    lengths = [(mixed.norm(dim=-1), preserved.norm(dim=-1)) for mixed, preserved in pairs]
    ratios = torch.stack([mixed / (mixed + preserved) for mixed, preserved in lengths], -1)
    counted = real.unsqueeze(-1) & ratios.isfinite()
    return (ratios.where(counted, 0).sum(1) / counted.sum(1)).unsqueeze(1)


def _projected(outputs: Tensor, block: Block) -> Tensor:
    """(batch, piece, width): the outputs of all heads, (batch, head, piece, size), through the output projection."""
    return outputs.transpose(1, 2).flatten(2) @ block.weight.float()


def _through(block: Block, vectors: Tensor) -> Tensor:
    """The LayerNorm's linear part without its divisor, which is the same for all that is added up."""
    if block.norm is None:
        return vectors
    return (vectors - vectors.mean(-1, keepdim=True)) * block.norm.weight.float()


def _products(vectors: Tensor) -> Tensor:
    """(batch, piece, head, head): the inner products of the heads' f(x) of each piece."""
    stacked = vectors.transpose(1, 2)
    return stacked @ stacked.transpose(-1, -2)


def _summed_norms(weights: Tensor, products: Tensor) -> Tensor:
    """(batch, 1, from, to): ‖Σ over heads of α f(x)‖ from the heads' inner products: no n x n x width is made."""
    by_target = weights.permute(0, 3, 2, 1)
    squares = ((by_target @ products) * by_target).sum(-1)
    return squares.clamp(min=0).sqrt().transpose(1, 2).unsqueeze(1)


@analysis(
    question="How much of each state after attention comes from other pieces, and from which?",
    special="sources and targets, but not in measures that say `ordinary`",
    cites=("kobayashi2020", "kobayashi2021"),
    sites=(MIXING,),
    version=3,
)
def mixing(
    recording: Recording,
    randomised: Recording | None,
    *,
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> LayerCurve:
    """Mixing ratio of each layer's attention block: 0 a piece keeps only its own, 1 all comes from other pieces.

    A state after attention is a sum of vectors: Σ α f(x) of the other pieces (mixed in), and α f(x) of the piece
    itself with the residual (preserved). The ratio is ‖mixed‖ / (‖mixed‖ + ‖preserved‖), both taken through the
    LayerNorm's linear part, its mean over pieces and then over sentences; biases after the values are left out. In
    pre-norm models no LayerNorm follows. The other two ratios leave out the LayerNorm, then the residual too. `norm
    to` is the share of ‖Σ over heads of α f(x)‖ by target, beside `weights alone`, the mean attention of the heads;
    sentences without such a piece do not count. With `ordinary` only ordinary pieces are looked at, and only what comes
    from other ordinary pieces is mixed in. Rollout takes the ratio for 0.5 (`as rollout assumes`).
    """
    measures = means_by_label(recording.stacked(MIXING)[:, :, 0], MIXING, seed)
    shown = {name: measures[name] for name in MEASURES if measures[name].n.any()}
    baselines = {
        EVEN: {name: measures[f"{EVEN}, {name}"] for name in shown},
        WEIGHTS: {name: measures[f"{WEIGHTS}, {name}"] for name in ALL_SHARES if name in shown},
        "as rollout assumes": {RATIOS[0]: Estimates.exact(np.full(recording.encoder.layers, 0.5))},
    }
    if randomised is not None:
        fresh = means_by_label(randomised.stacked(MIXING)[:, :, 0], MIXING, seed)
        baselines["random weights"] = {name: fresh[name] for name in shown}
    units = {name: "share, 0 to 1" if name in ALL_SHARES else "ratio, 0 to 1" for name in shown}
    return LayerCurve(measures=shown, baselines=baselines, units=units, first=1)
