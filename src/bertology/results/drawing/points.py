"""Points in the plane and their paths through the layers; both axes have the same scale."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup

from bertology.arrays import FloatArray
from bertology.results.drawing import svg
from bertology.results.drawing.axis import format_tick
from bertology.results.drawing.panels import DEFAULT_WIDTH, Drawing, Panel, legend
from bertology.results.drawing.style import N_ORDERED, N_SERIES, SeriesStyle, series_class
from bertology.results.illustrations import Scatter, Trajectory

MIN_SIDE, MAX_SIDE = 150.0, 440.0
LEFT, TOP, BOTTOM = 40.0, 6.0, 34.0
MANY_POINTS = 60
ILLUSTRATION_NOTE = "An illustration: no claim is tested on it"
AXIS_NAMES = {"x": "first dimension", "y": "second dimension"}
"""What axes without a name of their own are called."""


class _Plane:
    """A square plane around all points, and the classes of their groups."""

    def __init__(self, points: FloatArray, groups: Sequence[str], axis_names: tuple[str, str], width: float) -> None:
        finite = points[np.isfinite(points).all(-1)]
        low, high = (finite.min(0), finite.max(0)) if len(finite) else (np.zeros(2), np.ones(2))
        self.centre = (low + high) / 2
        self.half_width = float((high - low).max()) * 0.56 or 1.0
        self.axis_names = tuple(AXIS_NAMES.get(name, name) for name in axis_names)
        self.groups = list(dict.fromkeys(groups))
        self.is_ordered = len(self.groups) > 1 and all(re.fullmatch(r"(layer )?\d+", name) for name in self.groups)
        if self.is_ordered:
            self.groups.sort(key=lambda name: int(name.rpartition(" ")[2]))
        self.n_missing = int((~np.isfinite(points)).any(-1).sum())
        self.side = max(MIN_SIDE, min(MAX_SIDE, width - LEFT - 8))

    def at(self, point: FloatArray) -> tuple[float, float]:
        """The position of a point in the drawing."""
        x, y = (point - self.centre) / (2 * self.half_width) + 0.5
        return LEFT + self.side * float(x), TOP + self.side * (1 - float(y))

    def class_of(self, group_name: str) -> str:
        """The class of a group's colour: distinct colours, or steps of one ramp if groups are ordered or too many."""
        index = self.groups.index(group_name)
        if len(self.groups) <= N_SERIES and not self.is_ordered:
            return series_class(index)
        return f"ordered{round(index / (len(self.groups) - 1) * (N_ORDERED - 1))}"

    def axes(self) -> Iterator[Markup]:
        """Grid lines, numbers and names of both axes."""
        right, bottom = LEFT + self.side, TOP + self.side
        for axis in (0, 1):
            low, high = (float(self.centre[axis]) + sign * self.half_width for sign in (-1, 1))
            for tick in svg.ticks(low, high):
                point = self.centre.copy()
                point[axis] = tick
                x, y = self.at(point)
                if axis == 0:
                    yield svg.path([(x, TOP), (x, bottom)], class_="rule")
                    yield svg.text(x, bottom + 13, format_tick(tick), anchor="middle", class_="muted small")
                else:
                    yield svg.path([(LEFT, y), (right, y)], class_="rule")
                    yield svg.text(LEFT - 5, y + 3.5, format_tick(tick), anchor="end", class_="muted small")
        yield svg.text(LEFT + self.side / 2, bottom + 27, self.axis_names[0], anchor="middle", class_="muted")
        middle = TOP + self.side / 2
        yield svg.text(9, middle, self.axis_names[1], anchor="middle", class_="muted", rotate=-90)

    def drawing(self, parts: list[Markup], notes: list[str], label: str, n_layers: int = 0) -> Drawing:
        """The plane with everything in it, as a figure of one panel."""
        notes = [*notes, ILLUSTRATION_NOTE]
        if self.n_missing:
            notes.append(f"Without coordinates, not drawn: {self.n_missing}")
        width = LEFT + self.side + 8
        panel = Panel("", "", width, TOP + self.side + BOTTOM, Markup().join(parts), label)
        many = len(self.groups) > N_SERIES and not self.is_ordered
        shown = [self.groups[0], self.groups[-1]] if many else self.groups
        entries = {name: SeriesStyle(self.class_of(name), "", "dot") for name in shown}
        return Drawing([panel], 1, tuple(notes), legend(entries, width, lines=False), n_layers)


