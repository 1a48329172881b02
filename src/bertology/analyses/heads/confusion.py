"""Does attention from an agreeing word find its antecedent among distractors (lin2019, section 5)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.errors import Refusal
from bertology.maths.regression import least_squares
from bertology.measures.attention.head_measures import uniform_attention
from bertology.measures.heads.stimuli import Stimulus, marked, stimulus_of
from bertology.recording.annotation import pieces_of_words
from bertology.recording.recording import Recording
from bertology.recording.sites import reduction
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, mean_over_sentences
from bertology.results.shapes import HeadGrid, LayerCurve, Table

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attend import LayerActivations
    from bertology.recording.frame import Frame

Floats = NDArray[np.floating[Any]]
By = Literal["condition", "layer", "head", "factors"]

UNITS = "bits, 0 finds the antecedent, log2(candidates) looks at all alike"
LEAST_SHARE = 2.0**-126
"""The least share that is told from none, float32's smallest: a head that gives the antecedent nothing has 126 bits."""

REGRESSIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "agreement": ("agreement", ("relative clause", "inflected auxiliary", "distractor matches")),
    "agreement by distance": ("agreement", ("distance", "inflected auxiliary", "distractor matches")),
    "reflexive": (
        "reflexive",
        ("relative clause", "noun in the clause", "it matches", "object", "object matches"),
    ),
    "reflexive by distance": ("reflexive", ("distance", "distractors", "matching distractors")),
    "other": ("", ("distance", "distractors")),
}
"""Name -> kind of stimuli and factors. Distance follows from the structure in this design, so it has its own."""


class _Prepared(NamedTuple):
    """`sources` is (batch, piece), the weights of the target's pieces; `targets` (batch, piece, 2), which count."""

    sources: Tensor
    targets: Tensor


def _prepare(frame: Frame) -> _Prepared:
    import torch

    sources = np.zeros((len(frame.entries), frame.width), np.float32)
    targets = np.zeros((len(frame.entries), frame.width, 2), np.float32)
    for row, entry in enumerate(frame.entries):
        found = marked(entry)
        if found is None:
            continue
        target, candidates = found
        pieces = pieces_of_words(entry)
        own = [piece for word in target for piece in pieces[word]]
        sources[row, own] = 1 / len(own)
        for place, words in enumerate(candidates):
            targets[row, [piece for word in words for piece in pieces[word]], min(place, 1) :] = 1
    return _Prepared(*(torch.from_numpy(array).to(frame.device) for array in (sources, targets)))


@reduction(
    "heads.confusion",
    axes=("candidate",),
    labels=("antecedent", "candidates"),
    about="attention from the target to the words of its antecedent, and of all candidates together",
    prepare=_prepare,
)
def CONFUSION(layer: LayerActivations, frame: Frame, prepared: _Prepared) -> Tensor:
    """(batch, head, 2) attention; 0 where nothing is marked."""
    maps = layer.attention
    rows = (prepared.sources.to(maps.dtype)[:, None, None] @ maps).squeeze(-2)
    return rows @ prepared.targets.to(maps.dtype)


