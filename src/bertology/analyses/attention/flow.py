"""How much can flow from a state down to each input piece, attention weights being the widths of pipes (abnar2020)?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.attention.rollout import spelt
from bertology.analyses.declaration import Sites, analysis
from bertology.maths.maximum_flow import Floats, layered_flows
from bertology.maths.rollout import Fusion, Rollout, mixed
from bertology.measures.attention.mass_places import (
    MEASURES,
    SOURCES,
    UNITS,
    Places,
    Source,
    estimates_of,
    evenly,
    mass_by_place,
    places_of,
    refuse_without_source,
)
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import LayerCurve

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

OF = ("flow", "raw attention", "rollout", "uniform attention")
BOUND = "set by layer 1"
NEAR = 1e-4


@dataclass
class _Carried:
    """What goes from layer to layer: the shares of all layers so far, heads together, and the rollout."""

    places: Places
    shares: list[Floats] = field(default_factory=list[Floats])
    even: list[Floats] = field(default_factory=list[Floats])
    rollout: Rollout = field(default_factory=Rollout)


@cache
def flows(residual: float = 0.5, fusion: Fusion = "mean", every: bool = False) -> ReducedSite:
    """The site that holds where the flow from each layer to the input falls: from [CLS] alone, or from every piece.

    The maps of all layers, heads together, are there until a batch is done; what is kept is a few numbers a layer.
    """

    def prepare(frame: Frame) -> _Carried:
        return _Carried(places_of(frame))

    def reduce(layer: LayerActivations, frame: Frame, carried: _Carried) -> Tensor:
        import torch

        maps = layer.attention.float()
        shares, even = mixed(maps, fusion, residual), mixed(evenly(maps, frame), "mean", residual)
        carried.shares.append(shares.cpu().double().numpy())
        carried.even.append(even.cpu().double().numpy())
        rows = carried.places.sources[..., SOURCES.index("all" if every else "cls")].cpu().numpy()
        own, at_bound = _all_flows(carried.shares, rows, frame)
        alike, even_at_bound = _all_flows(carried.even, rows, frame)
        rollout = carried.rollout.add(shares)
        four = [torch.from_numpy(own), mixed(maps, fusion, 0.0), rollout, torch.from_numpy(alike)]
        means = torch.stack([mass_by_place(some.to(maps), carried.places) for some in four], 1)
        bounds = torch.full_like(means[..., :1], torch.nan)
        for place, flags in ((0, at_bound), (3, even_at_bound)):
            bounds[:, place] = _mean_bound(torch.from_numpy(flags).to(maps), carried.places)
        found = torch.cat([means, bounds], -1)
        if not every:
            found[:, :, 1:] = torch.nan
        return found.unsqueeze(1)

    return ReducedSite(
        f"attention.flow{spelt(residual, fusion)}{'.every' * every}",
        ("of", "source", "measure"),
        "where the maximum flow from each layer to the input falls; all heads together (its head axis has length 1)",
        reduce,
        labels=(*MEASURES, BOUND),
        prepare=prepare,
    )


def _all_flows(layers: list[Floats], rows: NDArray[np.bool_], frame: Frame) -> tuple[Floats, Floats]:
    """(batch, from, to) flows as shares of their sum, and (batch, from) the share of targets that are at their bound.

    A flow cannot be more than what enters its target in layer 1, nor more than what leaves its source, which is 1.
    """
    shares, bounds = np.zeros(layers[0].shape), np.zeros(rows.shape)
    for entry, length in enumerate(frame.lengths.tolist()):
        capacities = np.stack([layer[entry, :length, :length] for layer in layers])
        most = np.minimum(1.0, capacities[0].sum(0))
        for source in np.flatnonzero(rows[entry]):
            found = _flows(capacities, int(source))
            shares[entry, source, :length] = found / found.sum()
            bounds[entry, source] = (found >= most - NEAR).mean()
    return shares, bounds


def _flows(capacities: Floats, source: int) -> Floats:
    """(target,) flows; where all places are alike, as under uniform attention, two of them say all."""
    layers, size, _ = capacities.shape
    other = capacities[0, 0, -1]
    same = np.full((size, size), other)
    np.fill_diagonal(same, capacities[0, 0, 0])
    if size < 2 or not np.allclose(capacities, same, atol=1e-7):
        return layered_flows(capacities, source)
    staying, leaving = _alike_flows(layers, size, float(capacities[0, 0, 0]), float(other))
    found = np.full(size, leaving)
    found[source] = staying
    return found


@lru_cache(maxsize=4096)
def _alike_flows(layers: int, size: int, own: float, other: float) -> tuple[float, float]:
    """The flow to the source's own place and to any other one, where every layer has two capacities."""
    capacities = np.full((layers, size, size), other)
    capacities[:, np.arange(size), np.arange(size)] = own
    staying, leaving = layered_flows(capacities, 0, (0, 1))
    return float(staying), float(leaving)


