"""The pictures of the atlas: forest plots of a finding over models, the map of models, and curves over training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from bertology.atlas.content import Atlas
from bertology.atlas.judged_model import JudgedFinding, JudgedModel
from bertology.atlas.profiles import ProfileMap
from bertology.atlas.training import TrainingRun
from bertology.claims.claim import Claim
from bertology.claims.rounding import format_constant
from bertology.estimates.estimate import Estimates
from bertology.results.drawing import svg
from bertology.results.drawing.curves import draw_curve
from bertology.results.drawing.panels import Panel
from bertology.results.drawing.strip import ForestLane, StripMark, draw_forest
from bertology.results.shapes import Curve

FOREST_WIDTH, MAP_WIDTH, MAP_HEIGHT, MAP_MARGIN = 620.0, 700.0, 480.0, 12.0
MAP_LABEL_LENGTH = 34
CURVE_WIDTH = 300.0
MAX_CURVES = 12
"""So many findings have a curve at once; all numbers are in the JSON."""

Row = Sequence[tuple[JudgedModel, JudgedFinding]]


def forest(claim: Claim, row: Row, content: Atlas) -> Markup | None:
    """The estimates of all models on one scale, with baselines, untrained twins and the published value."""
    measured = [(model, finding) for model, finding in row if finding.marks]
    if not measured:
        return None
    scale = min(finding.axis[0] for _, finding in measured), max(finding.axis[1] for _, finding in measured)
    lanes = [
        ForestLane(model.name, finding.marks, f"{finding.number} {finding.interval}".strip(), finding.status)
        for model, finding in measured
    ]
    low, high = (format_constant(float(f"{end:.3g}"), claim.unit) for end in scale)
    label = "; ".join(f"{lane.name}: {lane.text}" for lane in lanes)
    bands = _seed_bands([model.name for model, _ in measured], row, content)
    return draw_forest(lanes, scale, label, width=FOREST_WIDTH, ends=(low, high), bands=bands)


def _seed_bands(names: Sequence[str], row: Row, content: Atlas) -> list[tuple[float, float, int, int]]:
    """The range of the estimates of each family of seeds, over the lanes of its models."""
    values = {model.name: mark.value for model, f in row for mark in f.marks if mark.kind == "estimate"}
    bands: list[tuple[float, float, int, int]] = []
    for family in content.families:
        members = [name for name in family.models if name in values]
        lanes = [names.index(name) for name in members]
        if len(members) > 1:
            numbers = [values[name] for name in members]
            bands.append((min(numbers), max(numbers), min(lanes), max(lanes)))
    return bands


def peak_forest(row: Row) -> Markup | None:
    """The relative depth at which the curve of a finding peaks, with the layers that may be its peak."""
    peaks = [(model, finding.peak) for model, finding in row if finding.peak is not None]
    if not peaks:
        return None
    lanes: list[ForestLane] = []
    for model, peak in peaks:
        layers = f"{peak.low}-{peak.high}" if peak.low != peak.high else ""
        text = f"layer {peak.layer} of {peak.n_layers}{f' [{layers}]' if layers else ''}"
        mark = StripMark("estimate", *peak.depths, name=model.name, text=text)
        lanes.append(ForestLane(model.name, (mark,), text))
    label = "; ".join(f"{lane.name}: {lane.text}" for lane in lanes)
    return draw_forest(lanes, (0.0, 1.0), label, width=FOREST_WIDTH, ends=("embeddings", "last layer"))


def draw_map(profile_map: ProfileMap, content: Atlas) -> Markup:
    """The models in the plane of their profiles, each with the ellipse of its uncertainty."""
    positions = profile_map.positions
    xs = [p.x + sign * p.extent[0] for p in positions for sign in (-1, 1)]
    ys = [p.y + sign * p.extent[1] for p in positions for sign in (-1, 1)]
    width, height = MAP_WIDTH - 2 * MAP_MARGIN, MAP_HEIGHT - 2 * MAP_MARGIN
    factor = min(width / (max(xs) - min(xs) or 1.0), height / (max(ys) - min(ys) or 1.0))
    x0, y0 = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    trained = {model.name for model in content.models if model.is_trained}
    points = [(MAP_WIDTH / 2 + (p.x - x0) * factor, MAP_HEIGHT / 2 - (p.y - y0) * factor) for p in positions]
    names = [svg.truncate_middle(p.model, MAP_LABEL_LENGTH) for p in positions]
    parts: list[Markup] = []
    for p, (x, y), name, (left, bottom) in zip(positions, points, names, label_positions(points, names), strict=True):
        kind = "" if p.model in trained else "of-untrained-model"
        ellipse = svg.element(
            "ellipse", cx=x, cy=y, rx=p.radii[0] * factor, ry=p.radii[1] * factor, class_="uncertainty",
            transform=f"rotate({-p.angle:.1f} {x:.1f} {y:.1f})",
        )  # fmt: skip
        point = svg.element("circle", cx=x, cy=y, r=4.5, class_="mark-estimate", tip=p.model)
        parts.append(svg.group([ellipse, point, svg.text(left, bottom, name)], class_=kind))
    label = "Map of models by their profiles: " + "; ".join(f"{p.model} at {p.x:.1f}, {p.y:.1f}" for p in positions)
    return svg.document(MAP_WIDTH, MAP_HEIGHT, Markup().join(parts), label)


def label_positions(points: Sequence[tuple[float, float]], names: Sequence[str]) -> list[tuple[float, float]]:
    """The left end and base line of each name: beside its point, or above or below where others would be covered."""
    marks = [(x - 6, y - 6, x + 6, y + 6) for x, y in points]
    placed: list[tuple[float, float, float, float]] = []
    for (x, y), name in zip(points, names, strict=True):
        width = svg.text_width(name)
        candidates = [(x + 8, y + 4), (x - 8 - width, y + 4), (x - width / 2, y - 9), (x - width / 2, y + 17)]
        boxes = [(left, bottom - 10, left + width, bottom + 3) for left, bottom in candidates]
        taken = [*placed, *(mark for mark in marks if mark[:2] != (x - 6, y - 6))]
        placed.append(min(boxes, key=lambda box: _covered(box, taken)))
    return [(left, bottom - 3) for left, _, _, bottom in placed]


def _covered(box: tuple[float, float, float, float], taken: Sequence[tuple[float, float, float, float]]) -> float:
    """The area of a box that others or the margin of the map take."""
    left, top, right, bottom = box
    outside = max(0.0, -left) + max(0.0, right - MAP_WIDTH) + max(0.0, -top) + max(0.0, bottom - MAP_HEIGHT)
    overlaps = (max(0.0, min(right, r) - max(left, x)) * max(0.0, min(bottom, b) - max(top, y)) for x, y, r, b in taken)
    return 100 * outside + sum(overlaps)


def training_panels(run: TrainingRun, content: Atlas) -> list[Panel]:
    """The estimates of findings that appear in the course of a run, over its checkpoints."""
    appearing = [a.finding for a in run.appearances if a.after is not None]
    claims = {claim.id: claim for claim in content.claims}
    panels = [_training_panel(claims[id], run, content) for id in appearing]
    return [panel for panel in panels if panel is not None][:MAX_CURVES]


def _training_panel(claim: Claim, run: TrainingRun, content: Atlas) -> Panel | None:
    points: list[tuple[float, StripMark, StripMark | None]] = []
    for name, progress in zip(run.models, run.progress, strict=True):
        finding = content[name].find(claim.id)
        marks = {mark.kind: mark for mark in finding.marks} if finding is not None else {}
        if "estimate" in marks:
            points.append((progress, marks["estimate"], marks.get("baseline")))
    if len(points) < 2:
        return None
    name = claim.headline or claim.statement
    baselines = [baseline for _, _, baseline in points if baseline is not None]
    rule = [baselines[0].value if b is None else b.value for _, _, b in points] if baselines else [np.nan] * len(points)
    curve = Curve(
        measures={name: _estimates([mark for _, mark, _ in points])},
        baselines={baselines[0].name if baselines else "no rule": {name: Estimates.exact(rule)}},
        units={name: "proportion, 0 to 1" if claim.unit == "percent" else ""},
        x_name="% of training" if run.unit == "%" else "steps",
        x=np.array([progress for progress, _, _ in points]),
    )
    return draw_curve(curve, (), CURVE_WIDTH, run.name).panels[0]


def _estimates(marks: Sequence[StripMark]) -> Estimates:
    value, low, high = (np.array([getattr(mark, name) for mark in marks]) for name in ("value", "low", "high"))
    return Estimates(value=value, low=low, high=high, n=np.ones(len(marks), np.int64))
