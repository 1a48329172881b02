"""Draw one picture of a finding: a grid of heads, curves over layers, or rows as strips; what it is about is marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup

from bertology.claims.claim import UNTRAINED
from bertology.claims.rounding import Unit, round_estimate
from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.drawing import svg
from bertology.results.drawing.axis import Axis
from bertology.results.drawing.grids import finite_runs
from bertology.results.drawing.panels import ColourScale, MeasureSeries, missing_mark
from bertology.results.drawing.strip import MarkKind, StripMark, draw_strip, strip_scale
from bertology.results.shapes import Head, Table
from bertology.results.units import DisplayUnit

N_BEST_HEADS = 6
Scale = Callable[[float], float]


@dataclass(frozen=True)
class Picture:
    """A drawing with a name and a caption that says how to read it."""

    svg: Markup
    name: str = ""
    caption: str = ""


@dataclass(frozen=True)
class PictureSelection:
    """The heads and layers that a verdict speaks of, and the unit of its numbers.

    `other_layers` are those they are compared with. `numbers` has the numbers of heads as the verdict gives them.
    """

    heads: tuple[Head, ...] = ()
    layers: frozenset[int] = frozenset()
    other_layers: frozenset[int] = frozenset()
    unit: Unit = "number"
    numbers: Mapping[Head, str] = field(default_factory=dict[Head, str])

    def number(self, head: Head, estimate: Estimate) -> str:
        """The number of a head as the verdict gives it, else the estimate, rounded."""
        return self.numbers.get(head, round_estimate(estimate, self.unit).text)


@dataclass(frozen=True)
class PictureSize:
    """The measures of a picture in pixels."""

    cell: int
    width: int
    height: int
    is_small: bool


SMALL, LARGE = PictureSize(11, 300, 132, is_small=True), PictureSize(20, 470, 230, is_small=False)


def row_picture(table: Table, series: MeasureSeries, rows: Sequence[int]) -> Picture | None:
    """One measure of some rows of a table as strips on one scale; None if no row has a number."""
    series = series.displayed()
    measured = [row for row in rows if np.isfinite(series.estimates.value[row])]
    marks = {_row_name(table, row): list(_marks_at(series, (row,))) for row in measured}
    return Picture(_stacked(marks, series.display), series.name, series.unit) if marks else None


def draw_finding_grid(
    series: MeasureSeries, selection: PictureSelection, size: PictureSize, neutral: tuple[str, float] | None = None
) -> Picture:
    """Layers down, heads across; the colour is faint at the lowest baseline, chosen heads are outlined and named."""
    n_layers, n_heads = series.estimates.shape
    cell, left = size.cell, 26
    shown = series.displayed()
    neutral_name, value = neutral or _lowest_baseline(shown)
    scale = ColourScale.of(shown.estimates.value, value)
    parts: list[Markup] = []
    for layer, head in np.ndindex(n_layers, n_heads):
        number = float(shown.estimates.value[layer, head])
        x, y = left + head * cell, layer * cell
        name = f"head {Head(layer, head)}"
        if not np.isfinite(number):
            parts.append(missing_mark(x + cell / 2, y + cell / 2 + 4, name))
            continue
        tip = shown.describe((layer, head), name)
        parts.append(
            svg.element("rect", x=x, y=y, width=cell - 1, height=cell - 1, class_=scale.class_of(number), tip=tip)
        )
    height, right = n_layers * cell, left + n_heads * cell
    steps = [0, n_layers - 1] if size.is_small else range(n_layers)
    parts += [
        svg.text(left - 5, (layer + 0.5) * cell + 4, str(layer + 1), anchor="end", class_="muted") for layer in steps
    ]
    parts.append(svg.text(left, height + 13, "head 1", class_="muted"))
    parts.append(svg.text(right - 1, height + 13, str(n_heads), anchor="end", class_="muted"))
    if not size.is_small:
        parts.append(svg.text(8, height / 2, "layer", anchor="middle", class_="muted", rotate=-90))
    for layer in sorted(selection.layers):
        if 0 < layer <= n_layers:
            parts.append(svg.path([(right + 3, (layer - 1) * cell), (right + 3, layer * cell - 1)], class_="chosen"))
    parts += _chosen_heads(series, selection, cell, left, right)
    bottom = height + 20.0
    if not size.is_small:
        parts.append(scale.bar(left, bottom + 6, max(160, n_heads * cell), neutral_name))
        bottom += 42
    label = f"{series.name}, by layer and head" + "".join(
        f"; {head} {selection.number(head, series.estimates[head])}" for head in selection.heads if _is_in(head, series)
    )
    caption = "" if size.is_small else shown.unit
    width = max(right + 118, left + 170)
    return Picture(svg.document(width, bottom, Markup().join(parts), label), series.name, caption)


def _lowest_baseline(series: MeasureSeries) -> tuple[str, float]:
    """The name and the mean of the baseline with the lowest mean; 0 if there is none, or if values can be negative."""
    means = {
        name: float(baseline.value[np.isfinite(baseline.value)].mean())
        for name, baseline in series.baselines.items()
        if np.isfinite(baseline.value).any()
    }
    if not means or series.display.is_signed:
        return "0", 0.0
    name = min(means, key=lambda name: means[name])
    return name, means[name]


def _is_in(head: Head, series: MeasureSeries) -> bool:
    return head[0] < series.estimates.shape[0] and head[1] < series.estimates.shape[1]


def _chosen_heads(
    series: MeasureSeries, selection: PictureSelection, cell: int, left: float, right: float
) -> Iterator[Markup]:
    """An outline around each chosen head, and its name and number beside the grid."""
    last = -100.0
    for head in sorted(selection.heads):
        if not _is_in(head, series):
            continue
        x, y = left + head[1] * cell, head[0] * cell
        yield svg.element("rect", x=x - 1, y=y - 1, width=cell + 1, height=cell + 1, class_="chosen")
        middle = max(y + cell / 2, last + svg.LINE_HEIGHT)
        last = middle
        number = selection.number(head, series.estimates[head])
        yield svg.path([(x + cell + 1, y + cell / 2), (right + 8, middle)], class_="outline leader")
        yield svg.text(right + 11, middle + 4, f"{head}  {number}", class_="strong")


def draw_finding_curves(
    group: Sequence[MeasureSeries],
    labels: Sequence[str],
    x_name: str,
    first: int,
    selection: PictureSelection,
    size: PictureSize,
) -> Picture:
    """Lines with bands; baselines are grey, the untrained model has its own colour, names stand at the lines' ends."""
    group = [one.displayed() for one in group]
    lines = _lines(group)
    width, height = size.width, size.height
    top, bottom, left = 8, 30, 40
    names = [svg.truncate_label(name, 20 if size.is_small else 28) for name, _, _ in lines]
    right = width - 12 - max(svg.text_width(name) for name in names)
    values = np.concatenate([np.ravel(part) for _, _, e in lines for part in (e.value, e.low, e.high)])
    axis = Axis.over(values, is_p_value=group[0].display.is_p_value)
    n = len(labels)

    def x(index: float) -> float:
        return left + (right - left) * (index / (n - 1) if n > 1 else 0.5)

    def y(value: float) -> float:
        return height - bottom - (height - top - bottom) * axis.position(value)

    half = (right - left) / max(1, n - 1) / 2
    parts: list[Markup] = []
    for chosen, class_ in ((selection.other_layers, "layers-other"), (selection.layers, "layers-chosen")):
        for run in _runs(sorted(layer - first for layer in chosen if 0 <= layer - first < n)):
            start, end = max(left, x(run[0]) - half), min(right, x(run[-1]) + half)
            parts.append(
                svg.element("rect", x=start, y=top, width=end - start, height=height - top - bottom, class_=class_)
            )
    for tick, text in axis.ticks(4 if size.is_small else 5):
        parts.append(svg.path([(left, y(tick)), (right, y(tick))], class_="rule"))
        parts.append(svg.text(left - 6, y(tick) + 4, text + group[0].display.sign, anchor="end", class_="muted"))
    shown = [0, n - 1] if size.is_small else svg.visible_labels([x(i) for i in range(n)], labels)
    for index in dict.fromkeys(shown):
        text = f"{x_name} {labels[index]}" if index == 0 and size.is_small else labels[index]
        anchor = "start" if index == 0 and size.is_small else "middle"
        parts.append(svg.text(x(index), height - bottom + 15, text, anchor=anchor, class_="muted"))
    if not size.is_small:
        parts.append(svg.text((left + right) / 2, height - 2, x_name, anchor="middle", class_="muted"))
    ends: list[tuple[float, str, str]] = []
    for (name, class_, estimates), short in zip(lines, names, strict=True):
        parts.append(svg.group(_line(estimates, x, y, class_ != "of-model", name), class_=class_))
        finite = np.flatnonzero(np.isfinite(estimates.value))
        if len(finite):
            ends.append((y(float(estimates.value[finite[-1]])), short, class_))
    for one in group:
        for index in np.flatnonzero(np.isfinite(one.estimates.value)).tolist():
            tip = one.describe((index,), f"{x_name} {labels[index]}")
            class_ = next(class_ for _, class_, estimates in lines if estimates is one.estimates)
            point = svg.element(
                "circle", cx=x(index), cy=y(float(one.estimates.value[index])), r=3, class_="point", tip=tip
            )
            parts.append(svg.group([point], class_=class_))
    parts += _end_labels(ends, right + 7, height - bottom)
    unit = group[0].unit
    name = group[0].name if len(group) == 1 else ""
    label = f"{', '.join(one.name for one in group)} by {x_name}"
    chosen = "shaded: the layers of the finding" if selection.layers and not size.is_small else ""
    caption = "; ".join(filter(None, (unit, chosen))) if not size.is_small else ""
    return Picture(svg.document(width, height, Markup().join(parts), label), name, caption)


