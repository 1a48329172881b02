"""The numbers of results that a claim's test asks for, with depths mapped to the model at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bertology.claims.claim import Claim, Selection
from bertology.results.estimate import Estimate, Estimates
from bertology.results.result import Result
from bertology.results.sampling import joined
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Table

LAYER = "layer "
"""How tables name the rows of layers."""


class Absent(Exception):
    """A number the claim asks for is not in the result."""


def layers_of(span: tuple[int, int], depth: int, layers: int) -> range:
    """The layers (from 1) of a model of `layers` that lie where layers `span` of a model of `depth` lie.

    A layer counts where its middle lies within the span's share of the depth; the nearest one where none does.
    """
    low, high = (span[0] - 1) / depth, span[1] / depth
    inside = [layer for layer in range(1, layers + 1) if low < (layer - 0.5) / layers < high]
    if not inside:
        nearest = min(range(1, layers + 1), key=lambda layer: abs((layer - 0.5) / layers - (low + high) / 2))
        inside = [nearest]
    return range(inside[0], inside[-1] + 1)


class Numbers:
    """What a claim's runs found, by the names it gives them."""

    def __init__(self, claim: Claim, results: Mapping[str, Result]) -> None:
        self._claim = claim
        self._results = results

    def number(self, selection: Selection) -> Estimate:
        """The number that a selection stands for; absent where it was not measured."""
        data = self.data(selection.run, (HeadGrid, LayerCurve, Table, Matrix, Curve))
        if selection.layers is not None and isinstance(data, Table):
            data = _by_layer(data)
        summed = [self.measure(data, one, selection.baseline) for one in (selection.measure, *selection.plus)]
        estimates = _sum(summed)
        match data:
            case Table() | Matrix():
                number = estimates[_place(selection.row, data.rows_named, "row")]
                if isinstance(data, Matrix):
                    number = number[_place(selection.column, data.columns_named, "column")]
            case Curve():
                number = estimates[_nearest(data, selection)]
            case _:
                first = data.first if isinstance(data, LayerCurve) else 1
                number = _mean(estimates[self.rows(selection.layers, len(estimates.value), first)])
        if not np.isfinite(number.value):
            raise Absent(f"{self.spelt(selection)} could not be measured on this corpus")
        return number

    def rows(self, span: tuple[int, int] | None, count: int, first: int) -> list[int]:
        """Places along the layer axis: `count` of them, the first being layer `first`."""
        if span is None:
            return list(range(count))
        layers = count if first else count - 1
        embeddings = [0] if span[0] == 0 and not first else []
        if span[1] == 0:
            return embeddings
        if not layers:
            raise Absent("the model has no layers above its embeddings")
        return embeddings + [
            layer - first for layer in layers_of((max(1, span[0]), span[1]), self._claim.depth, layers)
        ]

    def curve(self, run: str, measure: str) -> tuple[Estimates, int]:
        """A measure by layer, heads taken together, and the number of its first layer."""
        data = self.data(run, (LayerCurve, HeadGrid, Table))
        if isinstance(data, Table):
            data = _by_layer(data)
        estimates = self.measure(data, measure, None)
        if isinstance(data, LayerCurve):
            return estimates, data.first
        return joined([_mean(estimates[row]) for row in range(len(estimates.value))]), 1

    def data(self, run: str, kinds: Any) -> Any:
        """The data of a run, which must be of one of these shapes."""
        data = self._results[run].data
        if not isinstance(data, kinds):
            raise TypeError(f"claim {self._claim.id}: its test cannot be asked of a {type(data).__name__}")
        return data

    def measure(self, data: Any, measure: str, baseline: str | None) -> Estimates:
        """A measure or one of its baselines; absent where it was not measured."""
        within = data.measures if baseline is None else data.baselines.get(baseline, {})
        if measure not in within:
            named = f"{baseline} of {measure}" if baseline else measure
            raise Absent(f"{named} is not measured here; there are {', '.join(within) or 'none'}")
        return within[measure]

    def spelt(self, selection: Selection) -> str:
        """A selection in words."""
        measure = " + ".join((selection.measure, *selection.plus))
        parts = [selection.run, selection.baseline or "", measure, selection.row or ""]
        data = self._results[selection.run].data
        if selection.layers is not None:
            parts.append(self._depth(selection.layers, data))
        if isinstance(data, Curve):
            parts.append(f"at {data.points[_nearest(data, selection)]:g} {data.along}")
        return ", ".join(part for part in parts if part)

    def _depth(self, span: tuple[int, int], data: Any) -> str:
        """Layers as they were published, and those that lie there in the model at hand where it has more or fewer."""
        if span == (0, 0):
            return "the embeddings"
        published = f"{spelt_layers(*span)} of {self._claim.depth}"
        data = _by_layer(data) if isinstance(data, Table) else data
        first = data.first if isinstance(data, LayerCurve) else 1
        count = len(next(iter(data.measures.values())).value)
        if count - (first == 0) == self._claim.depth:
            return published
        places = self.rows(span, count, first)
        here = spelt_layers(places[0] + first, places[-1] + first)
        return f"{published} (here {here.removeprefix('layer').removeprefix('s').strip()})"


def spelt_layers(first: int, last: int) -> str:
    """Layers in words: `layer 8`, `layers 4-7`."""
    return f"layer {last}" if first == last else f"layers {first}-{last}"


def _place(name: str | None, names: Sequence[str], kind: str) -> int:
    if name not in names:
        raise Absent(f"there is no {kind} {name!r}; there are {', '.join(names)}")
    return names.index(name)


def _by_layer(table: Table) -> LayerCurve:
    """The rows of a table that are layers, as a curve."""
    named = enumerate(table.rows_named)
    places = [place for place, row in named if row.startswith(LAYER) and row.removeprefix(LAYER).isdecimal()]
    if not places:
        raise Absent(f"no row is a layer; there are {', '.join(table.rows_named)}")
    first = int(table.rows_named[places[0]].removeprefix(LAYER))
    measures = {name: own[places] for name, own in table.measures.items()}
    baselines = {name: {key: own[places] for key, own in some.items()} for name, some in table.baselines.items()}
    return LayerCurve(measures=measures, baselines=baselines, units=table.units, first=first)


def _nearest(curve: Curve, selection: Selection) -> int:
    """The place of the point that is asked for, or of the nearest one."""
    most = float(curve.points.max())  # points may fall, as the heads that are left do
    wanted = (
        selection.point if selection.point is not None else most * (1.0 if selection.share is None else selection.share)
    )
    return int(np.abs(curve.points - wanted).argmin())


def _mean(estimates: Estimates) -> Estimate:
    """The mean of all numbers that are there, with the mean of their ends as its interval."""
    there = np.isfinite(estimates.value)
    if not there.any():
        return Estimate(np.nan, np.nan, np.nan, 0)
    value, low, high = (float(some[there].mean()) for some in (estimates.value, estimates.low, estimates.high))
    return Estimate(value, low, high, int(estimates.n[there].max()))


def _sum(parts: Sequence[Estimates]) -> Estimates:
    """Numbers added up, and the ends of their intervals likewise."""
    value, low, high = (np.sum([getattr(one, name) for one in parts], axis=0) for name in ("value", "low", "high"))
    return Estimates(value=value, low=low, high=high, n=parts[0].n)
