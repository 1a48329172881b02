"""Panels: one measure drawn with its baselines, and the colour scale and key that panels share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from markupsafe import Markup

from bertology.arrays import FloatArray
from bertology.estimates.estimate import INTERVAL_LABELS, Estimate, Estimates
from bertology.results.drawing import svg
from bertology.results.drawing.style import COLOUR_STEPS, SeriesStyle
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import MeasuredShape
from bertology.results.units import P_VALUE_FLOOR, DisplayUnit, display_unit

DEFAULT_WIDTH = 662.6
"""Width of a drawing in its units, if none is given: two columns of a paper, 170 mm."""
PANEL_GAP = 24.0
MISSING_NOTE = f"{svg.MISSING}: {svg.NOT_MEASURED}"
OVERLAP_NOTE = "•: coloured, but the interval overlaps that of a baseline"
MIN_MARKED_STRENGTH = 0.08
"""Cells fainter than this need no mark."""
SCALE_HEIGHT = 34
ZERO_TOLERANCE = 1e-4
"""Ends of a colour bar that are smaller than this fraction of the other end are shown as about 0."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture of a figure, with its name and a caption (unit, highest value)."""

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
    """The panels of a result, in `columns`, with a key and the notes needed to read them."""

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
    display: DisplayUnit = field(default_factory=lambda: DisplayUnit(""))

    def displayed(self) -> MeasureSeries:
        """The measure in the unit that figures show: shares in percent."""
        display = display_unit(self.unit, self.name)

        def scaled(estimates: Estimates) -> Estimates:
            return estimates if display.factor == 1 else estimates.map(lambda values: values * display.factor)

        baselines = {name: scaled(baseline) for name, baseline in self.baselines.items()}
        return replace(self, estimates=scaled(self.estimates), baselines=baselines, unit=display.label, display=display)

    def describe(self, index: tuple[int, ...], location: str) -> str:
        """The number at an index and those of its baselines, for a tooltip."""
        sign = self.display.sign
        lines = [f"{location}: {svg.format_estimate(self.estimates[index], sign)}"]
        lines += [f"{name}: {svg.format_estimate(baseline[index], sign)}" for name, baseline in self.baselines.items()]
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

    def neutral_value(self) -> tuple[str, float | None]:
        """The value of the neutral colour and its name: 0 of a signed measure, else a baseline, else none.

        The first simple rule goes before the untrained model, whose values are those of single heads or layers.
        """
        if self.display.is_signed or svg.extremes(self.estimates.value)[0] < 0:
            return "0", 0.0
        for name in sorted(self.baselines, key=lambda name: name.startswith("untrained")):
            finite = self.baselines[name].value[np.isfinite(self.baselines[name].value)]
            if finite.size:
                is_constant = np.ptp(finite) <= ZERO_TOLERANCE * abs(finite.mean())
                label = name if is_constant else f"{name}, mean"
                return "0" if name == "zero" else label, float(finite.mean())
        return "", None

    def all_values(self) -> FloatArray:
        """Values and ends of intervals of the measure and its baselines."""
        series = [self.estimates, *self.baselines.values()]
        return np.concatenate([np.ravel(part) for e in series for part in (e.value, e.low, e.high)])

    @property
    def has_missing(self) -> bool:
        """Whether a value is missing."""
        return not np.isfinite(self.estimates.value).all()


def measure_series(shape: MeasuredShape, measures: Collection[str] = ()) -> Iterator[MeasureSeries]:
    """The measures of a shape; only the given ones, if it has any of them, in their order if they have one."""
    order = measures if isinstance(measures, Sequence) else shape.measures
    selected = [name for name in order if name in shape.measures and name in measures] or list(shape.measures)
    for name in selected:
        yield MeasureSeries(name, shape.units.get(name, ""), shape.measures[name], shape.baselines_of(name))


def displayed_series(shape: MeasuredShape, measures: Collection[str] = ()) -> list[MeasureSeries]:
    """The measures of a shape in the units that figures show; those without any number only if they are asked for."""
    series = [each.displayed() for each in measure_series(shape, measures)]
    measured = [each for each in series if np.isfinite(each.estimates.value).any()]
    return series if measures or not measured else measured


