"""Does the model find the acceptable sentence of a pair more likely (warstadt2020, salazar2020)?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Item
from bertology.corpus.factors import factors
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.division import random_form
from bertology.measures.probes.masked_scores import Masking, Question, log_probabilities, questions, require_masking
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, pooled_over_sentences
from bertology.results.shapes import Table

Floats = NDArray[np.floating[Any]]

SUM, MEAN = "accuracy", "accuracy by mean"


@dataclass(frozen=True)
class _Pair:
    """The inputs of an acceptable and an unacceptable sentence, and what they are an example of."""

    good: tuple[Entry, ...]
    bad: tuple[Entry, ...]
    phenomenon: str
    paradigm: str


@analysis(
    question="Does the model find the acceptable sentence of a pair more likely?",
    special="seen by the model, never masked or scored",
    cites=("warstadt2020", "salazar2020", "kauf2023"),
    layers=("minimal pairs",),
)
def minimal_pairs(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder,
    *,
    masking: Annotated[
        Masking, "hide each piece alone, with the rest of its word to the right, or with its whole word"
    ] = "piece",
    seed: Annotated[int, "seed of the bootstrap"] = 0,
) -> Table:
    """Share of pairs whose acceptable sentence has the higher pseudo-log-likelihood, 0 to 1; 0.5 is chance.

    Each piece that is not special is hidden in turn, and the natural logarithms of the probabilities of the hidden
    pieces are added up (`accuracy`) or averaged (`accuracy by mean`, which does not favour the shorter sentence). A
    piece of a long word is easily guessed from the pieces after it, which makes rare words too likely: `masking`
    "rest of word" hides those too (kauf2023), "word" the whole word. A tie counts as wrong. Rows: all pairs, the
    phenomena, the paradigms; over several paradigms the mean of theirs, whatever their sizes. Intervals are over pairs.
    `fewer pieces` prefers the sentence with fewer pieces (half a point each where they are equally long): a paradigm
    far from 0.5 there can be solved, or is made hard, by length alone. `random weights` is one draw: where all pairs of
    a paradigm differ in the same words, those weights like one of them better everywhere, and it is far from 0.5.
    """
    require_masking(encoder, purpose="probes/minimal_pairs")
    pairs = _pairs(recording)
    rows = _rows(pairs)
    baselines = {
        "chance": {name: Estimates.exact(np.full(len(rows), 0.5)) for name in (SUM, MEAN)},
        "fewer pieces": {SUM: _over(rows, _shorter(pairs), pairs, seed)},
    }
    if randomised is not None and (fresh := random_form(encoder)) is not None:
        baselines["random weights"] = _accuracies(fresh, pairs, rows, masking, seed)
    return Table(
        measures=_accuracies(encoder, pairs, rows, masking, seed),
        baselines=baselines,
        units={SUM: "share of pairs, 0 to 1", MEAN: "share of pairs, 0 to 1"},
        rows_named=tuple(rows),
    )


def _pairs(recording: Recording) -> list[_Pair]:
    """Pairs both of whose sentences were kept, windows of an over-long one together."""
    sides: dict[tuple[int, int], list[Entry]] = defaultdict(list)
    for entry in recording.entries:
        sides[entry.item, entry.variant].append(entry)
    found: list[_Pair] = []
    for number, item in enumerate(recording.corpus):
        good, bad = sides.get((number, 0)), sides.get((number, 1))
        if item.kind == "minimal_pair" and good and bad:
            found.append(_Pair(tuple(good), tuple(bad), *_names(item)))
    if not found:
        raise Refusal(
            f"No pair of {recording.corpus.name} was kept whole",
            "pairs that fit the model",
            "Use --long truncate, or other pairs",
        )
    return found


def _names(item: Item) -> tuple[str, str]:
    """The phenomenon and the paradigm: of BLiMP's `field/term/UID`, or of generated pairs' `term/kind`."""
    source = factors(item).get("paradigm", item.source) or "pairs"
    *_, phenomenon, paradigm = ["", *source.split("/")] if "/" not in source else source.split("/")
    return phenomenon or paradigm, paradigm


def _rows(pairs: Sequence[_Pair]) -> dict[str, NDArray[np.bool_]]:
    """Which pairs each row of the table counts, all first, then phenomena, then paradigms under their phenomenon."""
    rows: dict[str, NDArray[np.bool_]] = {"all": np.ones(len(pairs), np.bool_)}
    phenomena = sorted({pair.phenomenon for pair in pairs})
    named = sorted({(pair.phenomenon, pair.paradigm) for pair in pairs})
    if len(phenomena) > 1:
        rows |= {name: np.array([pair.phenomenon == name for pair in pairs]) for name in phenomena}
    if len(named) > 1:
        for own in named:
            rows["/".join(own)] = np.array([(pair.phenomenon, pair.paradigm) == own for pair in pairs])
    return rows


def _accuracies(
    encoder: Encoder, pairs: Sequence[_Pair], rows: dict[str, NDArray[np.bool_]], masking: Masking, seed: int
) -> dict[str, Estimates]:
    sides = [side for pair in pairs for side in (pair.good, pair.bad)]
    asked: list[Question] = []
    owners: list[int] = []
    for owner, side in enumerate(sides):
        for entry in side:
            own = list(questions(entry.pieces, masking))
            asked += own
            owners += [owner] * len(own)
    logs = log_probabilities(encoder, asked)
    sums = np.bincount(owners, logs, len(sides)).astype(np.float64)
    counts = np.bincount(owners, minlength=len(sides))
    means = np.divide(sums, counts, out=np.full(len(sides), np.nan), where=counts > 0)
    return {
        name: _over(rows, _preferred(values.reshape(-1, 2)), pairs, seed)
        for name, values in ((SUM, sums), (MEAN, means))
    }


def _preferred(scores: Floats) -> Floats:
    """(pair,) 1 where the acceptable sentence scores higher, 0 where not; NaN where one has no score."""
    return np.where(np.isnan(scores).any(1), np.nan, scores[:, 0] > scores[:, 1])


def _shorter(pairs: Sequence[_Pair]) -> Floats:
    """(pair,) 1 where the acceptable sentence has fewer pieces, 0.5 where both have as many."""
    good, bad = (
        np.array([sum(len(entry.pieces) for entry in side) for side in sides])
        for sides in zip(*((pair.good, pair.bad) for pair in pairs), strict=True)
    )
    return np.where(good == bad, 0.5, good < bad)


def _over(rows: dict[str, NDArray[np.bool_]], values: Floats, pairs: Sequence[_Pair], seed: int) -> Estimates:
    """The mean over each row's paradigms, with an interval over pairs."""
    paradigms = np.unique([f"{pair.phenomenon}/{pair.paradigm}" for pair in pairs], return_inverse=True)[1]
    measured = np.isfinite(values)
    sizes = np.bincount(paradigms, measured)
    weights = np.where(measured, 1 / sizes[paradigms].clip(min=1), 0.0)
    filled = np.where(measured, values, 0.0)
    # Only the row's own pairs are resampled, so that every resample has as many as there are.
    return joined([pooled_over_sentences(weights[own] * filled[own], weights[own], seed=seed) for own in rows.values()])
