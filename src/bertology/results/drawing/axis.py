"""Numeric axes: linear ones with round ticks, and logarithmic ones for p values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bertology.arrays import FloatArray
from bertology.results.drawing import svg
from bertology.results.units import P_VALUE_FLOOR

MAX_TICKS = 5


@dataclass(frozen=True, slots=True)
class Axis:
    """The range of an axis, from `low` to `high`."""

    low: float
    high: float
    is_logarithmic: bool = False

    @classmethod
    def over(cls, values: FloatArray, *, is_p_value: bool = False) -> Axis:
        """An axis over the values: from 0 if they nearly reach it, and never empty; of p values, powers of ten to 1."""
        low, high = svg.extremes(values)
        if is_p_value:
            smallest = 10.0 ** np.floor(np.log10(max(low, P_VALUE_FLOOR)))
            return cls(float(min(smallest, 0.01)), 1.0, True)
        low = 0.0 if 0 < low < 0.4 * high else low
        return cls(low, high) if high > low else cls(low - 0.5, high + 0.5)

    def position(self, value: float) -> float:
        """Where a value is between the ends, from 0 to 1; values beyond an end of a logarithmic axis are at it."""
        if not self.is_logarithmic:
            return (value - self.low) / (self.high - self.low)
        low, high = np.log10(self.low), np.log10(self.high)
        return float((np.log10(min(max(value, self.low), self.high)) - low) / (high - low))

    def ticks(self, max_ticks: int = MAX_TICKS) -> list[tuple[float, str]]:
        """Round numbers along the axis, with their text."""
        if self.is_logarithmic:
            powers = range(round(np.log10(self.low)), round(np.log10(self.high)) + 1)
            step = 1 if len(powers) <= max_ticks else 2
            numbers = [10.0**power for power in powers[::-step]]
        else:
            numbers = svg.ticks(self.low, self.high, max_ticks)
        lowest = self.low if self.is_logarithmic and self.low == P_VALUE_FLOOR else None
        return [(number, ("≤ " if number == lowest else "") + format_tick(number)) for number in numbers]


def format_tick(number: float) -> str:
    """A tick as text, with a minus sign and without an exponent where that is short."""
    if number != 0 and abs(number) < 1e-5:
        return f"{number:.0e}".replace("e-0", "e-").replace("-", "−")
    return f"{number:.6f}".rstrip("0").rstrip(".").replace("-", "−")
