"""Is a token that heads park their attention on a no-op: does anything change without its value vector (clark2019)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import GatedEncoder, Randomisable
from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.measures.attention.dropped_values import UNITS as EFFECTS
from bertology.measures.attention.dropped_values import Drop, Effect, Reach, effects
from bertology.measures.attention.seen_pieces import seen_pieces
from bertology.measures.attention.value_vectors import head_vectors
from bertology.measures.attention.weight_importance import By, shaped
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences, pooled_over_sentences
from bertology.results.shapes import HeadGrid, LayerCurve

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

Sink = Literal["sep", "cls", "special", "first"]
Floats = NDArray[np.floating[Any]]

SINKS: dict[Sink, str] = {"sep": "[SEP]", "cls": "[CLS]", "special": "[CLS] and [SEP]", "first": "first piece"}
KINDS: dict[Sink, tuple[Special, ...]] = {
    "sep": (Special.SEP,),
    "cls": (Special.CLS,),
    "special": (Special.CLS, Special.SEP),
}
NUMBERS = ("attention", "attention, one piece", "norm", "norm if ordinary", "uniform", "uniform, one piece")
UNITS = {"attention": "share, 0 to 1", "sink rate": "share of heads, 0 to 1", "no-op index": "1 adds nothing, 0 as any"}


def sink_pieces(frame: Frame, sink: Sink) -> Tensor:
    """(batch, piece) booleans: the sink's pieces; the first piece counts as `first` whatever it is."""
    import torch

    if sink == "first":
        return frame.real & (torch.arange(frame.width, device=frame.device) == 0)
    found = torch.zeros_like(frame.real)
    for kind in KINDS[sink]:
        found |= frame.special == kind
    return frame.real & found


@reduction(
    "attention.sinks",
    axes=("sink", "number"),
    labels=NUMBERS,
    about="attention that [SEP], [CLS], both, and the first piece receive, and the norms of what they give",
    vectors=True,
    version=2,
)
def SINK(layer: LayerActivations, frame: Frame, _: None) -> Tensor:
    """(batch, head, sink, number) means over rows; NaN where a sentence has no such piece or no ordinary one."""
    import torch

    weights = layer.attention.float()
    rows = seen_pieces(layer, frame).float()
    lengths = head_vectors(layer).norm(dim=-1)
    even = rows / rows.sum(-1, keepdim=True).clamp(min=1)
    found: list[Tensor] = []
    for sink in SINKS:
        pieces = sink_pieces(frame, sink)
        others = (frame.ordinary & ~pieces).unsqueeze(1).float()
        ordinary = (lengths * others).sum(-1) / others.sum(-1)
        (share, peak), (even_share, even_peak) = (_received(some, rows, pieces, frame) for some in (weights, even))
        norm = ((weights * rows).sum(2) * lengths * pieces.unsqueeze(1)).sum(-1) / frame.lengths[:, None]
        numbers = torch.stack([share, peak, norm, share * ordinary, even_share, even_peak], -1)
        defined = pieces.any(1) & (others.sum((1, 2)) > 0)
        found.append(numbers.where(defined[:, None, None], torch.nan))
    return torch.stack(found, 2)


def _received(weights: Tensor, rows: Tensor, pieces: Tensor, frame: Frame) -> tuple[Tensor, Tensor]:
    """(batch, head) twice: the share of attention that the pieces receive, and the most that one of them does.

    One piece's share is the mean over the rows that can see it.
    """
    summed = (weights * rows).sum(2)
    share = (summed * pieces.unsqueeze(1)).sum(-1) / frame.lengths[:, None]
    each = summed / rows.sum(2).clamp(min=1)
    return share, each.masked_fill(~pieces.unsqueeze(1), 0).amax(-1)


