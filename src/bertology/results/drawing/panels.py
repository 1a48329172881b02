"""Panels: one measure drawn with its baselines, and the colour scale and legend that panels share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from bertology.arrays import FloatArray
from bertology.estimates.estimate import INTERVAL_LABELS, Estimate, Estimates
from bertology.results.drawing import svg
from bertology.results.drawing.style import COLOUR_STEPS, dashes, series_class
from bertology.results.shapes import MeasuredShape

MISSING_NOTE = f"{svg.MISSING} {svg.NOT_MEASURED}"
OVERLAP_NOTE = "● interval overlaps a baseline's"
SCALE_HEIGHT = 30
ZERO_TOLERANCE = 1e-4
"""Ends of a colour bar that are smaller than this fraction of the other end are shown as about 0."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of a figure, with its name and a caption (unit, colour scale)."""

    name: str
    caption: str
    width: float
    height: float
    body: Markup
    label: str

    def svg(self) -> Markup:
        """The panel as an image for a page."""
        return svg.document(self.width, self.height, self.body, self.label)


@dataclass(frozen=True, slots=True)
class Drawing:
    """The panels of a result, in `columns`, with a legend and the notes needed to read them."""

    panels: Sequence[Panel]
    columns: int = 1
    notes: tuple[str, ...] = ()
    legend: Panel | None = None
    n_layers: int = 0
    """Layers that a reader can choose from; 0 if there is no choice."""


@dataclass(frozen=True, slots=True)
class MeasureSeries:
    """One measure with its unit and the baselines that have it."""

    name: str
    unit: str
    estimates: Estimates
    baselines: Mapping[str, Estimates]

    def describe(self, index: tuple[int, ...], location: str) -> str:
        """The number at an index and those of its baselines, for a tooltip."""
        lines = [f"{location}: {svg.format_estimate(self.estimates[index])}"]
        lines += [f"{name}: {svg.format_estimate(baseline[index])}" for name, baseline in self.baselines.items()]
        kind = self.estimates.interval
        return "\n".join([*lines, *([] if kind == "exact" else [INTERVAL_LABELS[kind]])])

    def overlaps_baseline(self, index: tuple[int, ...]) -> bool:
        """Whether the interval overlaps that of a baseline, or cannot be compared with it."""
        estimate: Estimate = self.estimates[index]
        baselines: list[Estimate] = [baseline[index] for baseline in self.baselines.values()]
        return any(
            not np.isnan(baseline.value) and not (estimate.clearly_above(baseline) or estimate.clearly_below(baseline))
            for baseline in baselines
        )

    def neutral_value(self) -> tuple[str, float]:
        """The value of the faint colour and its name: the mean of the first baseline, else 0."""
        for name, baseline in self.baselines.items():
            finite = baseline.value[np.isfinite(baseline.value)]
            if finite.size:
                label = name if np.ptp(finite) == 0 else f"mean of {name}"
                return f"faint: {label} {finite.mean():.3g}", float(finite.mean())
        return "faint: 0", 0.0

    def all_values(self) -> FloatArray:
        """Values and ends of intervals of the measure and its baselines."""
        series = [self.estimates, *self.baselines.values()]
        return np.concatenate([np.ravel(part) for e in series for part in (e.value, e.low, e.high)])

    @property
    def has_missing(self) -> bool:
        """Whether a value is missing."""
        return not np.isfinite(self.estimates.value).all()


def measure_series(shape: MeasuredShape, measures: Collection[str] = ()) -> Iterator[MeasureSeries]:
    """The measures of a shape; only the given ones, if it has any of them."""
    selected = [name for name in shape.measures if name in measures] or list(shape.measures)
    for name in selected:
        yield MeasureSeries(name, shape.units.get(name, ""), shape.measures[name], shape.baselines_of(name))


