"""Judge the numbers of results by the test of a claim: find what it compares, and compare it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.stats import norm

from bertology.claims.claim import (
    AllOf,
    AnyHead,
    AnyRow,
    Between,
    Claim,
    EachLayer,
    Greater,
    Increasing,
    NumberSelector,
    PeakLayer,
    PeaksInOrder,
    Test,
)
from bertology.claims.result_numbers import LearningGain, MissingNumberError, ResultNumbers
from bertology.claims.verdict import (
    Caveat,
    Comparison,
    LearningProbe,
    Measurement,
    Outcome,
    Verdict,
)
from bertology.estimates.estimate import ROUNDING_ERROR, Estimate, Estimates
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve

MAX_LEARNING_GAIN, MIN_TRAINING_SENTENCES = 0.02, 100
"""A probe has learnt enough if the second half of its training data changes its score by at most this much.

Learning curves are S-shaped: with fewer sentences than this, a small gain says nothing.
"""
N_DOUBLINGS = 5
"""A verdict stands if it would be the same after so many more doublings of the training data at the same gain."""


def _could_change(comparison: Comparison, outcome: Outcome, gains: Mapping[Measurement, LearningGain]) -> bool:
    """Whether some more doublings of the training data could lead a probe across the number it is compared with.

    A score is assumed not to fall with more data unless its gain is clearly negative. A difference of two probes may
    fall or rise: by the whole of its interval with one more doubling, or by what is certain with some more.
    """
    still = LearningGain(Estimate(0.0, 0.0, 0.0, 0), MIN_TRAINING_SENTENCES)
    probe, lower = gains.get(comparison.value, still), still
    if isinstance(comparison.lower, Measurement):
        lower = gains.get(comparison.lower, still)
    gain, lower_gain = probe.gain, lower.gain
    fall, rise = N_DOUBLINGS * min(0.0, gain.high), N_DOUBLINGS * max(0.0, gain.high)
    if probe.may_fall:
        fall, rise = min(0.0, gain.low, N_DOUBLINGS * gain.high), max(0.0, gain.high, N_DOUBLINGS * gain.low)
    too_few = lower.n_training < MIN_TRAINING_SENTENCES
    if probe.may_fall or outcome != "holds":
        too_few |= probe.n_training < MIN_TRAINING_SENTENCES
    effect, margin = comparison.effect, comparison.margin
    if comparison.upper is not None:
        room = comparison.upper - comparison.value.estimate.high, comparison.value.estimate.low - comparison.upper
        if outcome == "holds":
            return too_few or effect.low + fall <= ROUNDING_ERROR or room[0] - rise <= ROUNDING_ERROR
        is_below = effect.clearly_below(0.0)
        return too_few or (effect.high + rise >= -ROUNDING_ERROR if is_below else room[1] + fall <= ROUNDING_ERROR)
    if outcome == "holds":
        return too_few or effect.low + fall - N_DOUBLINGS * max(0.0, lower_gain.high) <= margin + ROUNDING_ERROR
    return too_few or effect.high + rise - N_DOUBLINGS * min(0.0, lower_gain.low) >= margin - ROUNDING_ERROR


class NumberJudge:
    """The numbers of a claim, and the tests that compare them; `series` is a baseline that is judged in their place."""

    def __init__(self, claim: Claim, results: Mapping[str, Result], series: str | None = None) -> None:
        self._numbers, self._series = ResultNumbers(claim, results, series), series

    def verdict(self, test: Test) -> Verdict:
        """The verdict of a test on the numbers, without controls and caveats."""
        match test:
            case Greater():
                return self._greater(test)
            case AllOf():
                return _all_of([c for part in test.tests for c in self._greater(part).comparisons])
            case Between():
                return _all_of([Comparison(self._numbers.measurement(test.value), test.low, test.high)])
            case AnyHead():
                return self._any_head(test)
            case AnyRow():
                return self._any_row(test)
            case PeakLayer():
                return self._peak_layer(test)
            case EachLayer():
                return self._each_layer(test)
            case Increasing():
                return _all_of(_in_order([self._numbers.measurement(selector) for selector in test.values]))
            case PeaksInOrder():
                return _all_of(_in_order([self._peak(selector) for selector in test.curves]))

    def smallest_training(self, verdict: Verdict) -> LearningGain | None:
        """The gain of the compared probe with the fewest training data; None if there are none."""
        gains = [self._numbers.gain(comparison.value) for comparison in verdict.comparisons]
        return min(filter(None, gains), key=lambda gain: gain.n_training, default=None)

    def still_learning(self, test: Test, verdict: Verdict) -> list[Caveat]:
        """A caveat for each number of a probe that more training data would change, if that may change the verdict."""
        caveats: list[Caveat] = []
        for comparison in verdict.comparisons:
            numbers = [n for n in (comparison.value, comparison.lower) if isinstance(n, Measurement)]
            gains = {number: gain for number in numbers if (gain := self._numbers.gain(number)) is not None}
            # Where a test searches among layers, those that are not compared learn as well.
            is_fixed = isinstance(test, Greater | AllOf | AnyRow | Increasing | Between)
            if is_fixed and gains and not _could_change(comparison, verdict.outcome, gains):
                continue
            caveats += [
                LearningProbe(number, gain, size, unit, MIN_TRAINING_SENTENCES)
                for number, (gain, size, unit, _) in gains.items()
                if max(gain.high, -gain.low) > MAX_LEARNING_GAIN + ROUNDING_ERROR or size < MIN_TRAINING_SENTENCES
            ]
        return caveats

    def differences(self, test: Test, verdict: Verdict, control: Verdict) -> list[Estimate]:
        """How much larger each effect is in the model than in the control: of the best heads, or of each comparison."""
        if isinstance(test, AnyHead):
            return [self._difference(verdict.comparisons[0].value, control.comparisons[0].value)]
        by_row = {comparison.value.row: comparison for comparison in control.comparisons}
        pairs = (
            [(c, by_row[c.value.row]) for c in verdict.comparisons if c.value.row in by_row]
            if isinstance(test, AnyRow)
            else zip(verdict.comparisons, control.comparisons, strict=True)
        )
        return [self._effect_difference(model, other) for model, other in pairs]

    def _effect_difference(self, model: Comparison, control: Comparison) -> Estimate:
        """The effect in the model minus that in the control."""
        if model.lower == control.lower and not model.is_below:  # the number that both are compared with cancels out
            return self._difference(model.value, control.value)
        value = self._paired_difference(model.value, control.value)
        lower: Estimate | None = Estimate(0.0, 0.0, 0.0, 0)
        if isinstance(model.lower, Measurement) and isinstance(control.lower, Measurement):
            lower = self._paired_difference(model.lower, control.lower)
        if value is None or lower is None:
            return _independent_difference(model.effect, control.effect)
        return Comparison(replace(model.value, estimate=value), Measurement("", lower), is_below=model.is_below).effect

    def _difference(self, model: Measurement, control: Measurement) -> Estimate:
        paired = self._paired_difference(model, control)
        return paired or _independent_difference(model.estimate, control.estimate)

    def _paired_difference(self, model: Measurement, control: Measurement) -> Estimate | None:
        """The paired difference of two numbers at the same place, corrected for as many candidates as they are."""
        if self._series is None or replace(control, baseline=None, estimate=model.estimate) != model:
            return None
        difference = self._numbers.paired_difference(model, self._series)
        expected = model.estimate.value - control.estimate.value
        if difference is None or not np.isclose(difference.value, expected, rtol=1e-9, atol=ROUNDING_ERROR):
            return None
        if model.n_candidates <= 1:
            return difference
        return _bonferroni(Estimates.full((1,), difference), model.n_candidates)[0]

    def _greater(self, test: Greater) -> Verdict:
        left, right = self._numbers.measurement(test.left), test.right
        lower = self._numbers.measurement(right) if isinstance(right, NumberSelector) else right
        return _all_of([Comparison(left, lower, margin=test.margin)])

    def _any_head(self, test: AnyHead) -> Verdict:
        grid = self._numbers.data(test.run, HeadGrid)
        estimates = self._numbers.measure(grid, test.measure, None)
        rows = self._numbers.layer_indices(test.layers, len(estimates.value), 1)
        # Foreign attention has no untrained model: the baselines that are there decide.
        names = [b for b in test.baselines if b != self._series and test.measure in grid.baselines.get(b, {})]
        if test.baselines and not names and self._series is None:
            raise MissingNumberError(f"the result has none of the baselines {', '.join(test.baselines)}")
        baselines = {name: self._numbers.measure(grid, test.measure, name) for name in names}
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
        comparisons = [Comparison(value, test.threshold)] if np.isfinite(test.threshold) or not baselines else []
        comparisons += [
            Comparison(value, Measurement(test.measure, baseline[head], test.run, baseline=name, head=head))
            for name, baseline in baselines.items()
        ]
        lower_everywhere = bool((floor - widened.high > ROUNDING_ERROR)[measured].all())
        outcome: Outcome = "holds" if margin.max() > ROUNDING_ERROR else "fails" if lower_everywhere else "inconclusive"
        return Verdict(outcome, tuple(comparisons))

    def _any_row(self, test: AnyRow) -> Verdict:
        comparisons: list[Comparison] = []
        for row in test.rows:
            selector = NumberSelector(measure=test.measure, row=row, run=test.run)
            try:
                value = self._numbers.measurement(selector)
                baseline = self._numbers.measurement(selector.model_copy(update={"baseline": test.baseline}))
                difference = None
                if test.difference is not None and self._series is None:
                    difference = self._numbers.number(selector.model_copy(update={"measure": test.difference}))
            except MissingNumberError:
                continue
            comparisons.append(Comparison(value, baseline, margin=test.margin, difference=difference))
        if len(comparisons) < test.min_rows:
            raise MissingNumberError(f"there are too few examples of {', '.join(test.rows)}")
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

    def _each_layer(self, test: EachLayer) -> Verdict:
        """Each layer beside the baseline, or beside the other layer that speaks most against the claim."""
        curve, first_layer = self._numbers.curve(test.run, test.measure)
        n_rows = len(curve.value)
        inside = self._numbers.layer_indices(test.layers, n_rows, first_layer)
        if test.baseline is not None:
            others, _ = self._numbers.curve(test.run, test.measure, test.baseline)
            pairs = [(row, [row]) for row in inside]
            n_candidates = len(inside)
        else:
            others = curve
            layers = range(1 - first_layer, n_rows) if test.others is None else ()
            outside = layers or self._numbers.layer_indices(test.others, n_rows, first_layer)
            pairs = [(row, [other for other in outside if other not in inside]) for row in inside]
            n_candidates = n_rows
        if not all(rows for _, rows in pairs):
            raise MissingNumberError("the model has too few layers to separate these layers from the others")
        if not np.isfinite(curve.value[[*inside, *(row for _, rows in pairs for row in rows)]]).all():
            raise MissingNumberError(f"{test.measure} could not be measured in every layer")

        def layer(estimates: Estimates, row: int, baseline: str | None = None) -> Measurement:
            return Measurement(
                test.measure,
                estimates[row],
                test.run,
                baseline=baseline,
                layers=(row + first_layer, row + first_layer),
                n_layers=n_rows - (first_layer == 0),
                n_candidates=n_candidates,
            )

        widened, widened_others = _bonferroni(curve, n_candidates), _bonferroni(others, n_candidates)
        comparisons: list[Comparison] = []
        for row, other_rows in pairs:
            value = layer(widened, row)
            lower = [layer(widened_others, other, test.baseline) for other in other_rows]
            candidates = [Comparison(value, number, margin=test.margin, is_below=test.lowest) for number in lower]
            comparisons.append(min(candidates, key=_support))
        return _all_of(comparisons)

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
        possible = np.flatnonzero(measured & ~(curve.low[best] - curve.high > ROUNDING_ERROR)) + data.first_layer
        peak = Estimate(
            float(best + data.first_layer),
            float(possible.min()),
            float(possible.max()),
            int(curve.n[best]),
            "simultaneous",
        )
        n_layers = len(curve.value) - (data.first_layer == 0)
        return Measurement(
            f"peak layer of {selector.measure}", peak, selector.run, baseline=selector.baseline, n_layers=n_layers
        )


def _all_of(comparisons: Sequence[Comparison]) -> Verdict:
    """Holds if every comparison holds; fails if one fails."""
    outcomes = {comparison.outcome for comparison in comparisons}
    outcome: Outcome = "fails" if "fails" in outcomes else "inconclusive" if "inconclusive" in outcomes else "holds"
    return Verdict(outcome, tuple(comparisons))


def _support(comparison: Comparison) -> tuple[int, float]:
    """How much a comparison supports a claim: by its outcome, then by its effect."""
    return ("fails", "inconclusive", "holds").index(comparison.outcome), comparison.effect.value


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


def _independent_difference(left: Estimate, right: Estimate) -> Estimate:
    """The difference of two estimates, with the interval of independent ones."""
    value = left.value - right.value
    low = value - float(np.hypot(left.value - left.low, right.high - right.value))
    high = value + float(np.hypot(left.high - left.value, right.value - right.low))
    return Estimate(value, low, high, min(left.n, right.n) or max(left.n, right.n), left.interval)