@analysis(
    question="Is the token that heads park their attention on a no-op: does anything change without its value vector?",
    special="the sink is a special token; effects are measured on ordinary pieces",
    cites=("clark2019", "kobayashi2020", "gu2025"),
    sites=(SINK,),
    version=2,
)
def sinks(
    recording: Recording,
    randomised: Recording | None,
    encoder: GatedEncoder,
    *,
    sink: Annotated[Sink, "the token that may be a sink; `first` for models that add no special tokens"] = "sep",
    threshold: Annotated[float, "a head has a sink where one piece receives more than this share of attention"] = 0.3,
    effect: Annotated[
        Effect, "what the drop is seen in: last hidden states, MLM loss (15 % masked), scores of the model's head"
    ] = "hidden",
    reach: Annotated[Reach, "drop in one layer alone, or in it and all layers after it"] = "alone",
    by: Annotated[By, "a curve over layers, or every head (as many passes as there are heads)"] = "layer",
    seed: Annotated[int, "seed of the bootstrap, of the masking, and of the ordinary pieces dropped"] = 0,
) -> LayerCurve | HeadGrid:
    """No-op index of a sink: 1 its vectors add nothing, 0 as much as an ordinary piece's would, below 0 more.

    `attention` is the share that the sink's pieces receive, mean over rows. `sink rate` is the share of heads and
    sentences in which one of them receives more than the threshold, as a mean over the rows that can see it. The
    index is 1 - Σ α‖f(sink)‖ / Σ α f̄, where f̄ is the mean ‖f(x)‖ of the sentence's ordinary pieces in that head (see
    `attention/norms`); sums are over the heads of a layer and over sentences, so heads count as they attend to it.
    `effect of dropping` is the change of the output when the sink's value vectors count as zero in a layer (or head),
    its attention staying as it is: the mean over ordinary pieces of ‖Δh‖ / ‖h‖, or more loss, or the divergence of
    the scores. Beside it: the same for as many ordinary pieces drawn at random, which receive far less attention.
    """
    place = list(SINKS).index(sink)
    numbers = recording.stacked(SINK)[..., place, :]
    if not np.isfinite(numbers).any():
        raise Refusal(
            f"No input has {SINKS[sink]} beside an ordinary piece",
            "inputs with that token",
            f"Choose another with --sink: {', '.join(SINKS)}",
        )
    measures = _measures(numbers, threshold, by, seed)
    shape = measures["attention"].shape
    baselines: dict[str, dict[str, Estimates]] = {"uniform attention": _uniform(numbers, threshold, by, seed)}
    how = Drop(effect, reach, by_head=by == "head", seed=seed)
    dropped, control = effects(recording, encoder, lambda frame: sink_pieces(frame, sink), how)
    name = f"effect of dropping {SINKS[sink]}"
    measures[name] = mean_over_sentences(dropped, seed=seed)
    if randomised is not None:
        fresh = randomised.stacked(SINK)[..., place, :]
        model = cast("Randomisable", encoder).randomised(seed=0)
        without, _ = effects(randomised, model, lambda frame: sink_pieces(frame, sink), how)
        baselines["random weights"] = _measures(fresh, threshold, by, seed)
        baselines["random weights"][name] = mean_over_sentences(without, seed=seed)
    baselines["ordinary piece"] = {
        "no-op index": Estimates.exact(np.zeros(shape)),
        name: mean_over_sentences(control, seed=seed),
    }
    return shaped(by, measures, baselines, {**UNITS, name: EFFECTS[effect]})


def _measures(numbers: Floats, threshold: float, by: By, seed: int) -> dict[str, Estimates]:
    attention, peak, norm, ordinary = (numbers[..., place] for place in range(4))
    there = np.isfinite(norm)
    parts = (np.where(there, some, 0.0) for some in (norm, ordinary))
    ratio = pooled_over_sentences(*(some if by == "head" else some.sum(axis=2) for some in parts), seed=seed)
    index = Estimates(value=1 - ratio.value, low=1 - ratio.high, high=1 - ratio.low, n=ratio.n)
    return {
        "attention": _mean(attention, by, seed),
        "sink rate": _mean(_above(peak, threshold), by, seed),
        "no-op index": index,
    }


def _uniform(numbers: Floats, threshold: float, by: By, seed: int) -> dict[str, Estimates]:
    share, peak = numbers[..., 4], numbers[..., 5]
    return {"attention": _mean(share, by, seed), "sink rate": _mean(_above(peak, threshold), by, seed)}


def _above(values: Floats, threshold: float) -> Floats:
    return np.where(np.isfinite(values), values > threshold, np.nan)


def _mean(values: Floats, by: By, seed: int) -> Estimates:
    return mean_over_sentences(values if by == "head" else values.mean(axis=2), seed=seed)
