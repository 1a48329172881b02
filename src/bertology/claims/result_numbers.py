"""Look up the numbers a claim's test needs in results, with layers mapped to the depth of the model at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bertology.claims.claim import Claim, LayerCount, Layers, NumberSelector
from bertology.claims.verdict import Measurement
from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.measured_shape import change_measure, gain_measure
from bertology.results.result import Result
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, Table, UnmeasuredShape

POSITIONS = frozenset({"expected layer"})
"""Measures of probes that are no scores: more training data may move them either way."""
TRAINING_UNITS = ("sentences", "examples")
"""What the training data of a probe are counted in; `training sentences` stands in the sample of a result."""


class MissingNumberError(Exception):
    """A number the claim needs is not in the result."""


class LearningGain(NamedTuple):
    """What the second half of a probe's training data adds to a number, and the number of training examples.

    `unit` names what is counted. `may_fall`: the number is a difference of two probes, which may fall as well as rise.
    """

    gain: Estimate
    n_training: int
    unit: str = "sentences"
    may_fall: bool = False


def map_layers(span: tuple[int, int], published_depth: int, n_layers: int) -> range:
    """Layers (from 1) of a model with `n_layers` at the relative depth of layers `span` of `published_depth`.

    A layer belongs to the span if its middle does; if none does, the nearest layer is taken.
    """
    low, high = (span[0] - 1) / published_depth, span[1] / published_depth
    inside = [layer for layer in range(1, n_layers + 1) if low < (layer - 0.5) / n_layers < high]
    if not inside:
        nearest = min(range(1, n_layers + 1), key=lambda layer: abs((layer - 0.5) / n_layers - (low + high) / 2))
        inside = [nearest]
    return range(inside[0], inside[-1] + 1)


def count_layers(count: LayerCount, n_layers: int) -> range:
    """Layers (from 1) of a model with `n_layers`: as many as the count says, in every model."""
    if max(count.first, count.last, count.all_but_last + 1) > n_layers:
        raise MissingNumberError(f"the model has too few layers: {n_layers}")
    if count.first:
        return range(1, count.first + 1)
    return range(n_layers - count.last + 1, n_layers + 1) if count.last else range(1, n_layers - count.all_but_last + 1)


class ResultNumbers:
    """The results of a claim's runs by name, and the numbers in them.

    `series` is the baseline whose numbers are looked up in place of the model's.
    """

    def __init__(self, claim: Claim, results: Mapping[str, Result], series: str | None = None) -> None:
        self._claim = claim
        self._results = results
        self._series = series

    def number(self, selector: NumberSelector) -> Estimate:
        """The selected number; raises `MissingNumberError` if it was not measured."""
        data = self.data(selector.run, (HeadGrid, LayerCurve, Table, Matrix, Curve))
        if selector.layers is not None and isinstance(data, Table):
            data = _build_curve(data)
        names = (selector.measure, *selector.added_measures)
        estimates = _sum([self.measure(data, name, selector.baseline) for name in names])
        match data:
            case Table() | Matrix():
                number = estimates[_index(selector.row, data.row_names, "row")]
                if isinstance(data, Matrix):
                    number = number[_index(selector.column, data.column_names, "column")]
            case Curve():
                number = estimates[_nearest_index(data, selector)]
            case _:
                first = data.first_layer if isinstance(data, LayerCurve) else 1
                number = _mean(estimates[self.layer_indices(selector.layers, len(estimates.value), first)])
        if selector.measure in POSITIONS and selector.baseline is None:
            number = self._with_shift(selector, number)
        if not np.isfinite(number.value):
            row = f" of {selector.row}" if selector.row else ""
            raise MissingNumberError(f"{selector.measure}{row} could not be measured on this corpus")
        return number

    def _with_shift(self, selector: NumberSelector, number: Estimate) -> Estimate:
        """The interval extended by how far the number may still move with more training data."""
        shift_selector = selector.model_copy(update={"measure": gain_measure(selector.measure)})
        try:
            shift = self.number(shift_selector)
        except MissingNumberError:
            return number
        return replace(number, low=number.low + min(0.0, shift.low), high=number.high + max(0.0, shift.high))

    def measurement(self, selector: NumberSelector) -> Measurement:
        """The selected number and where it was measured; raises `MissingNumberError` if it was not."""
        return self._locate(selector, self.number(selector))

    def layer_indices(self, span: Layers | None, count: int, first_layer: int) -> list[int]:
        """Indices along a layer axis of length `count` that starts at `first_layer`."""
        if span is None:
            return list(range(count))
        layers = count if first_layer else count - 1
        if isinstance(span, LayerCount):
            embeddings = [0] if span.embeddings and not first_layer else []
            return embeddings + [layer - first_layer for layer in count_layers(span, layers)]
        embeddings = [0] if span[0] == 0 and not first_layer else []
        if span[1] == 0:
            return embeddings
        if not layers:
            raise MissingNumberError("the model has no layers above its embeddings")
        return embeddings + [
            layer - first_layer for layer in map_layers((max(1, span[0]), span[1]), self._claim.published_depth, layers)
        ]

    def curve(self, run: str, measure: str, baseline: str | None = None) -> tuple[Estimates, int]:
        """A measure, or its baseline, by layer, averaged over heads, and the number of its first layer."""
        data = self.data(run, (LayerCurve, HeadGrid, Table))
        if isinstance(data, Table):
            data = _build_curve(data)
        estimates = self.measure(data, measure, baseline)
        if isinstance(data, LayerCurve):
            return estimates, data.first_layer
        return Estimates.stack([_mean(estimates[row]) for row in range(len(estimates.value))]), 1

    def data(self, run: str, shapes: Any) -> Any:
        """The data of a run, which must have one of these shapes."""
        data = self._results[run].data
        if not isinstance(data, shapes):
            raise TypeError(f"claim {self._claim.id}: its test does not apply to a {type(data).__name__}")
        return data

    def measure(self, data: Any, measure: str, baseline: str | None) -> Estimates:
        """A measure or one of its baselines; raises `MissingNumberError` if there is none."""
        baseline = baseline or self._series
        measures = data.measures if baseline is None else data.baselines.get(baseline, {})
        if measure not in measures:
            if measure in data.not_measured:
                raise MissingNumberError(f"{measure} was not measured: {data.not_measured[measure]}")
            name = f"baseline {baseline} of {measure}" if baseline else measure
            raise MissingNumberError(f"the result has no {name}; it has {', '.join(measures) or 'none'}")
        return measures[measure]

    def gain(self, number: Measurement) -> LearningGain | None:
        """What the second half of the training data adds to a number; None if it is not a probe's."""
        data = self._results[number.run].data
        if not isinstance(data, LayerCurve | Table | Curve):
            return None
        measures = data.measures if number.baseline is None else data.baselines.get(number.baseline, {})
        gains, changes = (measures.get(name(number.measure)) for name in (gain_measure, change_measure))
        estimates = changes if gains is None else gains
        if estimates is None or number.measure in POSITIONS:
            return None
        unit = next((unit for unit in TRAINING_UNITS if f"training {unit}" in data.sample), TRAINING_UNITS[0])
        size = data.sample.get(f"training {unit}", 0)
        match data:
            case LayerCurve():
                first, last = number.layers or (data.first_layer, data.first_layer + len(estimates.value) - 1)
                gain = _mean(estimates[list(range(first - data.first_layer, last + 1 - data.first_layer))])
            case Curve():
                gain = estimates[int(np.abs(data.x - (number.x or 0.0)).argmin())]
                if not np.isfinite(gain.value):  # not measured at this point of a learning curve
                    return None
            case _:
                row = _index(number.row, data.row_names, "row")
                gain, by_row = estimates[row], data.attributes.get(f"training {unit}")
                size = by_row[row] if by_row is not None else size
        return LearningGain(gain, int(size or 0), unit, may_fall=gains is None)

    def paired_difference(self, number: Measurement, baseline: str) -> Estimate | None:
        """A number of the model minus that of a baseline, resampled on the same examples; None if it was not."""
        data = self._results[number.run].data
        if isinstance(data, UnmeasuredShape) or number.measure in POSITIONS:
            return None
        estimates = data.paired_differences.get(baseline, {}).get(number.measure)
        cells = cell_indices(number, data)
        if estimates is None or cells is None:
            return None
        difference = _mean(estimates[cells])
        return difference if np.isfinite(estimates[cells].low).all() else None

    def _locate(self, selector: NumberSelector, estimate: Estimate) -> Measurement:
        data = self._results[selector.run].data
        head, layers, n_layers, x, x_name, n_cases, variant = None, None, 0, None, "", 0, ""
        baseline = selector.baseline or self._series
        if isinstance(data, Table) and selector.row in data.row_names:
            row = data.row_names.index(selector.row)
            attributes = {name: values[row] for name, values in data.attributes.items()}
            name = attributes.get("head") if baseline is None else None  # a baseline has other heads, or none
            head = Head.parse(name) if isinstance(name, str) else None
            cases, best = attributes.get("n_examples"), attributes.get(baseline or "")
            n_cases = cases if isinstance(cases, int) else 0
            variant = best if isinstance(best, str) else ""
        if selector.layers is not None:
            layers, n_layers = self._model_layers(selector.layers, data)
        if isinstance(data, Curve):
            x, x_name = float(data.x[_nearest_index(data, selector)]), data.x_name
        return Measurement(
            measure=" + ".join((selector.measure, *selector.added_measures)),
            estimate=estimate,
            run=selector.run,
            baseline=baseline,
            row=selector.row,
            head=head,
            layers=layers,
            n_layers=n_layers,
            x=x,
            x_name=x_name,
            n_cases=n_cases,
            variant=variant,
        )

    def _model_layers(self, span: Layers, data: Any) -> tuple[tuple[int, int], int]:
        """The first and last layer of the model at hand that stand for the published layers, and its depth."""
        data = _build_curve(data) if isinstance(data, Table) else data
        first = data.first_layer if isinstance(data, LayerCurve) else 1
        count = len(next(iter(data.measures.values())).value)
        rows = self.layer_indices(span, count, first)
        return (rows[0] + first, rows[-1] + first), count - (first == 0)


