"""Print a result as tables: means by layer, the highest heads, and every number with its baselines."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import FloatArray
from bertology.cli.table_layout import (
    PADDING,
    MeasureColumns,
    SampleSizes,
    TableColumn,
    column_widths,
    fits,
    min_label_width,
    remaining_width,
    split_into_tables,
)
from bertology.errors import count_noun
from bertology.estimates.estimate import INTERVAL_LABELS, Estimate, Estimates, describe_intervals
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, Table, UnmeasuredShape

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from bertology.analyses.declaration import Analysis
    from bertology.analyses.presets import Preset, PublishedNumber
    from bertology.results.result import Result

PIPED_WIDTH = 160
MAX_COLUMNS = 7
MAX_MEASURES = 16
MAX_MATRIX_COLUMNS = 16
"""A matrix with more columns does not fit a terminal: only its highest and lowest cells are printed."""
CELLS_PER_END = 10
AXES = ("row", "column")


def print_result(result: Result, analysis: Analysis) -> None:
    """Print the result for people; `--json` is for programs."""
    from rich.console import Console

    # Words and intervals contain brackets, which rich would take for styles.
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, markup=False)
    console.print(f"{result.analysis}: {analysis.question}", style="bold")
    for line in result.headline():
        console.print(line, style="bold")
    console.print(f"{result.sample_size}. {analysis.special_tokens}")
    for line in result.describe_inputs():
        console.print(line)
    if options := result.describe_options():
        console.print(f"Options: {options}")
    for part in _result_tables(result, console.width):
        console.print(part, style="italic" if isinstance(part, str) else "")
    for line in _footnotes(result):
        console.print(line)
    for line in _prune_lines(result):
        console.print(line, soft_wrap=True)  # a broken line could not be pasted


def print_published(result: Result, preset: Preset, findings: Sequence[str]) -> None:
    """Print the published numbers of a preset beside those of the result, and further findings of the paper."""
    from rich.console import Console

    from bertology.analyses.presets import format_flags, published_numbers

    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, markup=False)
    console.print(f"Definitions of {preset.paper}: {preset.describe()}", style="bold")
    replaced = result.provenance["like"]["replaced"]
    if replaced:
        console.print(f"Given otherwise: {format_flags(replaced)}.")
    numbers = published_numbers(result, preset)
    missing = " A dash: not measured on this model and corpus." if any(n.here is None for n in numbers) else ""
    console.print(f"Published numbers: {preset.inputs}; {preset.source}.{missing}")
    measures = dict.fromkeys(number.measure for number in numbers)
    for part in _published_tables(numbers, tuple(measures), console.width):
        console.print(part)
    for finding in findings:
        console.print(f"Published for the claim {finding}.")


def _published_tables(
    numbers: Sequence[PublishedNumber], measures: tuple[str, ...], width: int
) -> Iterable[RichTable | str]:
    """One table per set of rows; a number that this model or corpus does not have is a dash."""
    by_rows: dict[tuple[tuple[str, str], ...], list[MeasureColumns]] = {}
    for measure in measures:
        selected = [number for number in numbers if number.measure == measure]
        here = tuple("-" if number.here is None else _format_number(number.here) for number in selected)
        published = TableColumn("published", tuple(f"{number.published:.3g}" for number in selected))
        rows = tuple((number.row, number.published_row) for number in selected)
        by_rows.setdefault(rows, []).append(MeasureColumns(TableColumn(measure, here), (published,)))
    for rows, blocks in by_rows.items():
        labels = [TableColumn("", tuple(row or "(no such measure)" for row, _ in rows))]
        if any(row != published_row for row, published_row in rows):
            labels.append(TableColumn("published layer", tuple(published_row for _, published_row in rows)))
        yield from _fill_tables(labels, blocks, width, MAX_MEASURES)


def _result_tables(result: Result, width: int) -> Iterable[RichTable | str]:
    """The tables of a result, with a heading line before each kind."""
    match result.data:
        case HeadGrid() as grid:
            yield from _layer_means(grid, width)
            yield from _highest_heads(grid, width)
        case LayerCurve() as curve:
            layers = [str(i + curve.first_layer) for i in range(_length(curve.measures))]
            yield from _curve_tables(curve, "layer", layers, width)
        case Curve() as curve:
            yield from _curve_tables(curve, curve.x_name, [f"{point:g}" for point in curve.x], width)
            yield from _removal_orders(curve)
        case Table() as table:
            yield from _curve_tables(table, "", list(table.row_names), width, skipped_rows=table.empty_rows())
            if table.attributes or table.notes:
                yield _attributes(table)
        case Matrix() as matrix:
            small = len(matrix.column_names) <= MAX_MATRIX_COLUMNS
            for name in matrix.measures:
                yield from (_matrix_values if small else _extremes)(name, matrix, width)
        case other:
            yield _records(list(other.rows()))


def _removal_orders(curve: Curve) -> Iterable[RichTable | str]:
    """The heads removed at each point of the curve, or, if each point has its own order, the heads it keeps."""
    stepwise = [order for order in curve.removal_orders if order.steps]
    if stepwise:
        yield "Heads removed at each step, in order"
        table = _build_table([curve.x_name, *(order.name for order in stepwise)])
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
            yield ", ".join(f"{head} ({', '.join(map(_format_value, n))})" for head, n in heads) or "none"


def _prune_lines(result: Result) -> Iterable[str]:
    """A command for each order of removal that removes the heads that can go."""
    orders = result.data.removal_orders if isinstance(result.data, Curve) else ()
    model = result.inputs.get("model", {}).get("model", {}).get("name", "MODEL")
    for order in orders:
        if order.removed:
            yield f"To remove the first {order.n_removed} by {order.name}:"
            yield f"bertology prune {model} --heads {','.join(order.removed)} -o DIR"


def _layer_means(grid: HeadGrid, width: int) -> Iterable[RichTable | str]:
    """Means over heads by layer, in as many tables as the width needs."""
    layers = [str(layer + 1) for layer in range(_length(grid.measures))]
    blocks: list[MeasureColumns] = []
    for name, estimates in grid.measures.items():
        baselines = (b[name].value if name in b else np.nan for b in grid.baselines.values())
        blocks.append(MeasureColumns(TableColumn(name, tuple(map(_format_mean, (*estimates.value, *baselines))))))
    yield "Mean over heads, by layer"
    labels = [TableColumn("layer", (*layers, *grid.baselines))]
    yield from _fill_tables(labels, blocks, width, MAX_MEASURES, n_measured_rows=len(layers))
    for baseline, by_measure in grid.baselines.items():
        # A baseline such as the attention weights alone has its own value in every layer: the mean above hides it.
        varying = {name: values for name, estimates in by_measure.items() if _varies(values := estimates.value)}
        if varying:
            columns = {name: TableColumn(name, tuple(map(_format_mean, values))) for name, values in varying.items()}
            yield f"Baseline, mean over heads, by layer: {baseline}"
            labels = [TableColumn("layer", tuple(layers))]
            yield from _fill_tables(labels, list(map(MeasureColumns, columns.values())), width, MAX_MEASURES)


def _varies(values: FloatArray) -> bool:
    """Whether the means over heads differ between layers by more than rounding."""
    means = [float(np.nanmean(layer)) for layer in values if np.isfinite(layer).any()]
    return bool(means) and max(means) - min(means) > 5e-4


def _highest_heads(grid: HeadGrid, width: int) -> Iterable[RichTable | str]:
    """The head that stands out by each measure; if all heads are equal, their value."""
    heads = {name: grid.extreme_head(name) for name, e in grid.measures.items() if np.isfinite(e.value).any()}
    cells = {
        name: head or tuple(np.argwhere(np.isfinite(grid.measures[name].value))[0]) for name, head in heads.items()
    }
    values = [grid.measures[name][cell] for name, cell in cells.items()]
    baselines = {
        baseline: [estimates[name][cell] if name in estimates else None for name, cell in cells.items()]
        for baseline, estimates in grid.baselines.items()
    }
    labels = [
        TableColumn("measure", tuple(f"{name} (lowest)" if name in grid.lowest else name for name in heads)),
        TableColumn("head", tuple(_format_head(grid.measures[name].value, head) for name, head in heads.items())),
    ]
    yield "Highest or lowest head per measure" if grid.lowest else "Highest head per measure"
    intervals = describe_intervals(grid.measures)
    yield from _fill_tables(labels, [_measure_columns(values, baselines, intervals)], width, MAX_COLUMNS)


def _format_head(values: FloatArray, head: Head | None) -> str:
    """The name of a head, and how many others have the same value."""
    if head is None:
        return "all equal"
    n_others = int((values == values[head]).sum()) - 1
    return f"{head} and {n_others} more" if n_others else str(head)


def _curve_tables(
    curve: LayerCurve | Curve | Table,
    x_label: str,
    row_labels: list[str],
    width: int,
    skipped_rows: tuple[int, ...] = (),
) -> Iterable[RichTable | str]:
    """Tables of measures with their baselines, as many side by side as the width allows."""
    shown = [index for index in range(len(row_labels)) if index not in skipped_rows]
    sizes = SampleSizes.from_estimates(curve.measures, shown)
    heads = curve.head_attributes() if isinstance(curve, Table) else {}
    labels = [
        TableColumn(x_label, tuple(row_labels[index] for index in shown)),
        *(
            TableColumn(name.replace("_", " "), tuple(_format_value(values[index]) for index in shown))
            for name, values in heads.items()
        ),
        *sizes.shared_column,
    ]
    blocks: list[MeasureColumns] = []
    for name, estimates in curve.measures.items():
        baselines = {baseline: b[name] for baseline, b in curve.baselines.items() if name in b}
        columns = [
            TableColumn(label, tuple(_format_estimate(series[index]) for index in shown))
            for label, series in {sizes.label(name): estimates, **baselines}.items()
        ]
        blocks.append(MeasureColumns(columns[0], tuple(columns[1:]), sizes.by_measure.get(name)))
    yield f"Value [{describe_intervals(curve.measures)}] and baselines"
    yield from _fill_tables(labels, blocks, width, MAX_COLUMNS)


def _fill_tables(
    labels: Sequence[TableColumn],
    column_groups: Sequence[MeasureColumns],
    width: int,
    max_columns: int,
    n_measured_rows: int | None = None,
) -> Iterable[RichTable]:
    """Tables with row labels; rows after the first `n_measured_rows` are baselines, left out if empty."""
    for columns in split_into_tables(labels, column_groups, width, max_columns):
        table = _table_with_header(labels, columns, width)
        for index in range(len(labels[0].cells)):
            cells = [column.cells[index] for column in columns]
            is_baseline = n_measured_rows is not None and index >= n_measured_rows
            if any(cells) or not is_baseline:
                table.add_row(*(label.cells[index] for label in labels), *cells, style="dim" if is_baseline else "")
        yield table


def _table_with_header(labels: Sequence[TableColumn], columns: Sequence[TableColumn], width: int) -> RichTable:
    """An empty table whose columns use the available width."""
    table = _build_table()
    first, *others = labels
    if not fits(labels, columns, width):
        # If even one measure with one baseline is too wide, cells are wrapped rather than cut.
        for index, column in enumerate([*labels, *columns]):
            table.add_column(column.name, justify="right" if index else "left", overflow="fold")
        return table
    widths = column_widths(columns, remaining_width(labels, width))
    narrowest = min_label_width(first, width) - PADDING
    available = remaining_width([TableColumn("", ()), *others], width) - sum(w + PADDING for w in widths)
    table.add_column(first.name, min_width=narrowest, max_width=max(available, narrowest), overflow="fold")
    for column, w in zip([*others, *columns], [*(label.min_width for label in others), *widths], strict=True):
        table.add_column("\n".join(column.heading(w)), justify="right", min_width=w)
    return table


def _measure_columns(
    estimates: Sequence[Estimate], baselines: Mapping[str, Sequence[Estimate | None]], intervals: str
) -> MeasureColumns:
    """Columns of estimates with their sample sizes and baselines, some of which may be missing."""
    columns = [
        TableColumn(name, tuple("" if e is None else _format_estimate(e) for e in series))
        for name, series in baselines.items()
    ]
    n_column = TableColumn("n", tuple(str(e.n) for e in estimates))
    values = TableColumn(f"value [{intervals}]", tuple(map(_format_estimate, estimates)))
    return MeasureColumns(values, tuple(columns), n_column)


def _attributes(table: Table) -> RichTable:
    """The notes of a table's rows, and the attributes that do not stand beside the numbers."""
    attributes = {name: values for name, values in table.attributes.items() if name not in table.head_attributes()}
    names = [name.replace("_", " ") for name in attributes] + (["note"] if table.notes else [])
    shown = _build_table(["", *names])
    for column in shown.columns:
        column.justify = "left"
    for index, row in enumerate(table.row_names):
        cells = [_format_value(values[index]) for values in attributes.values()]
        cells += [table.notes.get(row, "")] if table.notes else []
        if any(cells):
            shown.add_row(row, *cells)
    return shown


