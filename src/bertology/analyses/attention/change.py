"""How much does each head's attention differ between two states of a model (kovaleva2019, section 4.3)?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.attention.kovaleva import CLASSIFIERS, Classifier, shapes
from bertology.analyses.declaration import Sites, analysis
from bertology.maths.map_shapes import SHAPES
from bertology.measures.attention.special_tokens import LEAST_SHARE
from bertology.measures.heads.function_changes import SITE as STRONGEST
from bertology.measures.heads.function_changes import function_changes
from bertology.recording.paired import PairedSite
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.recording.frame import Frame

Floats = NDArray[np.float64]
Show = Literal["heads", "layers", "shapes", "functions"]

MEASURES = ("cosine", "cosine, ordinary", "divergence", "divergence, ordinary")
SHAPE = "shape changed"
UNITS = {
    "cosine": "-1 to 1, 1 the same map",
    "cosine, ordinary": "-1 to 1, 1 the same map between ordinary pieces",
    "divergence": "nats, 0 the same rows to log 2",
    "divergence, ordinary": "nats, 0 the same rows to log 2",
    SHAPE: "share of maps, 0 to 1",
}
LEAST = 1e-30


def compare(own: Tensor, other: Tensor, frame: Frame) -> Tensor:
    """(batch, head, 2, 4): the measures between the same heads, and with the other's head before it; NaN for none."""
    import torch

    found = [own.new_full((*own.shape[:2], 2, len(MEASURES)), float("nan"))]
    for place, kept in enumerate((frame.real, frame.ordinary)):
        one, counted = _cropped(own, kept)
        for row, partner in enumerate((other, other.roll(1, dims=1)) if own.shape[1] > 1 else (other,)):
            two, also = _cropped(partner, kept)
            found[0][:, :, row, place] = _cosine(one, two)
            found[0][:, :, row, 2 + place] = _divergence(one, two, counted & also)
    return torch.where(found[0].isfinite(), found[0], float("nan"))


