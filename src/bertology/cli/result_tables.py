"""The numbers of a result as tables, in the way of its shape; long tables are cut, and a line says so."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.cli.head_grid_tables import heads_as_table, highest_heads, layer_means
from bertology.cli.rich_tables import (
    MAX_COLUMNS,
    build_table,
    fill_tables,
    format_mean,
    measure_columns,
)
from bertology.cli.table_layout import MeasureColumns, SampleSizes, TableColumn
from bertology.estimates.estimate import INTERVAL_LABELS, describe_intervals, estimate_text
from bertology.results.html_table import format_value
from bertology.results.measure import Measure
from bertology.results.result import sample_sizes
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Shape, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

MAX_ROWS = 30
"""Longer tables are cut to the rows that are furthest from their baselines; --all-rows prints all."""
MAX_MATRIX_COLUMNS = 16
"""A matrix with more columns does not fit a terminal: only its highest and lowest cells are printed."""
CELLS_PER_END = 10
AXES = ("row", "column")


def result_tables(data: Shape, width: int, all_rows: bool) -> Iterable[RichTable | str]:
    """The tables of a result, with a heading line before each kind."""
    match data:
        case HeadGrid() as grid:
            yield from layer_means(grid, width)
            yield from highest_heads(grid, width)
            if all_rows:
                heads = heads_as_table(grid)
                yield from _curve_tables(heads, "head", list(heads.row_names), width)
            else:
                yield "All heads: --all-rows. One head: --head LAYER-HEAD."
        case LayerCurve() as curve:
            layers = [str(i + curve.first_layer) for i in range(len(next(iter(curve.measures.values())).value))]
            yield from _curve_tables(curve, "layer", layers, width)
        case Curve() as curve:
            yield from _curve_tables(curve, curve.x_name, [f"{point:g}" for point in curve.x], width)
            yield from _removal_orders(curve)
        case Table() as table:
            empty = set(table.empty_rows())
            rows = [row for row in range(len(table.row_names)) if row not in empty]
            shown = rows if all_rows else _strongest_rows(table, rows)
            yield from table_rows(table, shown, width)
            yield from _describe_cut(table, len(shown), len(rows))
        case Matrix() as matrix:
            rows = list(range(len(matrix.row_names)))
            small = len(matrix.column_names) <= MAX_MATRIX_COLUMNS
            shown = rows if all_rows or not small else _strongest_rows(matrix, rows)
            for name in matrix.measures:
                yield from _matrix_values(name, matrix, width, shown) if small else extreme_cells(name, matrix, width)
            yield from _describe_cut(matrix, len(shown), len(rows))
        case other:
            rows = list(other.rows())
            yield _records(rows if all_rows else rows[:MAX_ROWS])
            if not all_rows and len(rows) > MAX_ROWS:
                yield f"The first {MAX_ROWS} of {len(rows)} rows (all: --all-rows)."


def _ranking_measure(data: Table | Matrix) -> Measure | None:
    """The first measure that was measured and has a baseline."""
    measures = (Measure(name, estimates, data) for name, estimates in data.measures.items())
    return next((measure for measure in measures if np.isfinite(measure.distance()).any()), None)


def _strongest_rows(data: Table | Matrix, rows: Sequence[int]) -> list[int]:
    """At most `MAX_ROWS` rows, in their order: clearly above or below all baselines first, then by distance."""
    measure = _ranking_measure(data)
    if len(rows) <= MAX_ROWS or measure is None:
        return list(rows[:MAX_ROWS])
    clear = {key[0] if isinstance(key, tuple) else key for key in measure.above() | measure.below()}
    distances = measure.distance().reshape(len(data.row_names), -1)
    furthest = np.where(np.isnan(distances), -1.0, distances).max(1)
    ranked = sorted(rows, key=lambda row: (data.row_names[row] not in clear, -furthest[row]))
    return sorted(ranked[:MAX_ROWS])


def _describe_cut(data: Table | Matrix, n_shown: int, n_rows: int) -> Iterable[str]:
    if n_shown < n_rows:
        measure = _ranking_measure(data)
        which = f"those whose {measure.name} is furthest from its baselines" if measure is not None else "the first"
        yield f"{n_shown} of {n_rows} rows: {which} (all: --all-rows)."


def table_rows(table: Table, rows: Sequence[int], width: int) -> Iterable[RichTable | str]:
    """Numbers and attributes of some rows of a table."""
    yield from _curve_tables(table, "", list(table.row_names), width, rows)
    yield from table_attributes(table, rows, except_for=table.head_attributes())


def table_attributes(table: Table, rows: Sequence[int], except_for: Collection[str] = ()) -> Iterable[RichTable]:
    """Attributes and notes of some rows of a table, except those that stand in its rows."""
    notes = {"note": tuple(table.notes.get(name, "") for name in table.row_names)}
    attributes = {
        name: values
        for name, values in {**table.attributes, **notes}.items()
        if name not in except_for
        and not _is_in_row_names(name, values, table)
        and any(values[row] not in (None, "") for row in rows)
    }
    if attributes:
        shown = build_table(["", *(name.replace("_", " ") for name in attributes)])
        for column in shown.columns:
            column.justify = "left"
        for index in rows:
            cells = [format_value(values[index]) for values in attributes.values()]
            if any(cells):
                shown.add_row(table.row_names[index], *cells)
        yield shown


def _is_in_row_names(name: str, values: Sequence[object], table: Table) -> bool:
    """Whether the rows say the attribute already, as `layer 3` does, or a head its layer."""
    heads = table.attributes.get("head", table.row_names)
    is_named = (
        value is None
        or row in (str(value), f"{name} {value}")
        or (name == "layer" and str(head).startswith(f"{value}-"))
        for value, row, head in zip(values, table.row_names, heads, strict=True)
    )
    return all(is_named)


def _removal_orders(curve: Curve) -> Iterable[RichTable | str]:
    """The heads removed at each point of the curve, or, if each point has its own order, the heads it keeps."""
    stepwise = [order for order in curve.removal_orders if order.steps]
    if stepwise:
        yield "Heads removed at each step, in order"
        table = build_table([curve.x_name, *(order.name for order in stepwise)])
        for column in table.columns[1:]:
            column.justify, column.overflow = "left", "fold"
        for row, point in enumerate(curve.x):
            steps = [(order, order.steps[max(0, row - 1)], order.steps[row]) for order in stepwise]
            table.add_row(f"{point:g}", *(" ".join(order.heads[start:end]) for order, start, end in steps))
        yield table
    for order in curve.removal_orders:
        if not order.steps:
            yield f"Heads kept, {order.name} ({', '.join(order.values)})"
            numbers = list(zip(*order.values.values(), strict=True))[order.n_removed :][::-1]
            heads = zip(order.kept, numbers, strict=True)
            yield ", ".join(f"{head} ({', '.join(map(format_value, n))})" for head, n in heads) or "none"


def _curve_tables(
    curve: LayerCurve | Curve | Table,
    x_label: str,
    row_labels: list[str],
    width: int,
    rows: Sequence[int] | None = None,
) -> Iterable[RichTable | str]:
    """Tables of measures with their baselines, as many side by side as the width allows; of all rows or of some."""
    shown = list(range(len(row_labels)) if rows is None else rows)
    sizes = SampleSizes.from_estimates(curve.measures, shown)
    heads = curve.head_attributes() if isinstance(curve, Table) else {}
    labels = [
        TableColumn(x_label, tuple(row_labels[index] for index in shown)),
        *(
            TableColumn(name.replace("_", " "), tuple(format_value(values[index]) for index in shown))
            for name, values in heads.items()
        ),
        *sizes.shared_column,
    ]
    blocks: list[MeasureColumns] = []
    for name, estimates in curve.measures.items():
        baselines = {baseline: b[name] for baseline, b in curve.baselines.items() if name in b}
        columns = [
            TableColumn(label, tuple(estimate_text(series[index]) for index in shown))
            for label, series in {sizes.label(name): estimates, **baselines}.items()
        ]
        blocks.append(MeasureColumns(columns[0], tuple(columns[1:]), sizes.by_measure.get(name)))
    sizes_of_rows = np.unique(np.concatenate([e.n[shown][e.n[shown] > 0] for e in curve.measures.values()]))
    n = f"; n = {sizes_of_rows[0]}" if len(sizes_of_rows) == 1 < len(sample_sizes(curve)) else ""
    yield f"Value [{describe_intervals(curve.measures)}] and baselines{n}"
    yield from fill_tables(labels, blocks, width, MAX_COLUMNS)


def _matrix_values(name: str, matrix: Matrix, width: int, rows: Sequence[int]) -> Iterable[RichTable | str]:
    """The values of some rows of a matrix."""
    estimates = matrix.measures[name]
    n = estimates.n[np.isfinite(estimates.value) & (estimates.n > 0)]
    differ = n.size and n.min() < n.max()
    yield f"{name} (n = {n.min()} to {n.max()})" if differ else name
    blocks = [
        MeasureColumns(TableColumn(column, tuple(format_mean(value) for value in estimates.value[rows, index])))
        for index, column in enumerate(matrix.column_names)
    ]
    labels = [TableColumn("", tuple(matrix.row_names[row] for row in rows))]
    yield from fill_tables(labels, blocks, width, MAX_MATRIX_COLUMNS)


def extreme_cells(name: str, matrix: Matrix, width: int, row: int | None = None) -> Iterable[RichTable | str]:
    """The cells with the highest and lowest values, or those of one row; a symmetric matrix has each pair once."""
    estimates = matrix.measures[name]
    values = estimates.value
    names = matrix.row_names, matrix.column_names
    mask = np.isfinite(values)
    if row is not None:
        mask &= np.arange(len(values))[:, None] == row
    elif names[0] == names[1] and np.array_equal(values, values.T, equal_nan=True):
        mask &= ~np.tri(len(values), dtype=np.bool_)
    indices = np.argwhere(mask)[np.argsort(-values[mask], kind="stable")]
    if len(indices) > 2 * CELLS_PER_END:
        indices = np.concatenate([indices[:CELLS_PER_END], indices[-CELLS_PER_END:]])
    cells = [(int(first), int(second)) for first, second in indices]
    baselines = {baseline: [b[name][cell] for cell in cells] for baseline, b in matrix.baselines.items() if name in b}
    labels = [TableColumn(kind, tuple(names[axis][cell[axis]] for cell in cells)) for axis, kind in enumerate(AXES)]
    size = f"{values.shape[0]} x {values.shape[1]} cells" if row is None else f"the cells of {names[0][row]}"
    yield f"{name}: {CELLS_PER_END} highest and {CELLS_PER_END} lowest of {size} (all: --json or --figure)"
    intervals, with_n = INTERVAL_LABELS[estimates.interval], len(sample_sizes(matrix)) > 1
    columns = measure_columns([estimates[cell] for cell in cells], baselines, intervals, with_n)
    yield from fill_tables(labels, [columns], width, MAX_COLUMNS)


def _records(rows: list[dict[str, object]]) -> RichTable:
    columns = list(rows[0]) if rows else ["(no rows)"]
    table = build_table(columns)
    for row in rows:
        table.add_row(*(format_value(row.get(column, "")) for column in columns))
    return table
