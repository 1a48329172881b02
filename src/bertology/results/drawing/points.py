"""Points in the plane and their paths through the layers; both axes have the same scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup

from bertology.arrays import FloatArray
from bertology.results.drawing import svg
from bertology.results.drawing.panels import Drawing, Panel, legend
from bertology.results.drawing.style import N_ORDERED, N_SERIES, series_class
from bertology.results.shapes import Scatter, Trajectory

SIDE = 540
LEFT, TOP, BOTTOM = 46, 8, 36
MANY_POINTS = 60
ILLUSTRATION_NOTE = "Illustration: no claim is tested on it"


class _Plane:
    """A square plane around all points, and the classes of their groups."""

    def __init__(self, points: FloatArray, groups: Sequence[str], axis_names: tuple[str, str]) -> None:
        finite = points[np.isfinite(points).all(-1)]
        low, high = (finite.min(0), finite.max(0)) if len(finite) else (np.zeros(2), np.ones(2))
        self.centre = (low + high) / 2
        self.half_width = float((high - low).max()) * 0.56 or 1.0
        self.axis_names = axis_names
        self.groups = list(dict.fromkeys(groups))
        self.n_missing = int((~np.isfinite(points)).any(-1).sum())

    def at(self, point: FloatArray) -> tuple[float, float]:
        """The position of a point in pixels."""
        x, y = (point - self.centre) / (2 * self.half_width) + 0.5
        return LEFT + SIDE * float(x), TOP + SIDE * (1 - float(y))

    def class_of(self, group_name: str) -> str:
        """The class of a group's colour: distinct colours, or steps of one ramp if there are too many groups."""
        index = self.groups.index(group_name)
        if len(self.groups) <= N_SERIES:
            return series_class(index)
        return f"ordered{round(index / (len(self.groups) - 1) * (N_ORDERED - 1))}"

    def axes(self) -> Iterator[Markup]:
        """Grid lines, numbers and names of both axes."""
        for axis, name in enumerate(self.axis_names):
            low, high = (float(self.centre[axis]) + sign * self.half_width for sign in (-1, 1))
            for tick in svg.ticks(low, high):
                point = self.centre.copy()
                point[axis] = tick
                x, y = self.at(point)
                if axis == 0:
                    yield svg.path([(x, TOP), (x, TOP + SIDE)], class_="rule")
                    yield svg.text(x, TOP + SIDE + 14, f"{tick:.3g}", anchor="middle", class_="muted")
                else:
                    yield svg.path([(LEFT, y), (LEFT + SIDE, y)], class_="rule")
                    yield svg.text(LEFT - 6, y + 4, f"{tick:.3g}", anchor="end", class_="muted")
            if axis == 0:
                yield svg.text(LEFT + SIDE / 2, TOP + SIDE + 30, name, anchor="middle", class_="muted")
            else:
                yield svg.text(11, TOP + SIDE / 2, name, anchor="middle", class_="muted", rotate=-90)

    def drawing(self, parts: list[Markup], notes: list[str], label: str, n_layers: int = 0) -> Drawing:
        """The plane with everything in it, as a figure of one panel."""
        notes = [*notes, ILLUSTRATION_NOTE]
        if self.n_missing:
            notes.append(f"Without coordinates, not drawn: {self.n_missing}")
        panel = Panel("", "", LEFT + SIDE + 12, TOP + SIDE + BOTTOM, Markup().join(parts), label)
        key = _group_legend(self) if len(self.groups) > 1 else None
        return Drawing([panel], 1, tuple(notes), key, n_layers)


def _group_legend(plane: _Plane) -> Panel:
    names = plane.groups if len(plane.groups) <= N_SERIES else [plane.groups[0], plane.groups[-1]]
    classes = [plane.class_of(name) for name in names]
    return legend(names, LEFT + SIDE, lines=False, classes=classes, same_marker=True)


