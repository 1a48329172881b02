"""Which of five shapes do attention maps have: vertical, diagonal, both, block, heterogeneous (kovaleva2019, 4.1)?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import Sites, analysis
from bertology.maths.agreement import cohen_kappa
from bertology.maths.map_shapes import SHAPES
from bertology.maths.resampling import resampled_means
from bertology.measures.attention.head_measures import everywhere, uniform_attention
from bertology.measures.attention.special_tokens import LEAST_SHARE, SpecialTokens
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import HeadGrid, Table

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

Floats = NDArray[np.float64]
By = Literal["layers", "heads"]
Classifier = Literal["rule", "network"]

CLASSIFIERS: tuple[Classifier, ...] = ("rule", "network")
LEAST_PIECES = 8
"""A smaller map has no shape to speak of: three diagonals are most of it."""


@cache
def shapes(special: SpecialTokens = "keep") -> ReducedSite:
    """The site that holds the shape of each map by both classifiers, as (classifier, shape) of which one is 1."""
    ordinary = special == "drop"

    def reduce(layer: LayerActivations, frame: Frame, _: None) -> Tensor:
        import torch

        maps = layer.attention
        found = maps.new_full((*maps.shape[:2], len(CLASSIFIERS), len(SHAPES)), float("nan"))
        for run in frame.stretches:
            steps = torch.arange(run.length, device=maps.device)
            kept = torch.cat([steps[part] for part in run.pieces] or [steps[:0]]) if ordinary else steps
            if len(kept) >= LEAST_PIECES:
                found[run.rows] = _classified(maps[run.rows][:, :, kept][:, :, :, kept])
        return found

    return ReducedSite(
        "attention.shapes" + ".ordinary" * ordinary,
        ("classifier", "shape"),
        "which of five shapes each map has, by a rule and by a network" + ", special tokens left out" * ordinary,
        reduce,
        SHAPES,
        version=2,
    )


def _classified(maps: Tensor) -> Tensor:
    """(batch, head, classifier, shape) from maps without padding; a row with next to nothing left is taken as even."""
    import torch

    from bertology.maths import map_network, map_rule

    totals = maps.sum(-1, keepdim=True)
    maps = torch.where(totals > LEAST_SHARE, maps / totals.clamp(min=LEAST_SHARE), 1 / maps.shape[-1]).float()
    chosen = [map_rule.classified(map_rule.measured(maps)), map_network.classified(maps)]
    return torch.nn.functional.one_hot(torch.stack(chosen, -1), len(SHAPES)).to(maps.dtype)


def _sites(options: Mapping[str, Any]) -> Sites:
    return (shapes(options["special"]),)


@analysis(
    question="Which of five shapes do attention maps have: vertical, diagonal, both, block, heterogeneous?",
    special="special tokens are kept, as most vertical lines are theirs; with --special drop they are left out and the "
    "rest renormalised",
    cites=("kovaleva2019",),
    sites=_sites,
    version=3,
)
def kovaleva(
    recording: Recording,
    randomised: Recording | None,
    *,
    by: Annotated[
        By, "`layers`: the share of maps of each shape by layer (Table); `heads`: by head (HeadGrid)"
    ] = "layers",
    classifier: Annotated[
        Classifier, "who decides: the `rule` one can read, or the `network` trained on drawn maps"
    ] = "rule",
    special: Annotated[SpecialTokens, "keep special tokens, or drop them and renormalise"] = "keep",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> Table | HeadGrid:
    """Share of attention maps of each of five shapes, 0 none to 1 all, the mean over heads, then over sentences.

    `vertical`: at least about half of the attention goes to the same columns; `diagonal`: to the piece before, itself
    or the piece after; `vertical+diagonal`: both; `block`: attention seldom crosses a boundary somewhere in the
    middle, such as that between two sentences; `heterogeneous`: all other maps. The rule and the maps that the network
    is trained on are defined in `maths/map_rule.py` and `maths/map_shapes.py`; `kappa` (by layer) is Cohen's
    agreement of the two beyond chance, `agreement` (by head) the share of maps on which they agree. Kovaleva et al.
    labelled some 400 maps by hand for a network of eight convolutions (F1 0.86) and released neither, so shares can
    be compared with theirs only as far as the definitions go. A head that looks at one thing or another near by is
    heterogeneous to both. Maps of fewer than 8 pieces are not classified.
    """
    site = shapes(special)
    found = recording.stacked(site)
    who = CLASSIFIERS.index(classifier)
    fresh = None if randomised is None else randomised.stacked(site)
    even = uniform_attention(recording, site)
    if by == "heads":
        return _by_head(found, fresh, even, who, seed)
    return _by_layer(found, fresh, even, who, seed)


def _by_head(found: Floats, fresh: Floats | None, even: Floats, who: int, seed: int) -> HeadGrid:
    same = (found[..., 0, :] * found[..., 1, :]).sum(-1)
    measures = {**_named(found[..., who, :], seed), "agreement": mean_over_sentences(same, seed=seed)}
    grid = found.shape[1:3]
    uniform = _named(even[..., who, :], seed)
    baselines = {"uniform attention": {name: everywhere(uniform[name], grid) for name in SHAPES}}
    if fresh is not None:
        baselines["random weights"] = _named(fresh[..., who, :], seed)
    classified = np.isfinite(same).any(0)
    shares = np.where(np.isfinite(found), found, 0.0).sum(0) / np.maximum(1, np.isfinite(found).sum(0))
    chance = np.where(classified, shares.prod(-2).sum(-1), np.nan)
    baselines["by chance"] = {"agreement": Estimates.exact(chance)}
    return HeadGrid(measures=measures, baselines=baselines, units=dict.fromkeys(measures, "share of maps, 0 to 1"))


def _by_layer(found: Floats, fresh: Floats | None, even: Floats, who: int, seed: int) -> Table:
    layers = found.shape[1]
    measures = {**_named(_layers_and_all(found[..., who, :]), seed), "kappa": _kappa(found, seed)}
    alike = np.broadcast_to(even[:, :, None, who], (len(even), layers, 1, len(SHAPES)))
    baselines = {"uniform attention": _named(_layers_and_all(alike), seed)}
    if fresh is not None:
        baselines["random weights"] = _named(_layers_and_all(fresh[..., who, :]), seed)
    baselines["by chance"] = {"kappa": Estimates.exact(np.zeros(layers + 1))}
    units = {**dict.fromkeys(SHAPES, "share of maps, 0 to 1"), "kappa": "-1 to 1, 0 chance"}
    rows = (*(f"layer {layer + 1}" for layer in range(layers)), "all layers")
    return Table(measures=measures, baselines=baselines, units=units, rows_named=rows)


def _layers_and_all(values: Floats) -> Floats:
    """(sentence, layer + 1, ...) means over heads, the last of all heads, from (sentence, layer, head, ...)."""
    by_layer = values.mean(2)
    return np.concatenate([by_layer, by_layer.mean(1, keepdims=True)], axis=1)


def _named(values: Floats, seed: int) -> dict[str, Estimates]:
    estimates = mean_over_sentences(values, seed=seed)
    return {name: estimates[..., place] for place, name in enumerate(SHAPES)}


def _kappa(found: Floats, seed: int) -> Estimates:
    """Agreement by layer and in all; resampled sentences give the interval, widened to hold the value."""
    joint = _layers_and_all(found[..., 0, :, None] * found[..., 1, None, :])
    classified = np.isfinite(joint).all((1, 2, 3))
    nothing = np.full(joint.shape[1], np.nan)
    if not classified.any():
        return Estimates(value=nothing, low=nothing, high=nothing, n=np.zeros(joint.shape[1]))
    value = cohen_kappa(joint[classified].mean(0))
    counts = np.where(np.isfinite(value), classified.sum(), 0)
    if classified.sum() < 2:
        return Estimates(value=value, low=nothing, high=nothing, n=counts)
    drawn = cohen_kappa(resampled_means(joint, np.ones(len(joint)), seed=seed))
    drawn = np.where(np.isfinite(drawn), drawn, value)
    low, high = np.percentile(drawn, (2.5, 97.5), axis=0)
    return Estimates(value=value, low=np.minimum(low, value), high=np.maximum(high, value), n=counts)
