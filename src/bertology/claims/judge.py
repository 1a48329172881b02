"""The judge: does a claim hold for these results? Intervals decide, never a point estimate alone.

Two numbers differ if their 95 % intervals do not overlap. That is stricter than necessary for two numbers of the same
examples: an analysis that measures their paired difference reports it as a measure, and the claim tests that measure.
The interval of a mean over layers or heads is the mean of their limits, as if all errors were perfectly correlated:
wider than necessary. Where a test takes the best of many heads or layers, intervals are widened by the Bonferroni
correction, and reported as widened.

| verdict | condition |
|---|---|
| holds | the intervals satisfy the test |
| fails | the intervals satisfy the opposite |
| inconclusive | the intervals overlap |
| not applicable | the model or corpus lacks something, which is named, or the precondition does not hold |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.stats import norm

from bertology.claims.claim import (
    AnyHead,
    AnyRow,
    Between,
    Claim,
    Greater,
    Increasing,
    NumberSelector,
    PeakLayer,
    PeaksInOrder,
    Test,
)
from bertology.claims.result_numbers import MissingNumberError, ResultNumbers, format_layers
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table

Outcome = Literal["holds", "fails", "inconclusive", "not applicable"]
OUTCOMES: tuple[Outcome, ...] = ("holds", "fails", "inconclusive", "not applicable")
_PLURALS = {"holds": "hold", "fails": "fail"}


def count_outcomes(outcomes: Iterable[Outcome]) -> str:
    """The number of each outcome, as text."""
    counts = Counter[str](outcomes)
    parts = [(counts[name], name if counts[name] == 1 else _PLURALS.get(name, name)) for name in OUTCOMES]
    return ", ".join(f"{count} {name}" for count, name in parts if count)


@dataclass(frozen=True)
class Verdict:
    """An outcome and the numbers behind it, as a sentence.

    `selected` is what the test selected among many, counted from 0: the layer and index of a head, or two layers.
    """

    outcome: Outcome
    reason: str
    selected: tuple[int, int] | None = None


def judge(claim: Claim, outcomes: Mapping[str, Result | Refusal]) -> Verdict:
    """The verdict on a claim from the outcomes of its runs by name; a refused run makes it not applicable."""
    for outcome in outcomes.values():
        if isinstance(outcome, Refusal):
            return _not_applicable(claim, str(outcome))
    results = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Result)}
    needs = f" It needs {', '.join(claim.requirements)}." if claim.requirements else ""
    try:
        judging = _Judge(claim, results)
        if claim.precondition is not None:
            precondition = judging.verdict(claim.precondition)
            if precondition.outcome != "holds":
                reason = f"The precondition of this claim is not met: {precondition.reason}{needs}"
                return _not_applicable(claim, reason)
        return judging.verdict(claim.test)
    except MissingNumberError as missing:
        return _not_applicable(claim, f"{missing}.{needs}")


def _not_applicable(claim: Claim, reason: str) -> Verdict:
    return Verdict("not applicable", f"{reason} {claim.requirement_help}" if claim.requirement_help else reason)


class _Judge:
    def __init__(self, claim: Claim, results: Mapping[str, Result]) -> None:
        self._numbers = ResultNumbers(claim, results)

    def verdict(self, test: Test) -> Verdict:
        match test:
            case Greater():
                return self._greater(test)
            case Between():
                return self._between(test)
            case AnyHead():
                return self._any_head(test)
            case AnyRow():
                return self._any_row(test)
            case PeakLayer():
                return self._peak_layer(test)
            case Increasing():
                return self._increasing(test.values)
            case PeaksInOrder():
                return self._peaks_in_order(test.curves)

    def _greater(self, test: Greater) -> Verdict:
        left = self._numbers.number(test.left)
        if isinstance(test.right, NumberSelector):
            right = self._numbers.number(test.right)
            reference = f"{self._numbers.describe(test.right)}, {right}"
        else:
            right, reference = _exact_estimate(test.right), f"{test.right:g}"
        outcome = _compare(left, _shift(right, test.margin))
        needed = f"the claim needs {_format_margin(test.margin)} {reference}"
        return Verdict(
            outcome, f"{self._numbers.describe(test.left)} is {left}; {needed}{_format_sample_size(left, right)}."
        )

    def _between(self, test: Between) -> Verdict:
        value = self._numbers.number(test.value)
        reason = (
            f"{self._numbers.describe(test.value)} is {value}; the claim needs {test.low:g} to {test.high:g}"
            f"{_format_sample_size(value)}."
        )
        if test.low < value.low and value.high < test.high:
            return Verdict("holds", reason)
        outside = value.clearly_below(test.low) or value.clearly_above(test.high)
        return Verdict("fails" if outside else "inconclusive", reason)

    def _any_head(self, test: AnyHead) -> Verdict:
        grid = self._numbers.data(test.run, HeadGrid)
        estimates = self._numbers.measure(grid, test.measure, None)
        rows = self._numbers.layer_indices(test.layers, len(estimates.value), 1)
        baselines = {name: self._numbers.measure(grid, test.measure, name) for name in test.baselines}
        widened = _bonferroni(estimates[rows], estimates[rows].value.size)
        floor = np.full(widened.shape, test.threshold)
        for baseline in baselines.values():
            floor = np.fmax(floor, baseline[rows].high)
        measured = np.isfinite(widened.value)
        if not measured.any():
            raise MissingNumberError(f"{test.measure} could not be measured for any head")
        margin = np.where(np.isfinite(widened.low), widened.low - floor, -np.inf)
        # Without any interval (a single text), the highest head is reported and decides nothing.
        ranking = margin if np.isfinite(margin).any() else np.where(measured, widened.value, -np.inf)
        index = np.unravel_index(int(ranking.argmax()), margin.shape)
        head = Head(rows[int(index[0])], int(index[1]))
        estimate: Estimate = widened[index]
        needed = [f"{test.threshold:g}"] if np.isfinite(test.threshold) else []
        needed += [f"{name} {baselines[name][head]}" for name in baselines]
        reason = (
            f"head {head}: {test.measure} is {estimate} (interval corrected for {widened.value.size} heads); "
            f"the claim needs more than {' and '.join(needed)}{_format_sample_size(estimate)}."
        )
        if margin.max() > 0:
            return Verdict("holds", reason, head)
        return Verdict("fails" if (widened.high < floor)[measured].all() else "inconclusive", reason, head)

    def _any_row(self, test: AnyRow) -> Verdict:
        outcomes: list[Outcome] = []
        descriptions: list[str] = []
        used: list[Estimate] = []
        for row in test.rows:
            selector = NumberSelector(measure=test.measure, row=row, run=test.run)
            try:
                value = self._numbers.number(selector)
                baseline = self._numbers.number(selector.model_copy(update={"baseline": test.baseline}))
                difference = self._difference(test, selector)
            except MissingNumberError:
                continue
            if difference is None:
                outcomes.append(_compare(value, _shift(baseline, test.margin)))
            else:
                outcomes.append(_compare(difference, _exact_estimate(test.margin)))
            paired = "" if difference is None else f", difference {difference}"
            descriptions.append(f"{row}{self._head(test, row)}: {value} ({test.baseline} {baseline}{paired})")
            used += [value, baseline]
        if len(outcomes) < test.min_rows:
            raise MissingNumberError(f"too few of {', '.join(test.rows)} have enough examples: {len(outcomes)}")
        certain, possible = outcomes.count("holds"), len(outcomes) - outcomes.count("fails")
        outcome: Outcome = (
            "holds" if certain >= test.min_rows else "fails" if possible < test.min_rows else "inconclusive"
        )
        rows = f" in at least {test.min_rows} rows ({certain} of {len(outcomes)} do)" if len(test.rows) > 1 else ""
        needed = f"the claim needs {_format_margin(test.margin)} the {test.baseline}{rows}"
        return Verdict(outcome, f"{'; '.join(descriptions)}; {needed}{_format_sample_size(*used)}.")

    def _difference(self, test: AnyRow, selector: NumberSelector) -> Estimate | None:
        """The paired difference of a row from its baseline, if it is measured."""
        if test.difference is None:
            return None
        return self._numbers.number(selector.model_copy(update={"measure": test.difference}))

    def _head(self, test: AnyRow, row: str) -> str:
        """The head a row is about, if the table has one."""
        data = self._numbers.data(test.run, object)
        if not isinstance(data, Table) or "head" not in data.attributes:
            return ""
        head = data.attributes["head"][data.row_names.index(row)]
        return f", head {head}" if head is not None else ""

    def _peak_layer(self, test: PeakLayer) -> Verdict:
        curve, first_layer = self._numbers.curve(test.run, test.measure)
        inside = self._numbers.layer_indices(test.layers, len(curve.value), first_layer)
        outside = [row for row in range(len(curve.value)) if row not in inside]
        if not outside:
            raise MissingNumberError("the model has too few layers to separate these layers from the others")
        if not np.isfinite(curve.value).all():
            raise MissingNumberError(f"{test.measure} could not be measured in every layer")
        sign = -1.0 if test.lowest else 1.0
        best, other = (max(rows, key=lambda row: sign * curve.value[row]) for rows in (inside, outside))
        widened = _bonferroni(curve, len(curve.value))
        end = "lowest" if test.lowest else "highest"
        among = format_layers(inside[0] + first_layer, inside[-1] + first_layer)
        reason = (
            f"{test.measure}: {end} of {among} is {widened[best]} at layer {best + first_layer}; {end} of the other "
            f"layers is {widened[other]} at layer {other + first_layer} (intervals corrected for {len(curve.value)} "
            f"layers); the claim needs the first to be {'lower' if test.lowest else 'higher'}"
            f"{_format_sample_size(curve[best], curve[other])}."
        )
        left, right = (widened[other], widened[best]) if test.lowest else (widened[best], widened[other])
        return Verdict(_compare(left, right), reason, (best, other))

    def _increasing(self, selectors: Sequence[NumberSelector]) -> Verdict:
        numbers = [self._numbers.number(selector) for selector in selectors]
        outcomes = [_compare(after, before) for before, after in pairwise(numbers)]
        order = " < ".join(
            f"{self._numbers.describe(selector)}, {number}" for selector, number in zip(selectors, numbers, strict=True)
        )
        outcome: Outcome = "fails" if "fails" in outcomes else "inconclusive" if "inconclusive" in outcomes else "holds"
        return Verdict(outcome, f"The claim needs: {order}{_format_sample_size(*numbers)}.")

    def _peaks_in_order(self, selectors: Sequence[NumberSelector]) -> Verdict:
        """Holds if every layer that may be a curve's peak lies above all that may be the previous curve's."""
        spans: list[tuple[int, int, int]] = []
        peaks: list[Estimate] = []
        for selector in selectors:
            data = self._numbers.data(selector.run, LayerCurve)
            curve = self._numbers.measure(data, selector.measure, selector.baseline)
            measured = np.isfinite(curve.value)
            if not measured.any():
                raise MissingNumberError(f"{self._numbers.describe(selector)} could not be measured in any layer")
            best = int(np.nanargmax(curve.value))
            # A number without an interval may be anything.
            possible = np.flatnonzero(measured & ~(curve.high < curve.low[best])) + data.first_layer
            spans.append((int(possible.min()), best + data.first_layer, int(possible.max())))
            peaks.append(curve[best])
        pairs = list(pairwise(spans))
        description = "; ".join(
            f"{self._numbers.describe(selector)} peaks at layer {best} (interval: {low}-{high})"
            for selector, (low, best, high) in zip(selectors, spans, strict=True)
        )
        reason = f"{description}; the claim needs this order{_format_sample_size(*peaks)}."
        if all(before[2] < after[0] for before, after in pairs):
            return Verdict("holds", reason)
        return Verdict("fails" if any(before[0] > after[2] for before, after in pairs) else "inconclusive", reason)


def _format_margin(margin: float) -> str:
    """The comparison a margin asks for, to stand before the reference."""
    if not margin:
        return "more than"
    return f"more than {margin:g} above" if margin > 0 else f"no more than {-margin:g} below"


def _format_sample_size(*estimates: Estimate) -> str:
    """The sample sizes as text; empty for exact numbers."""
    counts = sorted({estimate.n for estimate in estimates if estimate.n > 0})
    if not counts:
        return ""
    return f" (n = {counts[0]})" if len(counts) == 1 else f" (n = {counts[0]} to {counts[-1]})"


def _exact_estimate(value: float) -> Estimate:
    return Estimate(value, value, value, 0, "exact")


def _shift(estimate: Estimate, margin: float) -> Estimate:
    return Estimate(
        estimate.value + margin, estimate.low + margin, estimate.high + margin, estimate.n, estimate.interval
    )


def _compare(left: Estimate, right: Estimate) -> Outcome:
    if left.clearly_above(right):
        return "holds"
    return "fails" if left.clearly_below(right) else "inconclusive"


def _bonferroni(estimates: Estimates, n_comparisons: int) -> Estimates:
    """Intervals that hold for `n_comparisons` numbers at once, by Bonferroni and the normal distribution."""
    factor = norm.isf(0.025 / n_comparisons) / norm.isf(0.025)
    return Estimates(
        value=estimates.value,
        low=estimates.value - factor * (estimates.value - estimates.low),
        high=estimates.value + factor * (estimates.high - estimates.value),
        n=estimates.n,
        interval="simultaneous",
    )
