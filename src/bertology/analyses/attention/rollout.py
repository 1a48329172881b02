"""From which input pieces does each state come, if attention is followed down through all layers (abnar2020)?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from bertology.analyses.declaration import Sites, analysis
from bertology.maths.rollout import Fusion, Rollout, mixed
from bertology.measures.attention.mass_places import (
    MEASURES,
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
from bertology.results.shapes import LayerCurve

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

OF = ("rollout", "raw attention", "uniform attention")


@dataclass
class _Carried:
    """What goes from layer to layer: the rollouts of the model and of uniform attention, (batch, from, to) each."""

    places: Places
    own: Rollout = field(default_factory=Rollout)
    even: Rollout = field(default_factory=Rollout)


@cache
def rollouts(residual: float = 0.5, fusion: Fusion = "mean") -> ReducedSite:
    """The site that holds where the rollout down from each layer falls, beside the layer alone and uniform attention.

    Layers come in order, so one product is carried along and no layer's map outlives the layer.
    """

    def prepare(frame: Frame) -> _Carried:
        return _Carried(places_of(frame))

    def reduce(layer: LayerActivations, frame: Frame, carried: _Carried) -> Tensor:
        import torch

        maps = layer.attention.float()
        three = (
            carried.own.add(mixed(maps, fusion, residual)),
            mixed(maps, fusion, 0.0),
            carried.even.add(mixed(evenly(maps, frame), "mean", residual)),
        )
        return torch.stack([mass_by_place(shares, carried.places) for shares in three], 1).unsqueeze(1)

    return ReducedSite(
        f"attention.rollout{spelt(residual, fusion)}",
        ("of", "source", "measure"),
        "where the rollout from each layer to the input falls; all heads together (its head axis has length 1)",
        reduce,
        labels=MEASURES,
        prepare=prepare,
        version=2,
    )


def spelt(residual: float, fusion: Fusion) -> str:
    """Options in the name of a site."""
    share = f"{residual:g}".replace(".", "_").replace("-", "_")
    return ("" if residual == 0.5 else f".residual_{share}") + ("" if fusion == "mean" else f".{fusion}")


def _sites(options: Mapping[str, Any]) -> Sites:
    return (rollouts(options["residual"], options["fusion"]),)


@analysis(
    question="From which input pieces does each state come, if attention is followed down through all layers?",
    special="special tokens are sources and targets; with --source ordinary neither, the rest renormalised",
    cites=("abnar2020",),
    sites=_sites,
    version=2,
)
def rollout(
    recording: Recording,
    randomised: Recording | None,
    *,
    source: Annotated[Source, "whose rollout: that of [CLS], the mean over all pieces, or over ordinary pieces"] = (
        "cls"
    ),
    residual: Annotated[float, "how much of a state stays in place in each layer, 0 to 1"] = 0.5,
    fusion: Annotated[Fusion, "what the heads of a layer are put together by"] = "mean",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> LayerCurve:
    """Share of a state's rollout that falls on an input piece: 0 none of it, 1 all; the five places sum to 1.

    A layer takes (1 - r) A + r I, A the mean of its heads and r the residual share; the rollout from layer l is the
    product of layers l to 1. Places are told apart in order: the piece itself, [CLS], [SEP], the piece before or
    after, all others. `spread` is e to the entropy over n. Means are over a sentence's sources, then over sentences.
    `raw attention` is the layer's own A without residual; `uniform attention` the rollout of heads that attend to all
    they see alike. The share 0.5 is Abnar & Zuidema's choice, not a measurement: `attention/mixing` measures it.
    Values, feed-forward layers and LayerNorm are left out, and the product of many layers comes near one distribution
    whatever the model does: read it against uniform attention and random weights.
    """
    site = rollouts(residual, fusion)
    values = recording.stacked(site)[:, :, 0]
    refuse_without_source(values[:, :, 0], source, "source")
    found = {of: estimates_of(values[:, :, place], source, seed) for place, of in enumerate(OF)}
    shown = {name: estimates for name, estimates in found[OF[0]].items() if estimates.n.any()}
    baselines = {of: {name: found[of][name] for name in shown} for of in OF[1:]}
    if randomised is not None:
        fresh = estimates_of(randomised.stacked(site)[:, :, 0, 0], source, seed)
        baselines["random weights"] = {name: fresh[name] for name in shown}
    return LayerCurve(measures=shown, baselines=baselines, units={name: UNITS[name] for name in shown}, first=1)