def draw_scatter(scatter: Scatter) -> Drawing:
    """Labelled points, coloured by group."""
    plane = _Plane(scatter.points, scatter.groups, scatter.axis_names)
    parts = list(plane.axes())
    for start, end in scatter.edges:
        if np.isfinite(scatter.points[[start, end]]).all():
            line = svg.path([plane.at(scatter.points[start]), plane.at(scatter.points[end])], class_="line thin")
            parts.append(svg.group([line], class_=plane.class_of(scatter.groups[start]), opacity=0.6))
    many = len(scatter.labels) > MANY_POINTS
    placed = _LabelPlacer(small=many)
    for point, label, name in zip(scatter.points, scatter.labels, scatter.groups, strict=True):
        if not np.isfinite(point).all():
            continue
        x, y = plane.at(point)
        tip = f"{label}\n{name}\n{plane.axis_names[0]} {point[0]:.3g}, {plane.axis_names[1]} {point[1]:.3g}"
        circle = svg.element("circle", cx=x, cy=y, r=3 if many else 4, class_="point", opacity=0.85, tip=tip)
        parts.append(svg.group([circle], class_=plane.class_of(name)))
        parts += placed.label(x, y, label)
    notes = [f"Labels omitted for lack of space: {placed.n_omitted}"] if placed.n_omitted else []
    return plane.drawing(parts, notes, f"{len(scatter.labels)} points")


def draw_trajectory(trajectory: Trajectory) -> Drawing:
    """Paths from layer 0 (hollow) to the layer shown (filled, labelled): the last one, or the reader's choice."""
    last = len(trajectory.points) - 1
    many = len(trajectory.labels) > MANY_POINTS
    plane = _Plane(trajectory.points.reshape(-1, 2), trajectory.groups, ("x", "y"))
    parts = list(plane.axes())
    placed = _LabelPlacer(small=many)
    for layer, points in enumerate(trajectory.points):
        steps: list[Markup] = []
        ends: list[Markup] = []
        placed = _LabelPlacer(small=many)
        for index, (point, label, name) in enumerate(zip(points, trajectory.labels, trajectory.groups, strict=True)):
            if not np.isfinite(point).all():
                continue
            x, y = plane.at(point)
            tip = f"{label}\n{name}\nlayer {layer}"
            before = trajectory.points[layer - 1, index]
            marks: list[Markup] = []
            if layer and np.isfinite(before).all():
                marks.append(svg.path([plane.at(before), (x, y)], class_="line thin", opacity=0.25 if many else 0.6))
            size = (2.0 if many else 4.0) if layer == 0 else 1.0 if many else 2.2
            marks.append(svg.element("circle", cx=x, cy=y, r=size, class_="hollow" if layer == 0 else "point", tip=tip))
            steps.append(svg.group(marks, class_=plane.class_of(name)))
            end = svg.element("circle", cx=x, cy=y, r=3 if many else 5, class_="point", tip=tip)
            ends += [svg.group([end], class_=plane.class_of(name)), *placed.label(x, y, label)]
        parts.append(svg.group(steps, class_="steps", data_layer=str(layer)))
        hidden = None if layer == last else "none"
        parts.append(svg.group(ends, class_="ends", data_layer=str(layer), display=hidden))
    notes = [f"○ layer 0, ● layer shown (of {last})"]
    if placed.n_omitted:
        notes.append(f"Labels omitted for lack of space: {placed.n_omitted} in the last layer")
    return plane.drawing(parts, notes, f"{len(trajectory.labels)} points through {last + 1} layers", last + 1)


class _LabelPlacer:
    """Labels to the right of their points, omitted where they would overlap an earlier one."""

    def __init__(self, *, small: bool) -> None:
        self.size = 9 if small else 11
        self.taken: list[tuple[float, float, float]] = []
        self.n_omitted = 0

    def label(self, x: float, y: float, label: str) -> list[Markup]:
        """The label, or nothing."""
        start, end = x + 6, x + 6 + svg.text_width(label, self.size)
        if any(start < e and s < end and abs(y - h) < self.size for s, e, h in self.taken):
            self.n_omitted += 1
            return []
        self.taken.append((start, end, y))
        outside = end > LEFT + SIDE + 12
        class_ = "muted quiet tiny" if self.size < 11 else "muted quiet"
        return [
            svg.text(x - 6 if outside else start, y - 3, label, class_=class_, anchor="end" if outside else "start")
        ]