def _mean_bound(flags: Tensor, places: Places) -> Tensor:
    """(batch, source, 1) the mean of (batch, from) over a source's rows."""
    rows = places.sources.to(flags.dtype)
    return ((flags.unsqueeze(-1) * rows).sum(1) / rows.sum(1)).unsqueeze(-1)


def _sites(options: Mapping[str, Any]) -> Sites:
    return (flows(options["residual"], options["fusion"], options["source"] != "cls"),)


@analysis(
    question="How much can flow from a state down to each input piece, attention weights being the widths of pipes?",
    special="special tokens are sources and targets; with --source ordinary neither, the rest renormalised",
    cites=("abnar2020",),
    sites=_sites,
)
def flow(
    recording: Recording,
    randomised: Recording | None,
    *,
    source: Annotated[
        Source, "whose flow: that of [CLS], or the mean over all or over ordinary pieces (as many times the work)"
    ] = "cls",
    residual: Annotated[float, "how much of a state stays in place in each layer, 0 to 1"] = 0.5,
    fusion: Annotated[Fusion, "what the heads of a layer are put together by"] = "mean",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> LayerCurve:
    """Share of a state's attention flow that goes to an input piece: 0 none of it, 1 all; the five places sum to 1.

    The flow from a piece of layer l to an input piece is the maximum flow through the graph whose edges are the layers
    l to 1, as wide as (1 - r) A + r I (see `attention/rollout`); each input piece is its own problem, and the flows to
    all of them are divided by their sum, as in the paper. Places and `spread` are those of `attention/rollout`.
    `set by layer 1` is the share of input pieces whose flow is the most that layer 1 lets into them (or all that leaves
    the source): such a flow is the same from every source and says nothing about the layers above. Capacities are
    rounded to 2^-28. A sentence of 128 pieces takes about a second for [CLS] of the last of 12 layers.
    """
    (site,) = _sites({"residual": residual, "fusion": fusion, "source": source})
    assert isinstance(site, ReducedSite)
    values = recording.stacked(site)[:, :, 0]
    refuse_without_source(values[:, :, 0, :, :-1], source, "source")
    found = {of: _estimates(values[:, :, place], source, seed) for place, of in enumerate(OF)}
    shown = {name: estimates for name, estimates in found[OF[0]].items() if estimates.n.any()}
    baselines = {of: {name: found[of][name] for name in shown if found[of][name].n.any()} for of in OF[1:]}
    if randomised is not None:
        fresh = _estimates(randomised.stacked(site)[:, :, 0, 0], source, seed)
        baselines["random weights"] = {name: fresh[name] for name in shown}
    units = {name: UNITS.get(name, "share of input pieces, 0 to 1") for name in shown}
    return LayerCurve(measures=shown, baselines=baselines, units=units, first=1)


def _estimates(values: NDArray[Any], source: Source, seed: int) -> dict[str, Estimates]:
    bound = mean_over_sentences(values[:, :, SOURCES.index(source), -1], seed=seed)
    return {**estimates_of(values[..., :-1], source, seed), BOUND: bound}
