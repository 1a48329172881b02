"""A result as tables in the terminal: the overview by layer, then the strongest heads, each beside its baselines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.cli.columns import PADDING, Block, Column, fits, in_tables, label_least, letters_of, room_beside
from bertology.cli.resting import Resting
from bertology.results.estimate import Estimate, Estimates
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, Table
from bertology.results.spread import spreads

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
AXES = ("row", "column")


def show(result: Result, analysis: Analysis) -> None:
    """Print the result for a reader; `--json` is for programs."""
    from rich.console import Console

    # Words and intervals may have brackets, which are not meant as styles.
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, markup=False)
    console.print(f"{result.analysis}: {analysis.question}", style="bold")
    console.print(f"{result.rests_on}; special tokens: {analysis.special}")
    for part in _parts(result, console.width):
        console.print(part, style="italic" if isinstance(part, str) else "")
    for line in _company(result):
        console.print(line)


def _parts(result: Result, width: int) -> Iterable[RichTable | str]:
    """The tables, each kind of them under a line that says what it is."""
    match result.data:
        case HeadGrid() as grid:
            yield from _by_layer(grid, width)
            yield from _strongest(grid, width)
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
            for name in matrix.measures:
                yield from (_grid if small else _extremes)(name, matrix, width)
        case other:
            yield _records(list(other.rows()))


def _by_layer(grid: HeadGrid, width: int) -> Iterable[RichTable | str]:
    """Means over heads, in as many tables as it takes to cut no word of a name."""
    layers = [str(layer + 1) for layer in range(_length(grid.measures))]
    blocks: list[Block] = []
    for name, estimates in grid.measures.items():
        beside = (found[name].value if name in found else np.nan for found in grid.baselines.values())
        blocks.append(Block(Column(name, tuple(map(_number, (*estimates.value, *beside))))))
    yield "mean over heads, by layer"
    labels = [Column("layer", (*layers, *grid.baselines))]
    yield from _filled(labels, blocks, width, MEASURES_AT_ONCE, real=len(layers))


def _strongest(grid: HeadGrid, width: int) -> Iterable[RichTable | str]:
    found: dict[str, Head] = {}
    for name, estimates in grid.measures.items():
        if np.isfinite(estimates.value).any():
            place = np.unravel_index(int(np.nanargmax(estimates.value)), estimates.shape)
            found[name] = Head(int(place[0]), int(place[1]))
    own = [grid.measures[name][head] for name, head in found.items()]
    beside = {
        chance: [some[name][head] if name in some else None for name, head in found.items()]
        for chance, some in grid.baselines.items()
    }
    labels = [Column("measure", tuple(found)), Column("head", tuple(str(head) for head in found.values()))]
    yield "highest head of each measure"
    yield from _filled(labels, [_block(own, beside)], width, COLUMNS_AT_ONCE)


def _curves(
    curve: LayerCurve | Curve | Table, along: str, places: list[str], width: int, leaving: tuple[int, ...] = ()
) -> Iterable[RichTable | str]:
    """Tables of as many measures, each beside its baselines, as can be read side by side, without some places."""
    shown = [index for index in range(len(places)) if index not in leaving]
    resting = Resting.of(curve.measures, shown)
    labels = [Column(along, tuple(places[index] for index in shown)), *resting.of_rows]
    blocks: list[Block] = []
    for name, estimates in curve.measures.items():
        beside = {chance: found[name] for chance, found in curve.baselines.items() if name in found}
        columns = [
            Column(who, tuple(_estimate(one[index]) for index in shown))
            for who, one in {resting.told(name): estimates, **beside}.items()
        ]
        blocks.append(Block(columns[0], tuple(columns[1:]), resting.of_measures.get(name)))
    yield f"value [{spreads(curve.measures, curve.units)}], each beside its baselines"
    yield from _filled(labels, blocks, width, COLUMNS_AT_ONCE)


def _filled(
    labels: Sequence[Column], blocks: Sequence[Block], width: int, most: int, real: int | None = None
) -> Iterable[RichTable]:
    """Tables beside the labels of their rows; rows beyond the `real` ones are baselines, left out where empty."""
    for columns in in_tables(labels, blocks, width, most):
        table = _headed(labels, columns, width)
        for index in range(len(labels[0].cells)):
            cells = [column.cells[index] for column in columns]
            beyond = real is not None and index >= real
            if any(cells) or not beyond:
                table.add_row(*(label.cells[index] for label in labels), *cells, style="dim" if beyond else "")
        yield table


def _headed(labels: Sequence[Column], columns: Sequence[Column], width: int) -> RichTable:
    """A table to be filled, its columns as wide as there is room for."""
    table = _table("", [])
    first, *others = labels
    if not fits(labels, columns, width):
        # Where even one measure beside one baseline is too wide, cells are broken rather than cut.
        for place, column in enumerate([*labels, *columns]):
            table.add_column(column.name, justify="right" if place else "left", overflow="fold")
        return table
    letters = letters_of(columns, room_beside(labels, width))
    least = label_least(first, width) - PADDING
    left = room_beside([Column("", ()), *others], width) - sum(own + PADDING for own in letters)
    table.add_column(first.name, min_width=least, max_width=max(left, least), overflow="fold")
    for column, own in zip([*others, *columns], [*(label.needed for label in others), *letters], strict=True):
        table.add_column("\n".join(column.heading(own)), justify="right", min_width=own)
    return table


def _block(own: Sequence[Estimate], beside: Mapping[str, Sequence[Estimate | None]]) -> Block:
    """Estimates with what each rests on, beside baselines of which some may lack."""
    columns = [
        Column(name, tuple("" if one is None else _estimate(one) for one in some)) for name, some in beside.items()
    ]
    count = Column("n", tuple(str(one.n) for one in own))
    return Block(Column("value [95 % interval]", tuple(map(_estimate, own))), tuple(columns), count)


def _notes(table: Table) -> RichTable:
    told = _table("notes", ["", "note"])
    told.columns[1].justify = "left"
    for row in table.rows_named:
        if row in table.notes:
            told.add_row(row, table.notes[row])
    return told


def _grid(name: str, matrix: Matrix, width: int) -> Iterable[RichTable | str]:
    """All values of a small matrix."""
    estimates = matrix.measures[name]
    counted = estimates.n[np.isfinite(estimates.value) & (estimates.n > 0)]
    differ = counted.size and counted.min() < counted.max()
    yield f"{name}, n from {counted.min()} to {counted.max()}" if differ else name
    blocks = [
        Block(Column(column, tuple(_number(value) for value in estimates.value[:, place])))
        for place, column in enumerate(matrix.columns_named)
    ]
    yield from _filled([Column("", matrix.rows_named)], blocks, width, MATRIX_COLUMNS)


def _extremes(name: str, matrix: Matrix, width: int) -> Iterable[RichTable | str]:
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
    cells = [(int(row), int(column)) for row, column in told]
    beside = {
        chance: [found[name][cell] for cell in cells] for chance, found in matrix.baselines.items() if name in found
    }
    labels = [Column(kind, tuple(names[axis][cell[axis]] for cell in cells)) for axis, kind in enumerate(AXES)]
    yield f"{name}: highest and lowest of {values.shape[0]} x {values.shape[1]} cells (--json and --figure have all)"
    yield from _filled(labels, [_block([estimates[cell] for cell in cells], beside)], width, COLUMNS_AT_ONCE)


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


def _table(title: str, columns: Sequence[str]) -> RichTable:
    """A table to be filled; names of columns are broken only between words."""
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(title=title or None, title_justify="left", box=SIMPLE, pad_edge=False)
    for place, name in enumerate(columns):
        left = place == 0 or name in {"measure", ""}
        table.add_column(name, justify="left" if left else "right", min_width=Column(name, ()).needed)
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