def cell_indices(number: Measurement, data: Any) -> Any:
    """An index of the cells that a number is the mean of, as arrays; None for shapes that are not looked up."""
    layers = number.layers
    match data:
        case HeadGrid() if number.head is not None:
            return [number.head[0]], [number.head[1]]
        case HeadGrid() | LayerCurve():
            first = data.first_layer if isinstance(data, LayerCurve) else 1
            return slice(None) if layers is None else slice(layers[0] - first, layers[1] + 1 - first)
        case Table() if layers is not None:
            return [row for layer, row in _layer_rows(data).items() if layers[0] <= layer <= layers[1]]
        case Table() if number.row in data.row_names:
            return [data.row_names.index(number.row)]
        case Curve() if number.x is not None:
            return [int(np.abs(data.x - number.x).argmin())]
        case _:
            return None


def _index(name: str | None, names: Sequence[str], kind: str) -> int:
    if name not in names:
        raise MissingNumberError(f"the result has no {kind} {name!r}; it has {', '.join(names)}")
    return names.index(name)


def _build_curve(table: Table) -> LayerCurve:
    """The rows of a table that are layers (attribute `layer`), as a curve."""
    row_of_layer = _layer_rows(table)
    if not row_of_layer:
        raise MissingNumberError(f"no row of the table is a layer; it has {', '.join(table.row_names)}")
    first_layer, rows = next(iter(row_of_layer)), list(row_of_layer.values())
    measures = {name: estimates[rows] for name, estimates in table.measures.items()}
    baselines = {
        name: {measure: estimates[rows] for measure, estimates in baseline.items()}
        for name, baseline in table.baselines.items()
    }
    return LayerCurve(measures=measures, baselines=baselines, units=table.units, first_layer=first_layer)