@analysis(
    question="Does attention from an agreeing word find its antecedent among distractors?",
    special="seen by the model; only the candidate noun phrases are compared, so they take no part in the score",
    cites=("lin2019",),
    sites=(CONFUSION,),
    layers=("marks",),
    version=2,
)
def confusion(
    recording: Recording,
    randomised: Recording | None,
    *,
    by: Annotated[
        By, "the mean over layers by `condition`; by `layer` or `head` and condition; a regression on `factors`"
    ] = "condition",
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> Table | LayerCurve | HeadGrid:
    """Confusion in bits: 0 looks only at the antecedent, log2(candidates) at all of them alike, more misses it.

    Minus the base-2 logarithm of the antecedent's share of the attention that the target (an auxiliary that agrees, a
    reflexive) gives to the candidate noun phrases, determiner and noun together. By condition and layer the heads'
    maps are averaged first, as in the paper; by head each is taken for itself. A sentence with no distractor has no
    confusion and is left out, as is a head that gives no candidate anything. The published number of a condition is
    the mean over layers and sentences. Agreement conditions are reported together and apart for modal and inflected
    auxiliaries, as the paper does not say which it pools. `equal attention` gives every noun phrase the same,
    `uniform attention` every piece that is seen.

    By factors: coefficients in bits of a linear regression over sentences and layers, with intervals robust to what
    the layers of a sentence share. In this design distance follows from the structure (a clause takes words), so it
    replaces structure in regressions of its own. Factors are 0 or 1 except layer, distance and numbers of distractors;
    in the published R3 and R4 half of the distractors are objects behind an intransitive clause.
    """
    stimuli = [stimulus_of(entry, recording.corpus) for entry in recording.entries]
    if not any(stimulus and stimulus.distracted for stimulus in stimuli):
        raise Refusal(
            f"No sentence of {recording.corpus.name} marks a target, its antecedent and a distractor",
            "stimuli with distractors",
            "Use for example --corpus generated:reflexives, or files of Open Sesame",
        )
    if by == "factors":
        return _by_factors(recording, randomised, stimuli)
    heads = by == "head"
    scores = {"": _bits(recording.stacked(CONFUSION), stimuli, heads)}
    if randomised is not None:
        scores["random weights"] = _bits(randomised.stacked(CONFUSION), stimuli, heads)
    even = _bits(uniform_attention(recording, CONFUSION)[:, :, None], stimuli, heads)
    scores["uniform attention"] = np.broadcast_to(even, scores[""].shape)
    counts = np.array([np.log2(len(s.candidates)) if s and s.distracted else np.nan for s in stimuli])
    scores["equal attention"] = np.broadcast_to(counts.reshape(-1, *[1] * (even.ndim - 1)), scores[""].shape)
    if by == "condition":
        return _by_condition(scores, stimuli, seed)
    measures, baselines = _measured(scores, stimuli, seed)
    units = dict.fromkeys(measures, UNITS)
    if heads:
        return HeadGrid(measures=measures, baselines=baselines, units=units)
    return LayerCurve(measures=measures, baselines=baselines, units=units, first=1)


def _bits(weights: Floats, stimuli: list[Stimulus | None], heads: bool) -> Floats:
    """(entry, layer) or (entry, layer, head) confusion from (entry, layer, head, 2) attention; NaN where undefined."""
    sums = weights.astype(np.float64)
    sums = sums if heads else sums.mean(2)
    defined = np.array([stimulus is not None and stimulus.distracted for stimulus in stimuli])
    there = (sums[..., 1] > 0) & defined.reshape(-1, *[1] * (sums.ndim - 2))
    shares = np.divide(sums[..., 0], sums[..., 1], out=np.full(sums.shape[:-1], np.nan), where=there)
    return -np.log2(np.clip(shares, LEAST_SHARE, 1.0)) + 0.0  # plus 0: no minus zero


def _groups(stimuli: list[Stimulus | None]) -> dict[str, NDArray[np.bool_]]:
    """Which entries are reported under each name."""
    names = sorted({name for stimulus in stimuli if stimulus and stimulus.distracted for name in stimulus.names})
    return {name: np.array([stimulus is not None and name in stimulus.names for stimulus in stimuli]) for name in names}


def _by_condition(scores: dict[str, Floats], stimuli: list[Stimulus | None], seed: int) -> Table:
    groups = _groups(stimuli)
    found = {
        name: joined([mean_over_sentences(values[own].mean(1), seed=seed) for own in groups.values()])
        for name, values in scores.items()
    }
    return Table(
        measures={"confusion": found[""]},
        baselines={name: {"confusion": estimates} for name, estimates in found.items() if name},
        units={"confusion": UNITS},
        rows_named=tuple(groups),
    )


def _measured(
    scores: dict[str, Floats], stimuli: list[Stimulus | None], seed: int
) -> tuple[dict[str, Estimates], dict[str, dict[str, Estimates]]]:
    found = {
        name: {group: mean_over_sentences(values[own], seed=seed) for group, own in _groups(stimuli).items()}
        for name, values in scores.items()
    }
    return found.pop(""), found


def _by_factors(recording: Recording, randomised: Recording | None, stimuli: list[Stimulus | None]) -> Table:
    rows, found = _coefficients(recording, stimuli)
    baselines = {"no effect": {"effect": Estimates.exact(np.zeros(len(rows)))}}
    if randomised is not None:
        baselines["random weights"] = {"effect": _coefficients(randomised, stimuli)[1]}
    units = {"effect": "bits for a step of 1 in the factor; the intercept is the score where all factors are 0"}
    return Table(measures={"effect": found}, baselines=baselines, units=units, rows_named=tuple(rows))


def _coefficients(recording: Recording, stimuli: list[Stimulus | None]) -> tuple[list[str], Estimates]:
    scores = _bits(recording.stacked(CONFUSION), stimuli, heads=False)
    rows: list[str] = []
    parts: list[Estimates] = []
    for name, (kind, chosen) in REGRESSIONS.items():
        own = [(i, s.design()) for i, s in enumerate(stimuli) if s and s.distracted and s.kind == kind]
        if not own:
            continue
        layers = np.arange(1, scores.shape[1] + 1)
        values = np.array([[design[factor] for factor in chosen] for _, design in own])
        design = np.column_stack(
            [np.ones(len(own) * len(layers)), np.tile(layers, len(own)), np.repeat(values, len(layers), axis=0)]
        )
        response = scores[[i for i, _ in own]].ravel()
        clusters = np.repeat(np.arange(len(own)), len(layers))
        kept = np.isfinite(response)
        fit = least_squares(design[kept], response[kept], clusters=clusters[kept])
        there = np.isfinite(fit.coefficient)
        n = np.where(there, len(np.unique(clusters[kept])), 0)
        rows += [f"{name}: {factor}" for factor in ("intercept", "layer", *chosen)]
        parts.append(Estimates(value=fit.coefficient, low=fit.low, high=fit.high, n=n))
    joint = {field: np.concatenate([getattr(part, field) for part in parts]) for field in ("value", "low", "high", "n")}
    return rows, Estimates(**joint)