def _matrix_values(name: str, matrix: Matrix, width: int) -> Iterable[RichTable | str]:
    """All values of a small matrix."""
    estimates = matrix.measures[name]
    n = estimates.n[np.isfinite(estimates.value) & (estimates.n > 0)]
    differ = n.size and n.min() < n.max()
    yield f"{name} (n = {n.min()} to {n.max()})" if differ else name
    blocks = [
        MeasureColumns(TableColumn(column, tuple(_format_mean(value) for value in estimates.value[:, index])))
        for index, column in enumerate(matrix.column_names)
    ]
    yield from _fill_tables([TableColumn("", matrix.row_names)], blocks, width, MAX_MATRIX_COLUMNS)


def _extremes(name: str, matrix: Matrix, width: int) -> Iterable[RichTable | str]:
    """The cells with the highest and lowest values; a symmetric matrix has each pair once."""
    estimates = matrix.measures[name]
    values = estimates.value
    names = matrix.row_names, matrix.column_names
    mask = np.isfinite(values)
    if names[0] == names[1] and np.array_equal(values, values.T, equal_nan=True):
        mask &= ~np.tri(len(values), dtype=np.bool_)
    indices = np.argwhere(mask)[np.argsort(-values[mask], kind="stable")]
    if len(indices) > 2 * CELLS_PER_END:
        indices = np.concatenate([indices[:CELLS_PER_END], indices[-CELLS_PER_END:]])
    cells = [(int(row), int(column)) for row, column in indices]
    baselines = {baseline: [b[name][cell] for cell in cells] for baseline, b in matrix.baselines.items() if name in b}
    labels = [TableColumn(kind, tuple(names[axis][cell[axis]] for cell in cells)) for axis, kind in enumerate(AXES)]
    yield (
        f"{name}: {CELLS_PER_END} highest and {CELLS_PER_END} lowest of {values.shape[0]} x {values.shape[1]} cells "
        "(all: --json or --figure)"
    )
    columns = _measure_columns([estimates[cell] for cell in cells], baselines, INTERVAL_LABELS[estimates.interval])
    yield from _fill_tables(labels, [columns], width, MAX_COLUMNS)


