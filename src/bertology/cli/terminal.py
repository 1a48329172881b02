"""A result as tables in the terminal: the overview by layer, then the strongest heads, each beside its baselines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from bertology.results.estimate import Estimate, Estimates
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from bertology.analyses.declaration import Analysis
    from bertology.results.result import Result

PIPED_WIDTH = 160
COLUMNS_AT_ONCE = 7


def show(result: Result, analysis: Analysis) -> None:
    """Print the result for a reader; `--json` is for programs."""
    from rich.console import Console

    # Words and intervals may have brackets, which are not meant as styles.
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, markup=False)
    console.print(f"{result.analysis}: {analysis.question}", style="bold")
    console.print(f"n = {result.n} inputs; special tokens: {analysis.special}")
    for table in _tables(result):
        console.print(table)
    for line in _company(result):
        console.print(line)


def _tables(result: Result) -> Iterable[RichTable]:
    match result.data:
        case HeadGrid() as grid:
            yield _by_layer(grid)
            yield _strongest(grid)
        case LayerCurve() as curve:
            yield from _curves(curve, "layer", [str(i + curve.first) for i in range(_length(curve.measures))])
        case Curve() as curve:
            yield from _curves(curve, curve.along, [f"{point:g}" for point in curve.points])
        case Table() as table:
            yield from _curves(table, "", list(table.rows_named))
            if table.notes:
                yield _notes(table)
        case Matrix() as matrix:
            for name, estimates in matrix.measures.items():
                yield _grid(name, estimates, matrix.rows_named, matrix.columns_named)
        case other:
            yield _records(list(other.rows()))


def _by_layer(grid: HeadGrid) -> RichTable:
    table = _table("mean over heads, by layer", ["layer", *grid.measures])
    layers = next(iter(grid.measures.values())).shape[0]
    for layer in range(layers):
        table.add_row(str(layer + 1), *(_number(e.value[layer]) for e in grid.measures.values()))
    for name, baseline in grid.baselines.items():
        cells = (_number(baseline[m].value) if m in baseline else "" for m in grid.measures)
        table.add_row(name, *cells, style="dim")
    return table


def _strongest(grid: HeadGrid) -> RichTable:
    baselines = list(grid.baselines)
    table = _table("highest head of each measure", ["measure", "head", "value [95 % interval]", "n", *baselines])
    for name, estimates in grid.measures.items():
        if not np.isfinite(estimates.value).any():
            continue
        place = np.unravel_index(int(np.nanargmax(estimates.value)), estimates.shape)
        head = Head(int(place[0]), int(place[1]))
        best: Estimate = estimates[head]
        beside = (_estimate(grid.baselines[b][name][head]) if name in grid.baselines[b] else "" for b in baselines)
        table.add_row(name, str(head), _estimate(best), str(best.n), *beside)
    return table


def _curves(curve: LayerCurve | Curve | Table, along: str, places: list[str]) -> Iterable[RichTable]:
    """Tables of as many measures, each beside its baselines, as can be read side by side."""
    groups: list[list[tuple[str, Estimates]]] = [[]]
    for name, estimates in curve.measures.items():
        beside = [(chance, found[name]) for chance, found in curve.baselines.items() if name in found]
        if groups[-1] and len(groups[-1]) + len(beside) + 1 > COLUMNS_AT_ONCE:
            groups.append([])
        groups[-1] += [(name, estimates), *beside]
    for columns in groups:
        table = _table("value [95 % interval], each beside its baselines", [along, *(name for name, _ in columns)])
        for index, place in enumerate(places):
            table.add_row(place, *(_estimate(estimates[index]) for _, estimates in columns))
        yield table


def _notes(table: Table) -> RichTable:
    told = _table("notes", ["", "note"])
    told.columns[1].justify = "left"
    for row in table.rows_named:
        if row in table.notes:
            told.add_row(row, table.notes[row])
    return told


def _grid(name: str, estimates: Estimates, rows: tuple[str, ...], columns: tuple[str, ...]) -> RichTable:
    table = _table(name, ["", *columns])
    for index, row in enumerate(rows):
        table.add_row(row, *(_number(value) for value in estimates.value[index]))
    return table


def _records(rows: list[dict[str, object]]) -> RichTable:
    columns = list(rows[0]) if rows else ["(nothing)"]
    table = _table("", columns)
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    return table


def _company(result: Result) -> Iterable[str]:
    for role, summary in result.inputs.items():
        if isinstance(summary, Mapping) and "counts" in summary:
            counted = ", ".join(f"{count} {name}" for name, count in summary["counts"].items())
            yield f"{role}: {summary['model']['name']} on {summary['corpus']['name']}: {counted}"


def _table(title: str, columns: list[str]) -> RichTable:
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="left" if column in {"layer", "measure", "", columns[0]} else "right")
    return table


def _estimate(estimate: Estimate) -> str:
    """Value and interval; no interval where there is none to speak of, nothing where nothing was measured."""
    if np.isnan(estimate.value):
        return ""
    exact = np.isnan(estimate.low) or estimate.low == estimate.value == estimate.high
    return f"{estimate.value:.3g}" if exact else str(estimate)


def _number(value: object) -> str:
    array = np.asarray(value, np.float64)
    measured = array[np.isfinite(array)]
    return f"{measured.mean():.3f}" if measured.size else ""


def _length(measures: Mapping[str, Estimates]) -> int:
    return next(iter(measures.values())).shape[0]
