"""A result as it is drawn on the page: grids, curves and tables, each number beside its baselines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from html import escape
from typing import Any

import numpy as np

from bertology.results.estimate import Estimate, Estimates
from bertology.results.figures import curve, head_grid, layer_curve
from bertology.results.html_table import html_table
from bertology.results.result import Result
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve
from bertology.results.spread import spreads

BASELINE = "baseline "
FEW = 4
"""The notes of so few rows stand below the table, where they need not be looked for."""
ABOUT_NOTHING = 1e-4
"""So small a share of the largest number is told as about 0."""
ROWS = 60
"""Longer tables are cut on the page, which says so; the JSON has them whole."""


def drawn(result: Result, only: Collection[str] = (), rows: Collection[str] = ()) -> str:
    """The whole result, or only some of its measures and rows, where it has these."""
    return "".join(_parts(result, only, rows))


def _parts(result: Result, only: Collection[str], named: Collection[str]) -> Iterable[str]:
    match result.data:
        case HeadGrid() as grid:
            yield '<div class="figures grids">'
            for name, estimates in _chosen(grid, only):
                unit = f"{grid.units.get(name, '')}; pale to strong: {_range(estimates)}"
                yield _figure(name, head_grid(name, estimates, _beside(grid, name)), unit)
            yield f"</div>{_strongest(grid, only)}"
        case LayerCurve() as layers:
            yield '<div class="figures">'
            for name, estimates in _chosen(layers, only):
                drawing = layer_curve(name, estimates, _beside(layers, name), layers.first)
                yield _figure(name, drawing, layers.units.get(name, ""))
            yield "</div>"
        case Curve() as along:
            yield '<div class="figures">'
            for name, estimates in _chosen(along, only):
                drawing = curve(name, estimates, _beside(along, name), along.points, along.along)
                yield _figure(name, drawing, along.units.get(name, ""))
            yield "</div>"
        case _:
            rows = [row for row in result.rows() if not only or row.get("measure", "") in only]
            rows = [row for row in rows if not named or row.get("row", "") in named] or rows
            aside = {row["row"]: row["note"] for row in rows[:ROWS] if row.get("note")}
            # A row's note is the same for all of its measures: it is told once.
            aside = aside if len(rows) <= FEW or len(aside) < len(rows[:ROWS]) / 2 else {}
            units = {row["measure"]: row.get("unit", "") for row in rows if "measure" in row}
            value = f"value [{spreads(units, units)}]"
            kept = ({k: v for k, v in row.items() if k != "note" or not aside} for row in rows[:ROWS])
            yield html_table([_told(row, value) for row in kept])
            yield from (f'<p class="soft">{escape(f"{name}: {note}")}</p>' for name, note in aside.items())
            yield _units(rows[:ROWS])
            if len(rows) > ROWS:
                yield f'<p class="soft">The first {ROWS} of {len(rows)} rows; --json has all.</p>'


def _units(rows: Iterable[Mapping[str, Any]]) -> str:
    """What the measures of records count in, each unit once."""
    units: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.get("unit"):
            units.setdefault(row["unit"], {})[row["measure"]] = None
    told = "; ".join(f"{', '.join(names)}: {unit}" for unit, names in units.items())
    return f'<p class="soft">{escape(told)}</p>' if told else ""


def _told(row: Mapping[str, Any], value: str) -> dict[str, Any]:
    """A record as it is read: the number with its interval under that name, then its baselines, and its note last."""
    if "low" not in row:
        return dict(row)
    apart = {"value", "low", "high", "n", "unit", "note"}
    axes = {name: value for name, value in row.items() if name not in apart and not name.startswith(BASELINE)}
    number = Estimate(row["value"], row["low"], row["high"], row["n"])
    told = {**axes, value: str(number) if np.isfinite(number.value) else "", "n": number.n}
    told |= {name.removeprefix(BASELINE): value for name, value in row.items() if name.startswith(BASELINE)}
    return told | ({"note": row["note"]} if "note" in row else {})


def _chosen(data: HeadGrid | LayerCurve | Curve, only: Collection[str]) -> list[tuple[str, Estimates]]:
    wanted = [name for name in data.measures if name in only]
    return [(name, data.measures[name]) for name in wanted or data.measures]


def _beside(data: HeadGrid | LayerCurve | Curve, name: str) -> dict[str, Estimates]:
    return {baseline: measures[name] for baseline, measures in data.baselines.items() if name in measures}


def _figure(name: str, drawing: str, caption: str) -> str:
    return f'<figure><h4>{escape(name)}</h4>{drawing}<figcaption class="soft">{escape(caption)}</figcaption></figure>'


def _range(estimates: Estimates) -> str:
    measured = estimates.value[np.isfinite(estimates.value)]
    if not measured.size:
        return "nothing measured"
    low, high = float(measured.min()), float(measured.max())
    return f"{'about 0' if abs(low) < ABOUT_NOTHING * abs(high) else f'{low:.3g}'} to {high:.3g}"


def _strongest(grid: HeadGrid, only: Collection[str]) -> str:
    rows: list[dict[str, Any]] = []
    for name, estimates in _chosen(grid, only):
        if not np.isfinite(estimates.value).any():
            continue
        place = np.unravel_index(int(np.nanargmax(estimates.value)), estimates.shape)
        head = Head(int(place[0]), int(place[1]))
        best: Estimate = estimates[head]
        row: dict[str, Any] = {
            "measure": name,
            "highest head": str(head),
            "value [95 % interval]": str(best),
            "n": best.n,
        }
        rows.append(row | {b: str(measured[head]) for b, measured in _beside(grid, name).items()})
    return html_table(rows)