def _lines(group: Sequence[MeasureSeries]) -> list[tuple[str, str, Estimates]]:
    """The lines of a picture by name and class: each measure, and its baselines if there is one measure."""
    if len(group) == 1:
        (one,) = group
        baselines = [
            (name, "of-untrained" if name == UNTRAINED.name else "of-baseline", estimates)
            for name, estimates in one.baselines.items()
            if np.isfinite(estimates.value).any()
        ]
        return [*baselines, ("this model", "of-model", one.estimates)]
    classes = ("of-model", "s1", "s2", "s3")
    return [(one.name, classes[index % len(classes)], one.estimates) for index, one in enumerate(group)]


def _line(estimates: Estimates, x: Scale, y: Scale, is_dashed: bool, name: str) -> Iterator[Markup]:
    for run in finite_runs(estimates.high - estimates.low):
        if any(estimates.high[i] > estimates.low[i] for i in run):
            edges = [(i, estimates.low[i]) for i in run] + [(i, estimates.high[i]) for i in reversed(run)]
            points = " ".join(f"{x(i):.1f},{y(float(value)):.1f}" for i, value in edges)
            yield svg.element("polygon", points=points, class_="band")
    for run in finite_runs(estimates.value):
        dash = "4 3" if is_dashed else ""
        yield svg.path(
            [(x(i), y(float(estimates.value[i]))) for i in run], class_="line", stroke_dasharray=dash, tip=name
        )


