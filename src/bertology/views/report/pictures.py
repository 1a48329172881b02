"""The picture of a finding: the grid of heads, the curve over layers or the rows that its test reads.

What the finding is about is marked: the chosen heads are outlined, the layers shaded. A small picture stands on a card,
a large one in the opened finding; both have the same marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertology.arrays import FloatArray
from bertology.claims.claim import AnyHead, tested_measures, tested_rows
from bertology.claims.claim_results import ClaimResult
from bertology.claims.rounding import round_estimate
from bertology.claims.verdict import Measurement
from bertology.estimates.estimate import Estimates
from bertology.results.drawing.figure import draw_shape
from bertology.results.drawing.panels import MeasureSeries, measure_series
from bertology.results.result import Result
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Table, UnmeasuredShape
from bertology.views.report.picture_shapes import (
    LARGE,
    SMALL,
    Picture,
    PictureSelection,
    PictureSize,
    draw_best_heads,
    draw_finding_curves,
    draw_finding_grid,
    row_picture,
)

MAX_PANELS = 3
"""Measures drawn for one result."""
MAX_ROWS = 8


@dataclass(frozen=True)
class HeadScores:
    """The scores of all heads for the relation of a finding, and the measure of its direction."""

    result: Result
    measure: str


def small_picture(claim_result: ClaimResult, scores: HeadScores | None = None) -> Picture | None:
    """The picture of a card: one panel; None if the numbers are rows of a table, which a strip shows as well."""
    return next(_pictures(claim_result, scores, SMALL), None)


def large_pictures(claim_result: ClaimResult, scores: HeadScores | None = None) -> list[Picture]:
    """The pictures of an opened finding."""
    return list(_pictures(claim_result, scores, LARGE))


def chosen_head(claim_result: ClaimResult) -> Head | None:
    """The head that a finding is about; None if it is about layers or the whole model."""
    heads = _selection(claim_result).heads
    return heads[0] if heads else None


def chosen_layers(claim_result: ClaimResult) -> frozenset[int]:
    """The layers that a finding is about, from 0: those of its heads, or those it names, without the embeddings."""
    selection = _selection(claim_result)
    layers = {head[0] for head in selection.heads} or {layer - 1 for layer in selection.layers}
    return frozenset(layer for layer in layers if layer >= 0)


def grid_picture(result: Result, measure: str, heads: Sequence[Head]) -> Picture:
    """A large picture of one measure of all heads, with some of them marked."""
    assert isinstance(result.data, HeadGrid), "heads are in a grid"
    series = next(measure_series(result.data, [measure]))
    return draw_finding_grid(series, PictureSelection(tuple(heads)), LARGE, ("0", 0.0))


def curve_picture(result: Result, measure: str) -> Picture:
    """A large picture of one measure of all layers."""
    data = result.data
    assert isinstance(data, LayerCurve), "layers are on a curve"
    (series,) = measure_series(data, [measure])
    labels = [str(layer + data.first_layer) for layer in range(series.estimates.shape[0])]
    return draw_finding_curves([series], labels, "layer", data.first_layer, PictureSelection(), LARGE)


def _pictures(claim_result: ClaimResult, scores: HeadScores | None, size: PictureSize) -> Iterator[Picture]:
    selection = _selection(claim_result)
    if scores is not None and isinstance(scores.result.data, HeadGrid):
        of_heads = next(measure_series(scores.result.data, [scores.measure]))
        yield draw_finding_grid(of_heads, selection, size)
        yield draw_best_heads(of_heads)
        return
    test = claim_result.claim.test
    measures, rows = tested_measures(test), tested_rows(test)
    for result in claim_result.results:
        data = result.data
        if isinstance(data, UnmeasuredShape):
            continue
        series = [one for one in measure_series(data, measures) if np.isfinite(one.estimates.value).any()][
            : 1 if size.is_small and not isinstance(data, LayerCurve) else MAX_PANELS
        ]
        if not series:
            continue
        match data:
            case HeadGrid():
                for one in series:
                    if isinstance(test, AnyHead) or selection.heads:
                        yield draw_finding_grid(one, selection, size)
                    else:
                        labels = [str(layer + 1) for layer in range(one.estimates.shape[0])]
                        yield draw_finding_curves([_layer_means(one)], labels, "layer", 1, selection, size)
            case LayerCurve():
                labels = [str(layer + data.first_layer) for layer in range(series[0].estimates.shape[0])]
                for group in _same_unit(series):
                    yield draw_finding_curves(group, labels, "layer", data.first_layer, selection, size)
            case Curve():
                labels = [f"{value:g}" for value in data.x]
                yield draw_finding_curves(series[:1], labels, data.x_name, 0, PictureSelection(), size)
            case Table():
                if not size.is_small:
                    yield from _row_pictures(data, series, rows)
            case _:
                if not size.is_small:
                    yield from (
                        Picture(panel.svg(), panel.name, panel.caption)
                        for panel in draw_shape(data, measures).panels[:MAX_PANELS]
                    )


def _selection(claim_result: ClaimResult) -> PictureSelection:
    """The heads and layers of the compared numbers, and the head that a table names for a tested row."""
    heads: dict[Head, None] = {}
    numbers: dict[Head, str] = {}
    layers: set[int] = set()
    others: set[int] = set()
    for comparison in claim_result.verdict.comparisons:
        if comparison.value.head is not None:
            heads[comparison.value.head] = None
            number = round_estimate(comparison.value.estimate, claim_result.claim.unit)
            numbers[comparison.value.head] = number.text
        layers |= _layer_set(comparison.value)
        if isinstance(comparison.lower, Measurement) and comparison.lower.baseline is None:
            others |= _layer_set(comparison.lower)
    for result in claim_result.results:
        if isinstance(result.data, Table) and "head" in result.data.attributes:
            for row in tested_rows(claim_result.claim.test) & set(result.data.row_names):
                name = result.data.attribute("head", result.data.row_names.index(row))
                if isinstance(name, str):
                    heads[Head.parse(name)] = None
    return PictureSelection(
        tuple(heads), frozenset(layers), frozenset(others - layers), claim_result.claim.unit, numbers
    )


def _layer_set(number: Measurement) -> set[int]:
    return set() if number.layers is None else set(range(number.layers[0], number.layers[1] + 1))


def _same_unit(series: Sequence[MeasureSeries]) -> list[list[MeasureSeries]]:
    """Measures of one unit share a picture."""
    groups: dict[str, list[MeasureSeries]] = {}
    for one in series:
        groups.setdefault(one.unit, []).append(one)
    return list(groups.values())


def _layer_means(series: MeasureSeries) -> MeasureSeries:
    """The means over heads; the limits are means of limits, as the judge takes them."""
    return replace(
        series,
        estimates=_mean_over_heads(series.estimates),
        baselines={name: _mean_over_heads(baseline) for name, baseline in series.baselines.items()},
    )


def _mean_over_heads(estimates: Estimates) -> Estimates:
    def mean(values: FloatArray) -> FloatArray:
        finite = np.isfinite(values)
        sums, counts = np.where(finite, values, 0.0).sum(1), finite.sum(1)
        return np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)

    return Estimates(
        value=mean(estimates.value),
        low=mean(estimates.low),
        high=mean(estimates.high),
        n=estimates.n.max(1),
        interval=estimates.interval,
    )


def _row_pictures(table: Table, series: Sequence[MeasureSeries], tested: set[str]) -> Iterator[Picture]:
    """For each measure the tested rows, or the first ones, as strips on one scale."""
    names = table.row_names
    rows = [index for index, name in enumerate(names) if name in tested] or list(range(len(names)))
    for one in series:
        picture = row_picture(table, one, [row for row in rows if np.isfinite(one.estimates.value[row])][:MAX_ROWS])
        if picture is not None:
            yield picture
