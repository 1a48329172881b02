"""`Strip`: the numbers of a verdict on one scale, to be drawn as a dot with its interval beside its baselines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from bertology.claims.claim import AnyHead, Claim
from bertology.claims.rounding import Unit
from bertology.claims.verdict import Comparison, Measurement, Verdict, format_layers
from bertology.estimates.estimate import Estimate

UNTRAINED_MODEL = "untrained model"


@dataclass(frozen=True)
class NamedEstimate:
    """A number and what it is of: `head 4-4`, `uniform attention`, `layers 5-8 of 8`."""

    name: str
    estimate: Estimate


@dataclass(frozen=True)
class Strip:
    """The measured number and what it is compared with, all in the unit of the measure.

    `baseline` is the number it is compared with: a baseline, or the number of other layers or another row. `required`
    is the number it must exceed, or the range it must lie in, whose ends may be infinite. Numbers of `percent` and
    `points` are proportions; multiply them by 100 to show them.
    """

    measured: NamedEstimate
    baseline: NamedEstimate | None
    untrained: Estimate | None
    published: float | tuple[float, float] | None
    required: float | tuple[float, float] | None
    unit: Unit
    axis: tuple[float, float]

    def as_record(self) -> dict[str, Any]:
        """The fields as plain values; None for what is not finite."""
        return _finite(asdict(self))


def strip(claim: Claim, verdict: Verdict) -> Strip | None:
    """The strip of a verdict; None if nothing was measured."""
    comparison = main_comparison(claim, verdict.comparisons)
    if comparison is None or not math.isfinite(comparison.value.estimate.value):
        return None
    untrained = main_comparison(claim, verdict.untrained)
    measured, baseline = _sides(comparison)
    # The untrained model of a number that is compared with it is the baseline.
    is_untrained = baseline is not None and baseline.baseline == UNTRAINED_MODEL
    untrained_estimate = baseline.estimate if is_untrained and baseline is not None else None
    if untrained is not None:
        untrained_estimate = _sides(untrained)[0].estimate
    shown_baseline = None if is_untrained or baseline is None else NamedEstimate(_name(baseline), baseline.estimate)
    required = _required(comparison)
    published = None if claim.unit == "layer" else claim.published  # layers of a model of another depth
    numbers = _numbers(measured.estimate, shown_baseline, untrained_estimate, published, required)
    n_layers = measured.n_layers if claim.unit == "layer" else 0
    return Strip(
        NamedEstimate(_name(measured), measured.estimate),
        shown_baseline,
        untrained_estimate,
        published,
        required,
        claim.unit,
        (0.0, float(n_layers)) if n_layers else _axis(claim.unit, [n for n in numbers if math.isfinite(n)]),
    )


def main_comparison(claim: Claim, comparisons: tuple[Comparison, ...]) -> Comparison | None:
    """The comparison that is drawn: with a baseline where there is one, of several heads' baselines the highest."""
    if not comparisons:
        return None
    with_baseline = [comparison for comparison in comparisons if _baseline_names(comparison) - {None}]
    if isinstance(claim.test, AnyHead):
        simple = [c for c in with_baseline if UNTRAINED_MODEL not in _baseline_names(c)]
        return max(simple or [comparisons[0]], key=lambda c: _lower_value(c))
    weakest = min(comparisons, key=lambda comparison: comparison.effect.value - comparison.margin)
    return with_baseline[0] if with_baseline and len(with_baseline) < len(comparisons) else weakest


def _baseline_names(comparison: Comparison) -> set[str | None]:
    sides = (comparison.value, comparison.lower)
    return {side.baseline for side in sides if isinstance(side, Measurement)}


def _lower_value(comparison: Comparison) -> float:
    return comparison.lower.estimate.value if isinstance(comparison.lower, Measurement) else comparison.lower


def _sides(comparison: Comparison) -> tuple[Measurement, Measurement | None]:
    """What was measured and what it is compared with; a finding may say that a baseline exceeds what was measured."""
    value, lower = comparison.value, comparison.lower
    if not isinstance(lower, Measurement):
        return value, None
    own = {None, UNTRAINED_MODEL}  # the numbers of the untrained model are looked up as those of a baseline
    return (lower, value) if value.baseline not in own and lower.baseline in own else (value, lower)


def _required(comparison: Comparison) -> float | tuple[float, float] | None:
    """The number to be exceeded or the range to lie in; None if that is the baseline itself."""
    lower, margin = comparison.lower, comparison.margin
    if not isinstance(lower, Measurement):
        if comparison.upper is not None:
            return lower, comparison.upper
        return lower if math.isfinite(lower) else None
    if not margin:
        return None
    if _sides(comparison)[0] is lower:  # what was measured must lie below
        return comparison.value.estimate.value - margin
    return lower.estimate.value + (-margin if comparison.is_below else margin)


def _name(measurement: Measurement) -> str:
    """What a number is of, in as few words as tell it apart."""
    if measurement.baseline is not None and measurement.baseline != UNTRAINED_MODEL:
        return measurement.baseline
    if measurement.head is not None:
        return f"head {measurement.head}"
    if measurement.layers is not None:
        return format_layers(*measurement.layers, measurement.n_layers)
    if measurement.x is not None:
        return f"{measurement.x:g} {measurement.x_name}".strip()
    return measurement.row or measurement.run or measurement.measure


def _numbers(
    measured: Estimate,
    baseline: NamedEstimate | None,
    untrained: Estimate | None,
    published: float | tuple[float, float] | None,
    required: float | tuple[float, float] | None,
) -> Iterator[float]:
    for estimate in (measured, baseline.estimate if baseline else None, untrained):
        if estimate is not None:
            yield from (estimate.value, estimate.low, estimate.high)
    for number in (published, required):
        yield from number if isinstance(number, tuple) else () if number is None else (number,)


def _axis(unit: Unit, numbers: list[float]) -> tuple[float, float]:
    """0 to 1 for proportions and what lies there, -1 to 1 for correlations, else from 0 to a round number."""
    if unit == "percent" or (unit == "number" and min(numbers) >= 0.0 and max(numbers) <= 1.0):
        return 0.0, 1.0
    if unit == "number" and min(numbers) >= -1.0 and max(numbers) <= 1.0:
        return -1.0, 1.0
    if unit == "points":  # an open end of what is required is no number to show
        limit = _round_up(max((abs(number) for number in numbers if abs(number) < 1.0), default=1.0))
        return -limit, limit
    return (-_round_up(-min(numbers)) if min(numbers) < 0.0 else 0.0), _round_up(max(numbers))


def _round_up(number: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if number <= 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(number))
    return next((step * power for step in (1.0, 2.0, 5.0) if number <= step * power * (1 + 1e-9)), 10.0 * power)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