def missing_notes(shape: MeasuredShape, series: Sequence[MeasureSeries], measures: Collection[str] = ()) -> list[str]:
    """What the sign for missing values means, if there are any, and which measures are not drawn at all."""
    notes = [MISSING_NOTE] if any(each.has_missing for each in series) else []
    names = {each.name for each in series}
    absent = [name for name in shape.measures if name not in names and (not measures or name in measures)]
    return notes + ([f"Not measured: {', '.join(absent)}"] if absent else [])


def fit_columns(n_panels: int, width: float, least: float, most: float) -> tuple[int, float]:
    """How many panels stand side by side and how wide each is, given the least and the most useful width."""
    columns = max(1, min(n_panels, int((width + PANEL_GAP) // (least + PANEL_GAP))))
    return columns, max(least, min(most, (width - PANEL_GAP * (columns - 1)) / columns))


@dataclass(frozen=True, slots=True)
class ColourScale:
    """A linear scale, neutral at `neutral`: equal differences are equal steps of colour on both sides.

    Of p values the colour grows with their logarithm below `neutral`, the significance level; others are neutral.
    """

    low: float
    high: float
    neutral: float
    is_p_value: bool = False

    @classmethod
    def of(cls, values: FloatArray, neutral: float | None, *, is_p_value: bool = False) -> ColourScale:
        """A scale over the finite values and the neutral one; without a neutral value, the lowest is."""
        low, high = svg.extremes(values if neutral is None else np.append(values, neutral))
        if is_p_value:
            return cls(P_VALUE_FLOOR, 1.0, 0.05 if neutral is None else neutral, True)
        return cls(low, high if high > low else low + 1.0, low if neutral is None else neutral)

    def strength(self, value: float) -> float:
        """From 0, the neutral colour, to 1, the strongest."""
        if self.is_p_value:
            significant = np.log10(max(value, self.low) / self.neutral) / np.log10(self.low / self.neutral)
            return float(max(0.0, significant))
        return abs(value - self.neutral) / max(self.high - self.neutral, self.neutral - self.low)

    def class_of(self, value: float) -> str:
        """The class of the colour of a value."""
        step = round(min(1.0, self.strength(value)) * (COLOUR_STEPS - 1))
        return f"{'down' if value < self.neutral and not self.is_p_value else 'up'}{step}"

    def needs_mark(self, value: float) -> bool:
        """Whether the colour of a value is strong enough to be taken for an effect."""
        return self.strength(value) >= MIN_MARKED_STRENGTH

    def _position(self, value: float) -> float:
        if self.is_p_value:
            return float(np.log10(value / self.low) / np.log10(self.high / self.low))
        return (value - self.low) / (self.high - self.low)

    def bar(self, x: float, y: float, width: float, neutral_name: str = "") -> Markup:
        """A colour bar with its ends, and a tick at the neutral value below its name."""
        n_steps = 2 * COLOUR_STEPS
        step = width / n_steps
        parts: list[Markup] = []
        for i in range(n_steps):
            middle = (i + 0.5) / n_steps
            if self.is_p_value:
                value = self.low * (self.high / self.low) ** middle
            else:
                value = self.low + (self.high - self.low) * middle
            parts.append(
                svg.element("rect", x=x + i * step, y=y, width=step + 0.3, height=7, class_=self.class_of(value))
            )
        for value, anchor, end in ((self.low, "start", 0.0), (self.high, "end", 1.0)):
            number = self._format(value)
            prefix = "≤ " if self.is_p_value and end == 0 else ""
            parts.append(svg.text(x + width * end, y + 17, prefix + number, anchor=anchor, class_="muted small"))
        if neutral_name and not (neutral_name == "0" and 0.0 in (self.low, self.high)):
            at = x + width * min(1.0, max(0.0, self._position(self.neutral)))
            number = "" if neutral_name == "0" else f" {self._format(self.neutral)}"
            name = f"{neutral_name}{number}"
            room = width - svg.text_width(number, svg.SMALL_SIZE)
            shown = svg.fit_label(neutral_name, room, svg.SMALL_SIZE) + number
            half = svg.text_width(shown, svg.SMALL_SIZE) / 2
            label = min(max(at, x + half), x + width - half) if 2 * half < width else x + width / 2
            parts.append(svg.path([(at, y - 3), (at, y + 8)], class_="axis"))
            tip = name if shown != name else ""
            parts.append(svg.text(label, y + 29, shown, anchor="middle", class_="muted small halo", tip=tip))
        return svg.group(parts)

    def _format(self, value: float) -> str:
        near_zero = abs(value) < ZERO_TOLERANCE * max(abs(self.low), abs(self.high))
        return "0" if value == 0 else "≈ 0" if near_zero and not self.is_p_value else f"{value:.3g}".replace("-", "−")


def missing_mark(x: float, y: float, location: str) -> Markup:
    """The sign for a missing value."""
    return svg.text(x, y, svg.MISSING, anchor="middle", class_="muted missing", tip=f"{location}: {svg.NOT_MEASURED}")


def overlap_dot(x: float, y: float, class_: str) -> Markup:
    """The sign for an interval that overlaps that of a baseline, on a cell of a colour class."""
    return svg.element("circle", cx=x, cy=y, r=1.1, class_=f"on-{class_} quiet", opacity=0.6)


_MARKERS: dict[str, tuple[tuple[float, float], ...]] = {
    "triangle": ((0, -1.1), (1.1, 0.9), (-1.1, 0.9)),
    "diamond": ((0, -1.2), (1.2, 0), (0, 1.2), (-1.2, 0)),
    "bar": ((-0.35, -1.5), (0.35, -1.5), (0.35, 1.5), (-0.35, 1.5)),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
}
"""Corners of filled markers."""
_STROKES: dict[str, str] = {"cross": "M{0} {2}L{1} {3}M{0} {3}L{1} {2}", "plus": "M{0} {5}H{1}M{4} {2}V{3}"}


def marker(kind: str, x: float, y: float, size: float, *, tip: str = "") -> Markup:
    """The marker of a series: a circle for the model, other shapes for baselines; hollow for untrained ones."""
    if kind in _STROKES:
        numbers = (x - size, x + size, y - size, y + size, x, y)
        shape = _STROKES[kind].format(*(f"{number:.1f}" for number in numbers))
        return svg.element("path", d=shape, class_="line thin", tip=tip)
    if kind in _MARKERS:
        points = " ".join(f"{x + size * dx:.1f},{y + size * dy:.1f}" for dx, dy in _MARKERS[kind])
        return svg.element("polygon", points=points, class_="hollow" if kind == "triangle" else "point", tip=tip)
    return svg.element("circle", cx=x, cy=y, r=size, class_="hollow" if kind == "ring" else "point", tip=tip)


MODEL_STYLE = SeriesStyle("s0", "", "dot")


def legend(entries: Mapping[str, SeriesStyle], width: float, *, lines: bool, least: int = 2) -> Panel | None:
    """The names of series with their lines or markers, in as many rows as they need; none for fewer than `least`."""
    if len(entries) < least:
        return None
    parts: list[Markup] = []
    x, y = 0.0, svg.LINE_HEIGHT / 2
    mark = 22.0 if lines else 10.0
    for name, style in entries.items():
        shown = svg.fit_label(name, width - mark - 6)
        needed = mark + 5 + svg.text_width(shown)
        if x and x + needed > width:
            x, y = 0.0, y + svg.LINE_HEIGHT
        if lines:
            sign = svg.path([(x, y), (x + mark, y)], class_="line thin", stroke_dasharray=style.dash)
        else:
            sign = marker(style.marker, x + 5, y, 3.2)
        tip = name if shown != name else ""
        parts.append(svg.group([sign], class_=style.class_) + svg.text(x + mark + 5, y + 4, shown, tip=tip))
        x += needed + 14
    return Panel("", "", width, y + svg.LINE_HEIGHT / 2 + 2, Markup().join(parts), f"Key: {', '.join(entries)}")


def model_and_baselines(styles: Mapping[str, SeriesStyle], model_name: str) -> dict[str, SeriesStyle]:
    """The entries of a key: the model first, by its name, then its baselines."""
    return {model_name or MODEL_SERIES: MODEL_STYLE, **styles}