def _records(rows: list[dict[str, object]]) -> RichTable:
    columns = list(rows[0]) if rows else ["(no rows)"]
    table = _build_table(columns)
    for row in rows:
        table.add_row(*(_format_value(row.get(column, "")) for column in columns))
    return table


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return "" if value is None else str(value)


def _footnotes(result: Result) -> Iterable[str]:
    if isinstance(result.data, Table) and not result.data.row_names:
        yield "No rows: nothing in the corpus meets the criteria of this analysis."
    if isinstance(result.data, Table) and (empty := result.data.empty_rows()):
        yield f"Not measured (too few examples): {', '.join(result.data.row_names[i] for i in empty)}."
    if not isinstance(result.data, UnmeasuredShape):
        data = result.data
        yield from filter(None, (data.describe_units(), data.describe_sample(), data.describe_not_measured()))
    for role, summary in result.inputs.items():
        if isinstance(summary, Mapping) and "counts" in summary:
            counts = ", ".join(count_noun(count, name) for name, count in summary["counts"].items())
            yield f"Input ({role}): {summary['model']['name']} on {summary['corpus']['name']}: {counts}"


def _build_table(columns: Sequence[str] = ()) -> RichTable:
    """An empty table; column names wrap only between words."""
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(box=SIMPLE, pad_edge=False)
    for index, name in enumerate(columns):
        left = index == 0 or name in {"measure", ""}
        table.add_column(name, justify="left" if left else "right", min_width=TableColumn(name, ()).min_width)
    return table


def _format_estimate(estimate: Estimate) -> str:
    """Value and interval; the value alone if it is exact, empty if nothing was measured."""
    if np.isnan(estimate.value):
        return ""
    exact = np.isnan(estimate.low) or estimate.low == estimate.value == estimate.high
    return f"{estimate.value:.3g}" if exact else str(estimate)


def _format_number(estimate: Estimate) -> str:
    """Value and interval; with three decimals if it has no interval, as in tables of means over heads."""
    return f"{estimate.value:.3f}" if np.isnan(estimate.low) else _format_estimate(estimate)


def _format_mean(value: object) -> str:
    array = np.asarray(value, np.float64)
    measured = array[np.isfinite(array)]
    return f"{measured.mean():.3f}" if measured.size else ""


def _length(measures: Mapping[str, Estimates]) -> int:
    return next(iter(measures.values())).shape[0]
