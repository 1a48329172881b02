"""The judge: does a claim hold for these results? Decided by intervals, never by a point estimate alone.

Two numbers are told apart where their 95 % intervals lie apart. The mean over layers or heads has the mean of their
ends as its interval, as if they all erred together: wider than need be. Where the best of many heads is asked for,
intervals are widened as Bonferroni would, so that the luckiest of them does not decide.

| verdict | is given where |
|---|---|
| holds | the intervals say so |
| fails | the intervals say the opposite |
| inconclusive | they overlap |
| not applicable | the model or corpus lacks something, which is named |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy.stats import norm

from bertology.claims.claim import (
    Between,
    Claim,
    Greater,
    Ordered,
    Peak,
    PeaksInOrder,
    Selection,
    SomeHead,
    SomeRow,
)
from bertology.errors import Refusal
from bertology.results.estimate import Estimate, Estimates
from bertology.results.result import Result
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, Table

Outcome = Literal["holds", "fails", "inconclusive", "not applicable"]
OUTCOMES: tuple[Outcome, ...] = ("holds", "fails", "inconclusive", "not applicable")


@dataclass(frozen=True)
class Verdict:
    """An outcome and the numbers it rests on, as a sentence."""

    outcome: Outcome
    why: str


class _Absent(Exception):
    """A number the claim asks for is not in the result."""


def judge(claim: Claim, found: Mapping[str, Result | Refusal]) -> Verdict:
    """The verdict on a claim from its runs, by the names it gives them; a refused run makes it not applicable."""
    for result in found.values():
        if isinstance(result, Refusal):
            return Verdict("not applicable", str(result))
    results = {name: result for name, result in found.items() if isinstance(result, Result)}
    try:
        return _Judge(claim, results).verdict()
    except _Absent as absent:
        needs = f"; it needs {', '.join(claim.needs)}" if claim.needs else ""
        return Verdict("not applicable", f"{absent}{needs}")


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


class _Judge:
    def __init__(self, claim: Claim, results: Mapping[str, Result]) -> None:
        self._claim = claim
        self._results = results

    def verdict(self) -> Verdict:
        match self._claim.test:
            case Greater() as test:
                return self._greater(test)
            case Between() as test:
                return self._between(test)
            case SomeHead() as test:
                return self._some_head(test)
            case SomeRow() as test:
                return self._some_row(test)
            case Peak() as test:
                return self._peak(test)
            case Ordered() as test:
                return self._ordered(test.these)
            case PeaksInOrder() as test:
                return self._peaks_in_order(test.these)

    def _greater(self, test: Greater) -> Verdict:
        this = self._number(test.this)
        if isinstance(test.than, Selection):
            than, name = self._number(test.than), self._spelt(test.than)
        else:
            than, name = Estimate(test.than, test.than, test.than, 0), ""
        beyond = Estimate(than.value + test.by, than.low + test.by, than.high + test.by, than.n)
        beside = f"{name} {than}" if name else f"{test.than:g}"
        why = f"{self._spelt(test.this)} {this} beside {beside}" + (f", asked: {test.by:g} more" if test.by else "")
        return Verdict(_compared(this, beyond), why)

    def _between(self, test: Between) -> Verdict:
        this = self._number(test.this)
        why = f"{self._spelt(test.this)} {this}, asked: {test.low:g} to {test.high:g}"
        if test.low < this.low and this.high < test.high:
            return Verdict("holds", why)
        return Verdict(
            "fails" if this.clearly_below(test.low) or this.clearly_above(test.high) else "inconclusive", why
        )

    def _some_head(self, test: SomeHead) -> Verdict:
        grid = self._data(test.run, HeadGrid)
        estimates = self._measure(grid, test.measure, None)
        rows = self._rows(test.layers, len(estimates.value), 1)
        values = {name: self._measure(grid, test.measure, name) for name in test.baselines}
        wide = _widened(estimates[rows], estimates[rows].value.size)
        floor = np.full(wide.shape, test.above)
        for baseline in values.values():
            floor = np.fmax(floor, baseline[rows].high)
        if not np.isfinite(wide.value).any():
            raise _Absent(f"{test.measure} could not be measured for any head")
        lead = np.where(np.isfinite(wide.low), wide.low - floor, -np.inf)
        place = np.unravel_index(int(lead.argmax()), lead.shape)
        best = Head(rows[int(place[0])], int(place[1]))
        beside = "".join(f", {name} {values[name][best]}" for name in values)
        above = f", asked: above {test.above:g}" if np.isfinite(test.above) else ""
        why = f"{test.measure} of head {best} {estimates[best]}{beside}{above}"
        if lead.max() > 0:
            return Verdict("holds", why)
        return Verdict("fails" if (wide.high < floor)[np.isfinite(wide.high)].all() else "inconclusive", why)

    def _some_row(self, test: SomeRow) -> Verdict:
        outcomes: list[Outcome] = []
        told: list[str] = []
        for row in test.rows:
            try:
                this = self._number(Selection(measure=test.measure, row=row, run=test.run))
                than = self._number(Selection(measure=test.measure, row=row, run=test.run, baseline=test.baseline))
            except _Absent:
                continue
            beyond = Estimate(than.value + test.by, than.low + test.by, than.high + test.by, than.n)
            outcomes.append(_compared(this, beyond))
            told.append(f"{row} {this} ({test.baseline} {than})")
        if len(outcomes) < test.least:
            raise _Absent(f"of {', '.join(test.rows)} too few have cases enough to be measured: {len(outcomes)}")
        sure, possible = outcomes.count("holds"), len(outcomes) - outcomes.count("fails")
        outcome: Outcome = "holds" if sure >= test.least else "fails" if possible < test.least else "inconclusive"
        return Verdict(outcome, f"{sure} of {len(outcomes)} clearly above: {'; '.join(told)}")

    def _peak(self, test: Peak) -> Verdict:
        data = self._data(test.run, (LayerCurve, HeadGrid))
        curve = self._by_layer(data, test.measure)
        first = data.first if isinstance(data, LayerCurve) else 1
        inside = self._rows(test.layers, len(curve.value), first)
        outside = [row for row in range(len(curve.value)) if row not in inside]
        if not outside:
            raise _Absent("the model has too few layers to tell its middle from its ends")
        sign = -1.0 if test.lowest else 1.0
        here, there = (max(rows, key=lambda row: sign * curve.value[row]) for rows in (inside, outside))
        this, than = curve[here], curve[there]
        end = "lowest" if test.lowest else "highest"
        why = (
            f"{test.measure} is {end} among layers {inside[0] + first}-{inside[-1] + first} at layer {here + first}: "
            f"{this}; elsewhere at layer {there + first}: {than}"
        )
        return Verdict(_compared(than, this) if test.lowest else _compared(this, than), why)

    def _ordered(self, these: Sequence[Selection]) -> Verdict:
        numbers = [self._number(one) for one in these]
        outcomes = [_compared(after, before) for before, after in pairwise(numbers)]
        told = " < ".join(f"{self._spelt(one)} {number}" for one, number in zip(these, numbers, strict=True))
        outcome: Outcome = "fails" if "fails" in outcomes else "inconclusive" if "inconclusive" in outcomes else "holds"
        return Verdict(outcome, f"asked: {told}")

    def _peaks_in_order(self, these: Sequence[Selection]) -> Verdict:
        """Holds where every layer that may be a measure's peak lies above all that may be that of the one before."""
        spans: list[tuple[int, int, int]] = []
        for one in these:
            data = self._data(one.run, LayerCurve)
            curve = self._measure(data, one.measure, one.baseline)
            best = int(np.nanargmax(curve.value))
            possible = np.flatnonzero(curve.high >= curve.low[best]) + data.first
            spans.append((int(possible.min()), best + data.first, int(possible.max())))
        pairs = list(pairwise(spans))
        told = "; ".join(
            f"{self._spelt(one)} at layer {best} (perhaps {low}-{high})"
            for one, (low, best, high) in zip(these, spans, strict=True)
        )
        if all(before[2] < after[0] for before, after in pairs):
            return Verdict("holds", told)
        return Verdict("fails" if any(before[0] > after[2] for before, after in pairs) else "inconclusive", told)

    def _number(self, selection: Selection) -> Estimate:
        data = self._data(selection.run, (HeadGrid, LayerCurve, Table, Matrix, Curve))
        summed = [self._measure(data, one, selection.baseline) for one in (selection.measure, *selection.plus)]
        estimates = _sum(summed)
        match data:
            case Table() | Matrix():
                if selection.row not in data.rows_named:
                    raise _Absent(f"there is no row {selection.row!r}; there are {', '.join(data.rows_named)}")
                number = estimates[data.rows_named.index(str(selection.row))]
                if isinstance(data, Matrix):
                    number = number[data.columns_named.index(str(selection.column))]
            case Curve():
                number = estimates[_nearest(data, selection)]
            case _:
                first = data.first if isinstance(data, LayerCurve) else 1
                number = _mean(estimates[self._rows(selection.layers, len(estimates.value), first)])
        if not np.isfinite(number.value):
            raise _Absent(f"{self._spelt(selection)} could not be measured on this corpus")
        return number

    def _rows(self, span: tuple[int, int] | None, count: int, first: int) -> list[int]:
        """Places along the layer axis: `count` of them, the first being layer `first`."""
        if span is None:
            return list(range(count))
        layers = count if first else count - 1
        embeddings = [0] if span[0] == 0 and not first else []
        if span[1] == 0:
            return embeddings
        return embeddings + [
            layer - first for layer in layers_of((max(1, span[0]), span[1]), self._claim.depth, layers)
        ]

    def _by_layer(self, data: HeadGrid | LayerCurve, measure: str) -> Estimates:
        estimates = self._measure(data, measure, None)
        return (
            estimates
            if isinstance(data, LayerCurve)
            else _stacked([_mean(estimates[row]) for row in range(len(estimates.value))])
        )

    def _data(self, run: str, kinds: Any) -> Any:
        data = self._results[run].data
        if not isinstance(data, kinds):
            raise TypeError(f"claim {self._claim.id}: its test cannot be asked of a {type(data).__name__}")
        return data

    def _measure(self, data: Any, measure: str, baseline: str | None) -> Estimates:
        within = data.measures if baseline is None else data.baselines.get(baseline, {})
        if measure not in within:
            named = f"{baseline} of {measure}" if baseline else measure
            raise _Absent(f"{named} is not measured here; there are {', '.join(within) or 'none'}")
        return within[measure]

    def _spelt(self, selection: Selection) -> str:
        measure = " and ".join((selection.measure, *selection.plus))
        parts = [selection.run, selection.baseline or "", measure, selection.row or ""]
        if selection.layers is not None:
            parts.append(f"layers {selection.layers[0]}-{selection.layers[1]} of {self._claim.depth}")
        data = self._results[selection.run].data
        if isinstance(data, Curve):
            parts.append(f"at {data.points[_nearest(data, selection)]:g} {data.along}")
        return ", ".join(part for part in parts if part)


def _nearest(curve: Curve, selection: Selection) -> int:
    """The place of the point that is asked for, or of the nearest one."""
    last = float(curve.points[-1])
    wanted = (
        selection.point if selection.point is not None else last * (1.0 if selection.share is None else selection.share)
    )
    return int(np.abs(curve.points - wanted).argmin())


def _compared(this: Estimate, than: Estimate) -> Outcome:
    if this.clearly_above(than):
        return "holds"
    return "fails" if this.clearly_below(than) else "inconclusive"


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


def _stacked(numbers: Sequence[Estimate]) -> Estimates:
    value, low, high = (np.array([getattr(one, name) for one in numbers]) for name in ("value", "low", "high"))
    return Estimates(value=value, low=low, high=high, n=np.array([one.n for one in numbers]))


def _widened(estimates: Estimates, tried: int) -> Estimates:
    """Intervals that hold for all of `tried` numbers at once, by Bonferroni and the normal distribution."""
    factor = norm.isf(0.025 / tried) / norm.isf(0.025)
    return Estimates(
        value=estimates.value,
        low=estimates.value - factor * (estimates.value - estimates.low),
        high=estimates.value + factor * (estimates.high - estimates.value),
        n=estimates.n,
    )