def draw_scatter(scatter: Scatter, width: float = DEFAULT_WIDTH) -> Drawing:
    """Labelled points, coloured by group."""
    plane = _Plane(scatter.points, scatter.groups, scatter.axis_names, width)
    parts = list(plane.axes())
    for start, end in scatter.edges:
        if np.isfinite(scatter.points[[start, end]]).all():
            line = svg.path([plane.at(scatter.points[start]), plane.at(scatter.points[end])], class_="line thin")
            parts.append(svg.group([line], class_=plane.class_of(scatter.groups[start]), opacity=0.6))
    many = len(scatter.labels) > MANY_POINTS
    shown = np.flatnonzero(np.isfinite(scatter.points).all(-1)).tolist()
    positions = [plane.at(scatter.points[index]) for index in shown]
    labels: list[Markup] = []
    placed = _LabelPlacer(plane, positions)
    for (x, y), index in zip(positions, shown, strict=True):
        point, label, name = scatter.points[index], scatter.labels[index], scatter.groups[index]
        first, second = plane.axis_names
        tip = f"{label}\n{name}\n{first} {point[0]:.3g}, {second} {point[1]:.3g}"
        circle = svg.element("circle", cx=x, cy=y, r=2.4 if many else 3.2, class_="point", opacity=0.85, tip=tip)
        parts.append(svg.group([circle], class_=plane.class_of(name)))
        labels += placed.label(x, y, label)
    notes = [f"Labels left out for lack of space: {placed.n_omitted}"] if placed.n_omitted else []
    return plane.drawing([*parts, *labels], notes, f"{len(scatter.labels)} points")


def draw_trajectory(trajectory: Trajectory, width: float = DEFAULT_WIDTH) -> Drawing:
    """Paths from layer 0 (hollow) to the layer shown (filled, labelled): the last one, or the reader's choice."""
    last = len(trajectory.points) - 1
    many = len(trajectory.labels) > MANY_POINTS
    plane = _Plane(trajectory.points.reshape(-1, 2), trajectory.groups, ("x", "y"), width)
    parts = list(plane.axes())
    n_omitted = 0
    for layer, points in enumerate(trajectory.points):
        steps: list[Markup] = []
        ends: list[Markup] = []
        labels: list[Markup] = []
        finite = points[np.isfinite(points).all(-1)]
        placed = _LabelPlacer(plane, [plane.at(point) for point in finite])
        for index, (point, label, name) in enumerate(zip(points, trajectory.labels, trajectory.groups, strict=True)):
            if not np.isfinite(point).all():
                continue
            x, y = plane.at(point)
            tip = f"{label}\n{name}\nlayer {layer}"
            before = trajectory.points[layer - 1, index]
            marks: list[Markup] = []
            if layer and np.isfinite(before).all():
                marks.append(svg.path([plane.at(before), (x, y)], class_="line thin", opacity=0.2 if many else 0.5))
            size = (1.6 if many else 3.0) if layer == 0 else 0.8 if many else 1.8
            marks.append(svg.element("circle", cx=x, cy=y, r=size, class_="hollow" if layer == 0 else "point", tip=tip))
            steps.append(svg.group(marks, class_=plane.class_of(name)))
            end = svg.element("circle", cx=x, cy=y, r=2.4 if many else 4, class_="point", tip=tip)
            ends.append(svg.group([end], class_=plane.class_of(name)))
            labels += placed.label(x, y, label)
        n_omitted = placed.n_omitted
        parts.append(svg.group(steps, class_="steps", data_layer=str(layer)))
        hidden = None if layer == last else "none"
        parts.append(svg.group([*ends, *labels], class_="ends", data_layer=str(layer), display=hidden))
    notes = [f"○ layer 0, ● layer shown (of {last})"]
    if n_omitted:
        notes.append(f"Labels left out for lack of space: {n_omitted} in the last layer")
    return plane.drawing(parts, notes, f"{len(trajectory.labels)} points through {last + 1} layers", last + 1)


class _LabelPlacer:
    """Labels beside their points, inside the plane; omitted where they would overlap a point or another label."""

    SIDES = ((1, 0), (-1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1), (0, -1), (0, 1))
    GAP, HEIGHT = 4.5, 9.0

    def __init__(self, plane: _Plane, points: Sequence[tuple[float, float]]) -> None:
        self.plane = plane
        self.boxes = np.array([(x - 2, y - 2, x + 2, y + 2) for x, y in points], np.float64).reshape(-1, 4)
        self.n_omitted = 0

    def label(self, x: float, y: float, label: str) -> list[Markup]:
        """The label at the first free side of its point, or nothing."""
        shown = svg.fit_label(label, self.plane.side / 2, svg.SMALL_SIZE)
        width = svg.text_width(shown, svg.SMALL_SIZE)
        for across, down in self.SIDES:
            left = x + across * self.GAP - (width if across < 0 else width / 2 if across == 0 else 0)
            middle = y + down * (8 if across else 10)
            box = np.array((left, middle - self.HEIGHT / 2, left + width, middle + self.HEIGHT / 2))
            if self._is_free(box):
                self.boxes = np.vstack([self.boxes, box])
                return [svg.text(left, middle + 3.5, shown, class_="muted small quiet halo")]
        self.n_omitted += 1
        return []

    def _is_free(self, box: FloatArray) -> bool:
        inside = box[0] >= LEFT and box[1] >= TOP and box[2] <= LEFT + self.plane.side + 8
        if not inside or box[3] > TOP + self.plane.side:
            return False
        boxes = self.boxes
        overlaps = (boxes[:, 0] < box[2]) & (box[0] < boxes[:, 2]) & (boxes[:, 1] < box[3]) & (box[1] < boxes[:, 3])
        return not overlaps.any()