@dataclass(frozen=True, slots=True)
class ColourScale:
    """A linear scale, faint at `neutral`: equal differences are equal steps of colour on both sides."""

    low: float
    high: float
    neutral: float

    @classmethod
    def of(cls, values: FloatArray, neutral: float) -> ColourScale:
        """A scale over the finite values and the neutral one."""
        low, high = svg.extremes(np.append(values, neutral))
        return cls(low, high if high > low else low + 1.0, neutral)

    def strength(self, value: float) -> float:
        """From 0, the faint colour, to 1, the strongest."""
        return abs(value - self.neutral) / max(self.high - self.neutral, self.neutral - self.low)

    def class_of(self, value: float) -> str:
        """The class of the colour of a value."""
        step = round(min(1.0, self.strength(value)) * (COLOUR_STEPS - 1))
        return f"{'down' if value < self.neutral else 'up'}{step}"

    def bar(self, x: float, y: float, width: float) -> Markup:
        """A colour bar with the lowest, neutral and highest value."""
        edges = np.linspace(self.low, self.high, 2 * COLOUR_STEPS + 1)
        step = width / (2 * COLOUR_STEPS)
        parts = [
            svg.element("rect", x=x + i * step, y=y, width=step + 0.3, height=7, class_=self.class_of(float(middle)))
            for i, middle in enumerate((edges[:-1] + edges[1:]) / 2)
        ]
        marks = [(self.low, "start"), (self.high, "end")]
        if width > 120 and 0.25 < (self.neutral - self.low) / (self.high - self.low) < 0.75:
            marks.append((self.neutral, "middle"))
        for value, anchor in marks:
            position = x + width * (value - self.low) / (self.high - self.low)
            near_zero = abs(value) < ZERO_TOLERANCE * max(abs(self.low), abs(self.high))
            number = "0" if value == 0 else "≈ 0" if near_zero else f"{value:.3g}"
            parts.append(svg.text(position, y + 19, number, anchor=anchor, class_="muted small"))
        return svg.group(parts)


def missing_mark(x: float, y: float, location: str) -> Markup:
    """The sign for a missing value."""
    return svg.text(x, y, svg.MISSING, anchor="middle", class_="muted missing", tip=f"{location}: {svg.NOT_MEASURED}")


_MARKERS: tuple[tuple[tuple[float, float], ...], ...] = (
    ((0, -1), (1, 0), (0, 1), (-1, 0)),
    ((0, -1), (1, 0.8), (-1, 0.8)),
    ((-1, -1), (1, -1), (1, 1), (-1, 1)),
    ((0, 1), (1, -0.8), (-1, -0.8)),
    ((-1, -0.35), (1, -0.35), (1, 0.35), (-1, 0.35)),
    ((-0.35, -1), (0.35, -1), (0.35, 1), (-0.35, 1)),
)
"""Corners of the markers of baselines: diamond, triangles, square and bars."""


def marker(index: int, x: float, y: float, size: float, *, tip: str = "") -> Markup:
    """The marker of a series: a circle for the model (0), other shapes for baselines."""
    if index == 0:
        return svg.element("circle", cx=x, cy=y, r=size, class_="point", tip=tip)
    corners = _MARKERS[(index - 1) % len(_MARKERS)]
    points = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in corners)
    return svg.element("polygon", points=points, class_="point", tip=tip)


def legend(
    names: Sequence[str],
    width: float,
    *,
    lines: bool,
    classes: Sequence[str] | None = None,
    same_marker: bool = False,
) -> Panel:
    """The names of series with their lines or markers, in as many rows as they need."""
    classes = classes or [series_class(index) for index in range(len(names))]
    parts: list[Markup] = []
    x, y = 0.0, svg.LINE_HEIGHT / 2
    for index, (name, class_) in enumerate(zip(names, classes, strict=True)):
        shown = svg.truncate_label(name, 60)
        needed = 34 + svg.text_width(shown)
        if x and x + needed > width:
            x, y = 0.0, y + svg.LINE_HEIGHT + 2
        sign = (
            svg.path([(x, y), (x + 22, y)], class_="line thin", stroke_dasharray=dashes(index))
            if lines
            else marker(0 if same_marker else index, x + 11, y, 4)
        )
        parts.append(
            svg.group([sign], class_=class_) + svg.text(x + 27, y + 4, shown, tip=name if shown != name else "")
        )
        x += needed + 8
    return Panel("", "", width, y + svg.LINE_HEIGHT / 2 + 2, Markup().join(parts), f"Legend: {', '.join(names)}")
