"""What figures of measured shapes share: a measure beside its baselines, how a number is told, titles that fit."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from bertology.results.estimate import Estimate, Estimates, Floats
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Table
from bertology.results.spread import spread

Row = dict[str, Any]
Panel = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.ConcatChart
CROSS = "×"
MISSING = f"{CROSS} nothing to measure"
UNCLEAR = "● the interval overlaps a baseline"
PIXELS_A_CHARACTER = 5.6


@dataclass(frozen=True, slots=True)
class Drawing:
    """Panels in so many columns, with the notes a reader needs to read their marks; `width` is for the text above."""

    panels: Sequence[Panel]
    columns: int = 1
    notes: tuple[str, ...] = ()
    width: int = 640
    together: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure, its unit, and the baselines that have it."""

    name: str
    unit: str
    estimates: Estimates
    beside: Mapping[str, Estimates]

    def at(self, index: tuple[int, ...]) -> Row:
        """The number at a place, as marks and tooltips want it."""
        estimate: Estimate = self.estimates[index]
        row: Row = {"value": number(estimate.value), "low": number(estimate.low), "high": number(estimate.high)}
        row |= {"told": told(estimate), "n": estimate.n}
        return row | {f"beside{i}": told(chance[index]) for i, chance in enumerate(self.beside.values())}

    def tooltip(self, *places: tuple[str, str]) -> list[alt.Tooltip]:
        """Fields of `at` under the names a reader knows, after the fields and names of the place."""
        fields = [*places, ("told", f"{self.name} [{spread(self.unit)}]"), ("n", "n")]
        fields += [(f"beside{i}", name) for i, name in enumerate(self.beside)]
        return [alt.Tooltip(field=field, type="nominal", title=title) for field, title in fields]

    def unclear(self, index: tuple[int, ...]) -> bool:
        """Whether the interval overlaps that of a baseline at the same place, or cannot be told from it."""
        own: Estimate = self.estimates[index]
        chances = [chance[index] for chance in self.beside.values()]
        return any(
            not math.isnan(chance.value) and not (own.clearly_above(chance) or own.clearly_below(chance))
            for chance in chances
        )

    def faint(self) -> tuple[str, float]:
        """What the faint colour of a scale stands for: the mean of the first baseline over all places, else 0."""
        for name, chance in self.beside.items():
            known = chance.value[np.isfinite(chance.value)]
            if known.size:
                whose = name if np.ptp(known) == 0 else f"mean of {name}"
                return f"faint: {whose} {known.mean():.3g}", float(known.mean())
        return "faint: 0", 0.0

    def everything(self) -> Floats:
        """All finite numbers of the measure and its baselines, intervals included."""
        all_of = [self.estimates, *self.beside.values()]
        numbers = np.concatenate([np.ravel(part) for e in all_of for part in (e.value, e.low, e.high)])
        return numbers[np.isfinite(numbers)]

    def title(self, width: int, *notes: str) -> alt.TitleParams:
        """Its name, with the unit and notes below, broken to fit the width."""
        below = " · ".join(filter(None, (self.unit, *notes)))
        name = wrapped(self.name, width, 1.2)
        return alt.TitleParams(name, subtitle=wrapped(below, width)) if below else alt.TitleParams(name)


def measured(shape: HeadGrid | LayerCurve | Curve | Matrix | Table) -> Iterator[Measured]:
    """Each measure of the shape."""
    for name, estimates in shape.measures.items():
        beside = {chance: found[name] for chance, found in shape.baselines.items() if name in found}
        yield Measured(name, shape.units.get(name, ""), estimates, beside)


def number(value: float) -> float | None:
    """The number, or nothing where there is none: JSON has no NaN, and a chart must not draw one as 0."""
    return float(value) if math.isfinite(value) else None


def told(estimate: Estimate) -> str:
    """The estimate in words and figures."""
    if not math.isfinite(estimate.value):
        return "nothing to measure"
    return str(estimate) if math.isfinite(estimate.low) else f"{estimate.value:.3g}, no interval"


def wrapped(text: str, width: int, size: float = 1.0) -> list[str]:
    """Lines of the text that fit a width in pixels."""
    return textwrap.wrap(text, max(12, int(width / PIXELS_A_CHARACTER / size))) or [""]


def data(rows: Sequence[Row]) -> alt.InlineData:
    """Records as they are; nothing is sampled or left out, however many they are."""
    return alt.InlineData(values=list(rows))


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each repeated one with its number, so that no row of a figure hides another."""
    met: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        met[name] = met.get(name, 0) + 1
        found.append(f"{name} ({met[name]})" if met[name] > 1 else name)
    return tuple(found)


def has_zero(numbers: Floats) -> bool:
    """Whether an axis should start at zero: where the numbers nearly reach it anyway."""
    return bool(numbers.size) and float(numbers.min()) >= 0 and float(numbers.min()) < 0.4 * float(numbers.max())
