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

from collections.abc import Mapping, Sequence
from itertools import pairwise

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
from bertology.claims.result_numbers import MissingNumberError, ResultNumbers
from bertology.claims.verdict import Comparison, Measurement, Outcome, Verdict
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve


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
    obstacle = f"{reason} {claim.requirement_help}" if claim.requirement_help else reason
    return Verdict("not applicable", obstacle=obstacle)


class _Judge:
    def __init__(self, claim: Claim, results: Mapping[str, Result]) -> None:
        self._numbers = ResultNumbers(claim, results)

    def verdict(self, test: Test) -> Verdict:
        match test:
            case Greater():
                return self._greater(test)
            case Between():
                return _all_of([Comparison(self._numbers.measurement(test.value), test.low, test.high)])
            case AnyHead():
                return self._any_head(test)
            case AnyRow():
                return self._any_row(test)
            case PeakLayer():
                return self._peak_layer(test)
            case Increasing():
                return _all_of(_in_order([self._numbers.measurement(selector) for selector in test.values]))
            case PeaksInOrder():
                return _all_of(_in_order([self._peak(selector) for selector in test.curves]))

    def _greater(self, test: Greater) -> Verdict:
        left, right = self._numbers.measurement(test.left), test.right
        lower = self._numbers.measurement(right) if isinstance(right, NumberSelector) else right
        return _all_of([Comparison(left, lower, margin=test.margin)])

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
        value = Measurement(test.measure, estimate, test.run, head=head, n_candidates=widened.value.size)
        comparisons = [Comparison(value, test.threshold)] if np.isfinite(test.threshold) else []
        comparisons += [
            Comparison(value, Measurement(test.measure, baseline[head], test.run, baseline=name, head=head))
            for name, baseline in baselines.items()
        ]
        lower_everywhere = bool((widened.high < floor)[measured].all())
        outcome: Outcome = "holds" if margin.max() > 0 else "fails" if lower_everywhere else "inconclusive"
        return Verdict(outcome, tuple(comparisons))

    def _any_row(self, test: AnyRow) -> Verdict:
        comparisons: list[Comparison] = []
        for row in test.rows:
            selector = NumberSelector(measure=test.measure, row=row, run=test.run)
            try:
                value = self._numbers.measurement(selector)
                baseline = self._numbers.measurement(selector.model_copy(update={"baseline": test.baseline}))
                difference = None
                if test.difference is not None:
                    difference = self._numbers.number(selector.model_copy(update={"measure": test.difference}))
            except MissingNumberError:
                continue
            comparisons.append(Comparison(value, baseline, margin=test.margin, difference=difference))
        if len(comparisons) < test.min_rows:
            raise MissingNumberError(f"too few of {', '.join(test.rows)} have enough examples: {len(comparisons)}")
        outcomes = [comparison.outcome for comparison in comparisons]
        n_possible = len(outcomes) - outcomes.count("fails")
        enough = outcomes.count("holds") >= test.min_rows
        outcome: Outcome = "holds" if enough else "fails" if n_possible < test.min_rows else "inconclusive"
        return Verdict(outcome, tuple(comparisons), test.min_rows if len(test.rows) > 1 else 0)

    def _peak_layer(self, test: PeakLayer) -> Verdict:
        curve, first_layer = self._numbers.curve(test.run, test.measure)
        inside = self._numbers.layer_indices(test.layers, len(curve.value), first_layer)
        outside = [row for row in range(len(curve.value)) if row not in inside]
        if not outside:
            raise MissingNumberError("the model has too few layers to separate these layers from the others")
        if not np.isfinite(curve.value).all():
            raise MissingNumberError(f"{test.measure} could not be measured in every layer")
        widened = _bonferroni(curve, len(curve.value))
        best, other = (
            self._extreme(test, widened, [row + first_layer for row in rows], first_layer) for rows in (inside, outside)
        )
        return _all_of([Comparison(best, other, is_below=test.lowest)])

    @staticmethod
    def _extreme(test: PeakLayer, curve: Estimates, layers: Sequence[int], first_layer: int) -> Measurement:
        """The highest, or lowest, of these layers."""
        sign = -1.0 if test.lowest else 1.0
        best = max(layers, key=lambda layer: sign * curve.value[layer - first_layer])
        return Measurement(
            test.measure,
            curve[best - first_layer],
            test.run,
            layers=(best, best),
            n_layers=len(curve.value) - (first_layer == 0),
            searched_layers=tuple(layers),
            is_lowest=test.lowest,
            n_candidates=len(curve.value),
        )

    def _peak(self, selector: NumberSelector) -> Measurement:
        """The layer of a curve's peak; its interval holds every layer that may be the peak."""
        data = self._numbers.data(selector.run, LayerCurve)
        curve = self._numbers.measure(data, selector.measure, selector.baseline)
        measured = np.isfinite(curve.value)
        if not measured.any():
            raise MissingNumberError(f"{selector.measure} could not be measured in any layer")
        best = int(np.nanargmax(curve.value))
        # A number without an interval may be anything.
        possible = np.flatnonzero(measured & ~(curve.high < curve.low[best])) + data.first_layer
        peak = Estimate(
            float(best + data.first_layer),
            float(possible.min()),
            float(possible.max()),
            int(curve.n[best]),
            "simultaneous",
        )
        return Measurement(f"peak layer of {selector.measure}", peak, selector.run, baseline=selector.baseline)


def _all_of(comparisons: Sequence[Comparison]) -> Verdict:
    """Holds if every comparison holds; fails if one fails."""
    outcomes = {comparison.outcome for comparison in comparisons}
    outcome: Outcome = "fails" if "fails" in outcomes else "inconclusive" if "inconclusive" in outcomes else "holds"
    return Verdict(outcome, tuple(comparisons))


def _in_order(numbers: Sequence[Measurement]) -> list[Comparison]:
    """Each number compared with the previous one."""
    return [Comparison(after, before) for before, after in pairwise(numbers)]


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