def _end_labels(ends: Sequence[tuple[float, str, str]], left: float, lowest: float) -> Iterator[Markup]:
    """The names of the lines beside their ends, a line of text apart."""
    placed: list[float] = []
    order = sorted(ends)
    for height, _, _ in order:
        placed.append(max(height, placed[-1] + svg.LINE_HEIGHT - 1) if placed else height)
    for index in reversed(range(len(placed))):
        placed[index] = min(placed[index], lowest)
        lowest = placed[index] - svg.LINE_HEIGHT + 1
    for height, (_, name, class_) in zip(placed, order, strict=True):
        yield svg.group([svg.text(left, height + 4, name, class_="point end")], class_=class_)


def _runs(indices: Sequence[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def _marks_at(series: MeasureSeries, index: tuple[int, ...]) -> Iterator[StripMark]:
    for name, estimates in {"this model": series.estimates, **series.baselines}.items():
        if np.isfinite(estimates.value[index]):
            kind: MarkKind = "untrained" if name == UNTRAINED.name else "baseline"
            kind = "estimate" if estimates is series.estimates else kind
            yield StripMark.of(kind, estimates[index], name, svg.format_estimate(estimates[index], series.display.sign))


def draw_best_heads(series: MeasureSeries) -> Picture:
    """The heads with the highest scores as strips on one scale."""
    series = series.displayed()
    order = np.argsort(-np.nan_to_num(series.estimates.value, nan=-np.inf), axis=None, kind="stable")[:N_BEST_HEADS]
    marks: dict[str, list[StripMark]] = {}
    for index in order.tolist():
        cell = tuple(int(axis) for axis in np.unravel_index(index, series.estimates.shape))
        marks[f"head {Head(*cell)}"] = list(_marks_at(series, cell))
    return Picture(_stacked(marks, series.display), "best heads, all sentences", series.unit)


def _stacked(marks: Mapping[str, Sequence[StripMark]], unit: DisplayUnit) -> Markup:
    """Strips below one another, with their names, and the ends of the scale below the last."""
    every = [mark for row in marks.values() for mark in row]
    whole = (0.0, unit.factor)
    is_within = all(whole[0] <= end <= whole[1] for mark in every for end in (mark.low, mark.high))
    scale = whole if is_within else strip_scale(every)
    left = 10 + max(map(svg.text_width, marks))
    strip_width, step = 300, 30
    parts: list[Markup] = []
    for position, (name, row_marks) in enumerate(marks.items()):
        top = position * step
        parts.append(svg.text(left - 8, top + 17, name, anchor="end"))
        is_last = position == len(marks) - 1
        ends = (f"{scale[0]:.3g}{unit.sign}", f"{scale[1]:.3g}{unit.sign}") if is_last else None
        strip = draw_strip(row_marks, scale, name, width=strip_width, ends=ends, is_part=True)
        parts.append(svg.group([strip], transform=f"translate({left:.0f} {top})"))
    label = f"{len(marks)} rows: {', '.join(marks)}"
    return svg.document(left + strip_width, len(marks) * step + 16, Markup().join(parts), label)


def _row_name(table: Table, row: int) -> str:
    head = table.attribute("head", row)
    name = svg.truncate_label(table.row_names[row], 40)
    return f"{name} · {head}" if head and head != name else name