def _cropped(maps: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
    """Maps with 0 wherever a row or column is not kept and rows brought back to 1, and which rows have any left."""
    inside = maps * (kept[:, None, :, None] & kept[:, None, None])
    share = inside.sum(-1, keepdim=True)
    counted = share.squeeze(-1) > LEAST_SHARE
    return inside / share.clamp(min=LEAST_SHARE), counted


def _cosine(one: Tensor, other: Tensor) -> Tensor:
    lengths = one.square().sum((-1, -2)) * other.square().sum((-1, -2))
    return (one * other).sum((-1, -2)) / lengths.sqrt()


def _divergence(one: Tensor, other: Tensor, counted: Tensor) -> Tensor:
    """Jensen-Shannon divergence in nats, the mean over rows that count."""
    middle = ((one + other) / 2).clamp(min=LEAST).log()
    parts = [rows * (rows.clamp(min=LEAST).log() - middle) for rows in (one, other)]
    rows = (parts[0].sum(-1) + parts[1].sum(-1)).clamp(min=0) / 2
    return (rows * counted).sum(-1) / counted.sum(-1)


CHANGE = PairedSite(
    "attention.change",
    ("partner", "measure"),
    "cosine and divergence between two encoders' maps: of the same head, and of the one before it",
    compare,
    MEASURES,
)


def _sites(options: Mapping[str, Any]) -> Sites:
    return (STRONGEST,) if options["show"] == "functions" else (shapes(),)


@analysis(
    question="How much does each head's attention differ between two states of a model?",
    special="kept, but for the measures called ordinary, which see only the attention between ordinary pieces, "
    "renormalised",
    cites=("kovaleva2019",),
    sites=_sites,
    paired=(CHANGE,),
    version=2,
)
def change(
    recording: Recording,
    against: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Show,
        "`heads` (HeadGrid); `layers`: means over heads (LayerCurve); `shapes`: heads whose usual shape changed "
        "(Table); `functions`: heads that gained or lost a function, on a corpus with trees (Table)",
    ] = "heads",
    classifier: Annotated[Classifier, "who decides on the shape of a map: the `rule` or the `network`"] = "rule",
    minimum: Annotated[int, "relations with fewer cases are no functions"] = 20,
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid | LayerCurve | Table:
    """Likeness of the two models' maps of the same head: cosine 1 the same, 0 nothing shared; divergence 0 the same.

    - cosine: of the two maps, flattened, as Kovaleva et al. have it. Their code flattens maps padded to 200 pieces,
      rows of padding included; here a map is cropped to its real length. `ordinary` leaves special tokens out on both
      sides.
    - divergence: Jensen-Shannon, in nats, the mean over rows. Rows with nothing on ordinary pieces do not count.
    - shape changed: share of inputs whose map has another of the five shapes of `attention/kovaleva` (from 8 pieces).

    A cosine is high by habit, as all heads that look at [SEP] are alike: `another head` compares a head with the one
    before it in the other model's layer (the first with the last), `random weights` with the same head before training;
    for the shape `by chance` is what two heads with these shares, but nothing else in common, would differ by. The mean
    over inputs, each counting alike. Both models must have the same vocabulary, layers and heads; their maps are
    compared while they exist and never stored.
    """
    if show == "functions":
        return function_changes(recording, against, minimum=minimum, seed=seed)
    who = CLASSIFIERS.index(classifier)
    classes = [one.stacked(shapes())[..., who, :].astype(np.float64) for one in (recording, against)]
    if show == "shapes":
        return _shape_table(classes[0], classes[1], (recording.encoder.name, against.encoder.name), seed)
    found = _joined(recording.stacked(CHANGE.identity)[..., 0, :], _differing(classes[0], classes[1]))
    beside = {"another head": _joined(recording.stacked(CHANGE.identity)[..., 1, :], None)}
    if randomised is not None:
        fresh = randomised.stacked(shapes())[..., who, :].astype(np.float64)
        beside["random weights"] = _joined(
            randomised.stacked(CHANGE.identity)[..., 0, :], _differing(classes[0], fresh)
        )
    chance = _chance(classes[0], classes[1])
    if show == "layers":
        found, beside = found.mean(2), {name: values.mean(2) for name, values in beside.items()}
        chance = chance.mean(1)
    measures = _named(found, seed)
    baselines = {name: _named(values, seed) for name, values in beside.items()}
    baselines["by chance"] = {SHAPE: Estimates.exact(chance)}
    if show == "layers":
        return LayerCurve(measures=measures, baselines=baselines, units=UNITS, first=1)
    return HeadGrid(measures=measures, baselines=baselines, units=UNITS)


def _joined(values: Floats, differing: Floats | None) -> Floats:
    """(input, layer, head, measure) of all measures, the shape last where it is given."""
    return values if differing is None else np.concatenate([values, differing[..., None]], axis=-1)


def _named(values: Floats, seed: int) -> dict[str, Estimates]:
    estimates = mean_over_sentences(values, seed=seed)
    return {name: estimates[..., place] for place, name in enumerate((*MEASURES, SHAPE)[: values.shape[-1]])}


def _differing(first: Floats, second: Floats) -> Floats:
    """(input, layer, head) 1 where the shapes differ, from (..., shape) of which one is 1; NaN where there is none."""
    return 1 - (first * second).sum(-1)


def _shares(classes: Floats) -> Floats:
    """(layer, head, shape) share of the maps that have a shape; NaN where no map has one."""
    there = np.isfinite(classes)
    return np.where(there.any(0), np.where(there, classes, 0.0).sum(0) / np.maximum(1, there.sum(0)), np.nan)


def _chance(first: Floats, second: Floats) -> Floats:
    return 1 - (_shares(first) * _shares(second)).sum(-1)


def _shape_table(first: Floats, second: Floats, names: tuple[str, str], seed: int) -> Table:
    """The heads whose most frequent shape changed, those that changed most first; the one nearest to it where none."""
    before, after = _shares(first), _shares(second)
    changed = mean_over_sentences(_differing(first, second), seed=seed)
    usual = np.nan_to_num(before).argmax(-1), np.nan_to_num(after).argmax(-1)
    moved = np.argwhere((usual[0] != usual[1]) & np.isfinite(changed.value))
    order = sorted(moved.tolist(), key=lambda place: (-changed.value[tuple(place)], place))
    best = np.unravel_index(int(np.nan_to_num(changed.value).argmax()), changed.shape)
    heads = [Head(layer, head) for layer, head in order] or [Head(int(best[0]), int(best[1]))]
    rows = tuple(np.array(heads).T)
    notes = {
        str(head): (
            f"{SHAPES[usual[0][head]]} in {names[0]} ({before[head][usual[0][head]]:.0%} of maps), "
            f"{SHAPES[usual[1][head]]} in {names[1]} ({after[head][usual[1][head]]:.0%})"
            if order
            else "no head changed its most frequent shape; this one changed most"
        )
        for head in heads
    }
    return Table(
        measures={SHAPE: changed[rows]},
        baselines={"by chance": {SHAPE: Estimates.exact(_chance(first, second)[rows])}},
        units={SHAPE: UNITS[SHAPE]},
        rows_named=tuple(str(head) for head in heads),
        notes=notes,
    )