def _layer_rows(table: Table) -> dict[int, int]:
    """The row of each layer, by the attribute `layer`; the other rows are no layers."""
    layers = table.attributes.get("layer", ())
    return {layer: row for row, layer in enumerate(layers) if isinstance(layer, int)}


def _nearest_index(curve: Curve, selector: NumberSelector) -> int:
    """The index of the selected point, or of the nearest one."""
    if selector.x is not None:
        x = selector.x
    else:  # x may decrease, as the number of heads left does
        x = float(curve.x.max()) * (1.0 if selector.x_fraction is None else selector.x_fraction)
    return int(np.abs(curve.x - x).argmin())


def _mean(estimates: Estimates) -> Estimate:
    """The mean of all measured numbers, with the means of their limits as its interval."""
    measured = np.isfinite(estimates.value)
    if not measured.any():
        return Estimate(np.nan, np.nan, np.nan, 0)
    value, low, high = (float(array[measured].mean()) for array in (estimates.value, estimates.low, estimates.high))
    return Estimate(value, low, high, int(estimates.n[measured].max()), estimates.interval)


def _sum(estimates: Sequence[Estimates]) -> Estimates:
    """The sum of estimates, with the sums of their limits."""
    value, low, high = (np.sum([getattr(e, name) for e in estimates], axis=0) for name in ("value", "low", "high"))
    return Estimates(value=value, low=low, high=high, n=estimates[0].n, interval=estimates[0].interval)
