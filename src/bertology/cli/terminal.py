"""A result as tables in the terminal: the overview by layer, then the strongest heads, each beside its baselines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.cli.columns import Column, in_tables
from bertology.results.estimate import Estimate, Estimates
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from bertology.analyses.declaration import Analysis
    from bertology.results.result import Result

PIPED_WIDTH = 160
COLUMNS_AT_ONCE = 7
MEASURES_AT_ONCE = 16
MATRIX_COLUMNS = 16
"""A matrix with more columns than this fits no terminal: its highest and lowest cells are told instead."""
CELLS_TOLD = 10


def show(result: Result, analysis: Analysis) -> None:
    """Print the result for a reader; `--json` is for programs."""
    from rich.console import Console

    # Words and intervals may have brackets, which are not meant as styles.
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, markup=False)
    console.print(f"{result.analysis}: {analysis.question}", style="bold")
    console.print(f"{result.rests_on}; special tokens: {analysis.special}")
    for table in _tables(result, console.width):
        console.print(table)
    for line in _company(result):
        console.print(line)


def _tables(result: Result, width: int) -> Iterable[RichTable]:
    match result.data:
        case HeadGrid() as grid:
            yield from _by_layer(grid, width)
            yield _strongest(grid)
        case LayerCurve() as curve:
            layers = [str(i + curve.first) for i in range(_length(curve.measures))]
            yield from _curves(curve, "layer", layers, width)
        case Curve() as curve:
            yield from _curves(curve, curve.along, [f"{point:g}" for point in curve.points], width)
        case Table() as table:
            yield from _curves(table, "", list(table.rows_named), width, leaving=table.empty_rows())
            if table.notes:
                yield _notes(table)
        case Matrix() as matrix:
            small = len(matrix.columns_named) <= MATRIX_COLUMNS
            for name, estimates in matrix.measures.items():
                if small:
                    yield _grid(name, estimates, matrix.rows_named, matrix.columns_named)
                else:
                    yield _extremes(name, matrix)
        case other:
            yield _records(list(other.rows()))


def _by_layer(grid: HeadGrid, width: int) -> Iterable[RichTable]:
    """Means over heads, in as many tables as it takes to cut no word of a name."""
    layers = [str(layer + 1) for layer in range(_length(grid.measures))]
    blocks: list[list[Column]] = []
    for name, estimates in grid.measures.items():
        beside = (found[name].value if name in found else np.nan for found in grid.baselines.values())
        blocks.append([Column(name, tuple(map(_number, (*estimates.value, *beside))))])
    for columns in in_tables([*layers, *grid.baselines], blocks, width, MEASURES_AT_ONCE):
        table = _table("mean over heads, by layer", ["layer", *columns])
        for index, row in enumerate([*layers, *grid.baselines]):
            cells = [column.cells[index] for column in columns]
            if row in layers or any(cells):
                table.add_row(row, *cells, style="" if row in layers else "dim")
        yield table


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


def _curves(
    curve: LayerCurve | Curve | Table, along: str, places: list[str], width: int, leaving: tuple[int, ...] = ()
) -> Iterable[RichTable]:
    """Tables of as many measures, each beside its baselines, as can be read side by side, without some places."""
    shown = [index for index in range(len(places)) if index not in leaving]
    rows = [places[index] for index in shown]
    blocks: list[list[Column]] = []
    for name, estimates in curve.measures.items():
        everyone = {name: estimates} | {
            chance: found[name] for chance, found in curve.baselines.items() if name in found
        }
        blocks.append([Column(who, tuple(_estimate(one[index]) for index in shown)) for who, one in everyone.items()])
    for columns in in_tables(rows, blocks, width, COLUMNS_AT_ONCE):
        table = _table("value [95 % interval], each beside its baselines", [along, *columns])
        for index, row in enumerate(rows):
            table.add_row(row, *(column.cells[index] for column in columns))
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


def _extremes(name: str, matrix: Matrix) -> RichTable:
    """The cells with the highest and the lowest values; of a matrix that is its own mirror image, each pair once."""
    estimates = matrix.measures[name]
    values = estimates.value
    names = matrix.rows_named, matrix.columns_named
    counted = np.isfinite(values)
    if names[0] == names[1] and np.array_equal(values, values.T, equal_nan=True):
        counted &= ~np.tri(len(values), dtype=np.bool_)
    places = np.argwhere(counted)
    places = places[np.argsort(-values[counted], kind="stable")]
    told = places if len(places) <= 2 * CELLS_TOLD else np.concatenate([places[:CELLS_TOLD], places[-CELLS_TOLD:]])
    beside = {chance: found[name] for chance, found in matrix.baselines.items() if name in found}
    title = f"{name}: highest and lowest of {values.shape[0]} x {values.shape[1]} cells (--json and --figure have all)"
    table = _table(title, ["row", "column", "value [95 % interval]", "n", *beside])
    for row, column in told.tolist():
        cell: Estimate = estimates[row, column]
        others = (_estimate(found[row, column]) for found in beside.values())
        table.add_row(names[0][row], names[1][column], _estimate(cell), str(cell.n), *others)
    return table


def _records(rows: list[dict[str, object]]) -> RichTable:
    columns = list(rows[0]) if rows else ["(nothing)"]
    table = _table("", columns)
    for row in rows:
        table.add_row(*(_shown(row.get(column, "")) for column in columns))
    return table


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)


def _company(result: Result) -> Iterable[str]:
    if isinstance(result.data, Table) and not result.data.rows_named:
        yield "no rows: nothing met what the analysis asks for"
    if isinstance(result.data, Table) and (empty := result.data.empty_rows()):
        yield f"nothing to measure in {len(empty)} rows: {', '.join(result.data.rows_named[i] for i in empty)}"
    for role, summary in result.inputs.items():
        if isinstance(summary, Mapping) and "counts" in summary:
            counted = ", ".join(f"{count} {name}" for name, count in summary["counts"].items())
            yield f"{role}: {summary['model']['name']} on {summary['corpus']['name']}: {counted}"


def _table(title: str, columns: Sequence[str | Column]) -> RichTable:
    """A table to be filled; the cells of a column that is known are not broken, and names only between words."""
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for place, column in enumerate(columns):
        left = place == 0 or column in {"layer", "measure", ""}
        own = Column(column, ()) if isinstance(column, str) else column
        name = own.name if isinstance(column, str) else own.broken_name
        table.add_column(name, justify="left" if left else "right", min_width=own.needed)
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
