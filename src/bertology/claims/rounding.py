"""Round the numbers of a verdict to what their intervals support, so that the rounded numbers give the same verdict.

A number gets the digits that its interval supports: the last one is worth at most half of the interval's width. A
number without an interval gets the digits of the number it is compared with. All numbers of a verdict get more digits
if the rounded numbers would not lead to the same outcome, or if two different numbers would look equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Literal

from bertology.claims.verdict import Comparison, Measurement, as_estimate
from bertology.estimates.estimate import Estimate

Unit = Literal["number", "percent", "points", "nats", "bits", "layer"]
"""What a number is shown in. Proportions are shown in percent, differences of proportions in percentage points."""

_SUFFIXES: dict[Unit, str] = {"percent": " %", "points": " points", "nats": " nats", "bits": " bits"}
_PERCENT: frozenset[Unit] = frozenset({"percent", "points"})
_MAX_DIGITS = {True: 1, False: 3}
"""Decimal digits at most, in percent and otherwise, unless the verdict needs more."""
_MAX_FURTHER_DIGITS, _MAX_DIGITS_TO_TELL_APART = 17, 3
"""Further digits for the verdict to be true, and for numbers that do not differ clearly to look different.

The former are all digits of a float: a verdict may rest on a difference hardly above rounding errors.
"""


def difference_unit(unit: Unit) -> Unit:
    """The unit of a difference of two numbers: points for numbers in percent."""
    return "points" if unit == "percent" else "number" if unit == "layer" else unit


def factor(unit: Unit) -> int:
    """What a number is multiplied by to be shown."""
    return 100 if unit in _PERCENT else 1


@dataclass(frozen=True)
class RoundedEstimate:
    """A number and its interval as they are shown, with so many decimal digits."""

    estimate: Estimate
    unit: Unit
    digits: int

    def _round(self, number: float) -> Decimal:
        shown = Decimal(number) * factor(self.unit)
        if not shown.is_finite():  # the distance from a threshold that every number exceeds
            return shown
        rounded = shown.quantize(Decimal(1).scaleb(-self.digits), ROUND_HALF_EVEN)
        return abs(rounded) if rounded == 0 else rounded

    @property
    def has_width(self) -> bool:
        """Whether the number has an interval."""
        return _has_width(self.estimate)

    @property
    def bare(self) -> str:
        """The number without its unit."""
        return f"{self._round(self.estimate.value):f}"

    @property
    def text(self) -> str:
        """The number with its unit: `88 %`, `1.74 nats`, `layer 5`."""
        if self.unit == "layer":
            return f"layer {self.bare}"
        suffix = _SUFFIXES.get(self.unit, "")
        return f"{self.bare}{' point' if self.unit == 'points' and self.bare in {'1', '-1'} else suffix}"

    @property
    def interval(self) -> str:
        """The interval in brackets: `[83, 93]`; empty if there is none, or if its ends look equal."""
        if not (math.isfinite(self.estimate.low) and math.isfinite(self.estimate.high)):
            return ""
        low, high = self.estimate.low, self.estimate.high
        if self.unit == "percent" and 0.0 <= self.estimate.value <= 1.0:  # a corrected interval may pass its bounds
            low, high = max(low, 0.0), min(high, 1.0)
        return f"[{self._round(low):f}, {self._round(high):f}]" if self._round(low) != self._round(high) else ""

    @property
    def opposite(self) -> RoundedEstimate:
        """The same number with the opposite sign."""
        estimate = self.estimate
        turned = replace(estimate, value=-estimate.value, low=-estimate.high, high=-estimate.low)
        return replace(self, estimate=turned)

    @property
    def rounded(self) -> Estimate:
        """The estimate that is shown, in the unit of the measure."""
        value, low, high = (
            float(self._round(number) / factor(self.unit)) if math.isfinite(number) else number
            for number in (self.estimate.value, self.estimate.low, self.estimate.high)
        )
        return replace(self.estimate, value=value, low=low, high=high)


@dataclass(frozen=True)
class RoundedComparison:
    """A comparison with the numbers as they are shown; a constant has all its digits."""

    comparison: Comparison
    value: RoundedEstimate
    other: RoundedEstimate | None
    effect: RoundedEstimate
    unit: Unit

    def is_faithful(self) -> bool:
        """Whether the shown numbers give the outcome of the true ones, and different values look different."""
        comparison = self.comparison
        value, lower = replace(comparison.value, estimate=self.value.rounded), comparison.lower
        if isinstance(lower, Measurement) and self.other is not None:
            lower = replace(lower, estimate=self.other.rounded)
        difference = self.effect.rounded if comparison.difference is not None else None
        shown = replace(comparison, value=value, lower=lower, difference=difference)
        if shown.outcome != comparison.outcome:
            return False
        # An effect that is not measured by itself is shown as well.
        effect = replace(comparison, difference=self.effect.rounded)
        if comparison.upper is None and effect.outcome != comparison.outcome:
            return False
        limits = [as_estimate(lower).value, *([] if comparison.upper is None else [comparison.upper])]
        true_limits = [as_estimate(comparison.lower).value, *limits[1:]]
        return all(
            _sign(value.estimate.value - limit) == _sign(comparison.value.estimate.value - true_limit)
            for limit, true_limit in zip(limits, true_limits, strict=True)
        )


def round_comparisons(
    comparisons: Sequence[Comparison], unit: Unit, *, further: int = 0
) -> tuple[RoundedComparison, ...]:
    """The comparisons with as many digits as their intervals support, and as many more as keep the verdict true.

    All comparisons of one number show it with the same digits. `further` digits are added to all numbers.
    """
    rounded: dict[int, RoundedComparison] = {}
    for value in dict.fromkeys(comparison.value for comparison in comparisons):
        group = [index for index, comparison in enumerate(comparisons) if comparison.value == value]
        shown = _round_group([comparisons[index] for index in group], unit, further)
        rounded |= dict(zip(group, shown, strict=True))
    return tuple(rounded[index] for index in range(len(comparisons)))


def _round_group(comparisons: Sequence[Comparison], unit: Unit, further: int) -> list[RoundedComparison]:
    def attempts(most: int) -> Iterator[list[RoundedComparison]]:
        for more in range(most + 1):
            yield [_round_comparison(comparison, unit, further + more) for comparison in comparisons]

    faithful = (a for a in attempts(_MAX_DIGITS_TO_TELL_APART) if all(c.is_faithful() for c in a))
    # Numbers that nothing tells apart may look equal, but what is decided must look so.
    decided = (
        a
        for a in attempts(_MAX_FURTHER_DIGITS)
        if all(c.is_faithful() for c in a if c.comparison.outcome != "inconclusive")
    )
    return next(faithful, None) or next(decided, None) or next(attempts(0))


def round_plainly(comparison: Comparison, unit: Unit, *, further: int = 0) -> RoundedComparison:
    """A comparison whose outcome is not stated, with as many digits as its intervals support, and `further` ones."""
    return _round_comparison(comparison, unit, further)


def round_estimate(estimate: Estimate, unit: Unit, further: int = 0) -> RoundedEstimate:
    """A number with as many digits as its interval supports, and `further` ones."""
    return RoundedEstimate(estimate, unit, _supported_digits(estimate, unit) + further)


def format_constant(number: float, unit: Unit) -> str:
    """A constant with all its digits: `50 %`, `10 points`, `0.3`."""
    shown = Decimal(repr(float(number))) * factor(unit)
    text = f"{shown.normalize():f}"
    if unit == "layer":
        return f"layer {text}"
    return f"{text}{_SUFFIXES.get(unit, '')}"


def _round_comparison(comparison: Comparison, unit: Unit, further: int) -> RoundedComparison:
    value, lower = comparison.value.estimate, comparison.lower
    other = lower.estimate if isinstance(lower, Measurement) else None
    value_digits = _supported_digits(value, unit)
    other_digits = value_digits if other is None else _supported_digits(other, unit)
    if other is not None and not _has_width(value):
        value_digits = _exact_digits(value, unit, other_digits)
    elif other is not None and not _has_width(other):
        other_digits = _exact_digits(other, unit, value_digits)
    of_effect = difference_unit(unit)
    effect_digits = _supported_digits(comparison.effect, of_effect)
    return RoundedComparison(
        comparison,
        RoundedEstimate(value, unit, value_digits + further),
        None if other is None else RoundedEstimate(other, unit, other_digits + further),
        RoundedEstimate(comparison.effect, of_effect, effect_digits + further),
        unit,
    )


def _supported_digits(estimate: Estimate, unit: Unit) -> int:
    """The decimal digits that the interval supports, within what is easy to read."""
    if unit == "layer":
        return 0 if all(float(number).is_integer() for number in _limits(estimate)) else 1
    numbers = [number for number in _limits(estimate) if math.isfinite(number)]
    largest = max((abs(number) for number in numbers), default=0.0)
    is_percent = unit in _PERCENT
    fewest = 0 if is_percent or largest >= 10 else 1 if largest >= 1 else 2
    # Half of the smallest float is 0, which has no logarithm: the logarithm is halved, not the width.
    width = (estimate.high - estimate.low) * factor(unit)
    supported = math.ceil(math.log10(2) - math.log10(width) - 1e-9) if _has_width(estimate) else fewest
    return max(min(max(supported, fewest), _MAX_DIGITS[is_percent]), _digits_above_zero(estimate, unit))


def _exact_digits(estimate: Estimate, unit: Unit, most: int) -> int:
    """The digits of a number without an interval: as few as give it exactly, or those of what it is compared with."""
    most = max(most, _digits_above_zero(estimate, unit))
    value = estimate.value * factor(unit)
    return next((digits for digits in range(most) if abs(round(value, digits) - value) < 1e-9), most)


def _digits_above_zero(estimate: Estimate, unit: Unit) -> int:
    """The digits without which a number that is clearly not zero would look like zero."""
    value = abs(estimate.value) * factor(unit)
    may_be_zero = estimate.low <= 0.0 <= estimate.high
    if unit == "layer" or value == 0.0 or may_be_zero or not math.isfinite(value):
        return 0
    digits = max(0, -math.floor(math.log10(value)))
    return digits if digits <= _MAX_DIGITS[unit in _PERCENT] + 1 else 0


def _limits(estimate: Estimate) -> Iterator[float]:
    yield from (estimate.value, estimate.low, estimate.high)


def _has_width(estimate: Estimate) -> bool:
    width = estimate.high - estimate.low
    return math.isfinite(width) and width > 0.0


def _sign(number: float) -> int:
    return (number > 0) - (number < 0)
