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
| not applicable | model or corpus lack something, a precondition does not hold, or no task was learnt (`reference`) |

A claim that holds is then compared with its controls: the untrained model, or another simple baseline. The same test is
applied to the control's numbers on the same examples.

| specificity | condition |
|---|---|
| specific | the effect is larger in the model than in the control, which does not pass the test |
| stronger | it is larger, though the control passes as well |
| earned too | the control passes, and the effect is not larger |
| undecided | the control does not pass, but the difference may be zero |
| not measured | the results have no numbers of the control |

Model and control are measured on the same examples. Where both were resampled together, the difference is paired
(`paired_differences` of the result). Else, as for the best heads of the two, its interval combines both as if they were
independent: wider than necessary, as their errors go the same way.

Nothing is decided on fewer than 10 examples, or by a probe that would still learn from more training data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from scipy.stats import norm

from bertology.claims.answer import write_comparisons
from bertology.claims.claim import (
    UNTRAINED,
    AllOf,
    AnyHead,
    AnyRow,
    Between,
    Claim,
    Control,
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
    ControlVerdict,
    FewExamples,
    LearningProbe,
    Measurement,
    Outcome,
    Specificity,
    Verdict,
)
from bertology.errors import Refusal
from bertology.estimates.estimate import ROUNDING_ERROR, Estimate, Estimates
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve, UnmeasuredShape

MIN_EXAMPLES = 10
"""No verdict is drawn from fewer examples."""
MAX_LEARNING_GAIN, MIN_TRAINING_SENTENCES = 0.02, 100
"""A probe has learnt enough if the second half of its training data changes its score by at most this much.

Learning curves are S-shaped: with fewer sentences than this, a small gain says nothing.
"""
N_DOUBLINGS = 5
"""A verdict stands if it would be the same after so many more doublings of the training data at the same gain."""


def judge(claim: Claim, outcomes: Mapping[str, Result | Refusal], *, untrained_remedy: str = "") -> Verdict:
    """The verdict on a claim from the outcomes of its runs by name; a refused run makes it not applicable.

    `untrained_remedy` says how to measure the untrained model, if the results may lack it.
    """
    for outcome in outcomes.values():
        if isinstance(outcome, Refusal):
            return _not_applicable(claim, str(outcome))
    results = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Result)}
    needs = f" It needs {', '.join(claim.requirements)}." if claim.requirements else ""
    for result in results.values():
        if not isinstance(result.data, UnmeasuredShape) and (nothing_learnt := result.data.describe_reference()):
            return _not_applicable(claim, f"{nothing_learnt}{needs}")
    try:
        judging = _Judge(claim, results)
        if claim.precondition is not None:
            precondition = judging.verdict(claim.precondition)
            if precondition.outcome != "holds":
                return _not_applicable(
                    claim, f"What this presupposes is not so. {write_comparisons(precondition)}{needs}"
                )
        verdict = judging.verdict(claim.test)
        if (training := judging.smallest_training(verdict)) is not None:
            verdict = replace(verdict, n_training=training.n_training, training_unit=training.unit)
        verdict = replace(verdict, untrained=_untrained_comparisons(claim, results))
        caveats = (*_too_few_examples(verdict), *judging.still_learning(claim.test, verdict))
        if caveats and verdict.outcome in {"holds", "fails"}:
            return replace(verdict, outcome="inconclusive", caveats=caveats)
    except MissingNumberError as missing:
        return _not_applicable(claim, f"{missing}.{needs}")
    if verdict.outcome != "holds":
        return verdict
    controls = [_judge_control(claim, results, verdict, control) for control in claim.controls]
    return replace(
        verdict,
        controls=tuple(
            replace(control, remedy=untrained_remedy)
            if control.specificity == "not measured" and control.name == UNTRAINED.name
            else control
            for control in controls
        ),
    )


def _untrained_comparisons(claim: Claim, results: Mapping[str, Result]) -> tuple[Comparison, ...]:
    """The claim's test on the numbers of the untrained model, if it is a control and was measured."""
    if UNTRAINED not in claim.controls:
        return ()
    try:
        return _Judge(claim, results, UNTRAINED.name).verdict(claim.test).comparisons
    except MissingNumberError:
        return ()


def _judge_control(claim: Claim, results: Mapping[str, Result], verdict: Verdict, control: Control) -> ControlVerdict:
    """How a finding that holds relates to one control."""
    try:
        if control.test is not None:
            beyond = _Judge(claim, results).verdict(control.test)
            relations: dict[Outcome, Specificity] = {"holds": "specific", "fails": "earned too"}
            return ControlVerdict(control.name, relations.get(beyond.outcome, "undecided"), beyond.comparisons)
        judging = _Judge(claim, results, control.name)
        same_test = judging.verdict(claim.test)
    except MissingNumberError:
        return ControlVerdict(control.name, "not measured")
    passes = same_test.outcome == "holds"
    if isinstance(claim.test, Between):  # a number within a range is not larger or smaller than another one
        relation: Specificity = "earned too" if passes else "specific" if same_test.outcome == "fails" else "undecided"
        return ControlVerdict(control.name, relation, same_test.comparisons)
    differences = judging.differences(claim.test, verdict, same_test)
    n_larger = sum(difference.clearly_above(0.0) for difference in differences)
    if differences and n_larger >= (verdict.n_required or len(differences)):
        relation = "stronger" if passes else "specific"
    else:
        relation = "earned too" if passes else "undecided"
    smallest = min(differences, key=lambda difference: difference.low, default=None)
    return ControlVerdict(control.name, relation, same_test.comparisons, smallest)


def _independent_difference(left: Estimate, right: Estimate) -> Estimate:
    """The difference of two estimates, with the interval of independent ones."""
    value = left.value - right.value
    low = value - float(np.hypot(left.value - left.low, right.high - right.value))
    high = value + float(np.hypot(left.high - left.value, right.value - right.low))
    return Estimate(value, low, high, min(left.n, right.n) or max(left.n, right.n), left.interval)


def _not_applicable(claim: Claim, reason: str) -> Verdict:
    obstacle = f"{reason} {claim.requirement_help}" if claim.requirement_help else reason
    return Verdict("not applicable", obstacle=obstacle)


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


def _too_few_examples(verdict: Verdict) -> list[Caveat]:
    """A caveat if a compared number is of fewer examples than a verdict needs."""
    counts = [c.value.estimate.n for c in verdict.comparisons if c.value.estimate.interval != "exact"]
    too_few = [n for n in counts if n < MIN_EXAMPLES]
    return [FewExamples(min(too_few), MIN_EXAMPLES)] if too_few else []


class _Judge:
    def __init__(self, claim: Claim, results: Mapping[str, Result], series: str | None = None) -> None:
        self._numbers, self._series = ResultNumbers(claim, results, series), series

    def verdict(self, test: Test) -> Verdict:
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
        return (
            _bonferroni(difference.broadcast_to((1,)), model.n_candidates)[0] if model.n_candidates > 1 else difference
        )

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
