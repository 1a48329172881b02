"""Print a result as tables: means by layer, the highest heads, and every number with its baselines."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from bertology.estimates.estimate import INTERVAL_LABELS, Estimate, Estimates, describe_intervals, estimate_text
from bertology.results.measure import Measure
from bertology.results.result import sample_sizes
from bertology.results.shapes import (
    MODEL_SERIES,
    Curve,
    Head,
    HeadGrid,
    LayerCurve,
    Matrix,
    Shape,
    Table,
    UnmeasuredShape,
)

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from bertology.analyses.declaration import Analysis
    from bertology.analyses.presets import Preset, PublishedNumber
    from bertology.results.comparison import ModelTable
    from bertology.results.result import Result

PIPED_WIDTH = 160
MAX_COLUMNS = 7
MAX_MEASURES = 16
MAX_ROWS = 30
"""Longer tables are cut to the rows that are furthest from their baselines; --all-rows prints all."""
MAX_MATRIX_COLUMNS = 16
"""A matrix with more columns does not fit a terminal: only its highest and lowest cells are printed."""
CELLS_PER_END = 10
AXES = ("row", "column")


def print_result(result: Result, analysis: Analysis, *, head: Head | None = None, all_rows: bool = False) -> None:
    """Print the result for people, or what it says about one head; `--json` is for programs.

    Long tables are cut unless `all_rows`; a line says so.
    """
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
    tables = _result_tables(result.data, console.width, all_rows)
    for part in tables if head is None else _head_card(result.data, head, console.width, all_rows):
        console.print(part, style="italic" if isinstance(part, str) else "")
    for line in _footnotes(result):
        console.print(line)
    for line in _prune_lines(result) if head is None else ():
        console.print(line, soft_wrap=True)  # a broken line could not be pasted


def print_model_table(table: ModelTable) -> None:
    """Print the numbers of several models side by side, baselines dim below them."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, markup=False)
    for analysis in dict.fromkeys(row.analysis for row in table.rows):
        console.print(f"{analysis}: value [interval] of each model, baselines below", style="bold")
        shown = _build_table(["measure", "", *table.models])
        shown.columns[1].justify = "left"
        for row in table.rows:
            if row.analysis == analysis:
                is_model = row.series == MODEL_SERIES
                labels = (row.measure, row.position) if is_model else ("", f"  {row.series}")
                shown.add_row(*labels, *map(row.cell, table.models), style="" if is_model else "dim")
        console.print(shown)
    for name in table.not_compared:
        console.print(f"{name}: not in the table, its results have no measures; see --json.")


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


def _result_tables(data: Shape, width: int, all_rows: bool) -> Iterable[RichTable | str]:
    """The tables of a result, with a heading line before each kind."""
    match data:
        case HeadGrid() as grid:
            yield from _layer_means(grid, width)
            yield from _highest_heads(grid, width)
            if all_rows:
                heads = _heads_as_table(grid)
                yield from _curve_tables(heads, "head", list(heads.row_names), width)
            else:
                yield "All heads: --all-rows. One head: --head LAYER-HEAD."
        case LayerCurve() as curve:
            layers = [str(i + curve.first_layer) for i in range(_length(curve.measures))]
            yield from _curve_tables(curve, "layer", layers, width)
        case Curve() as curve:
            yield from _curve_tables(curve, curve.x_name, [f"{point:g}" for point in curve.x], width)
            yield from _removal_orders(curve)
        case Table() as table:
            empty = set(table.empty_rows())
            rows = [row for row in range(len(table.row_names)) if row not in empty]
            shown = rows if all_rows else _strongest_rows(table, rows)
            yield from _table_rows(table, shown, width)
            yield from _describe_cut(table, len(shown), len(rows))
        case Matrix() as matrix:
            rows = list(range(len(matrix.row_names)))
            small = len(matrix.column_names) <= MAX_MATRIX_COLUMNS
            shown = rows if all_rows or not small else _strongest_rows(matrix, rows)
            for name in matrix.measures:
                yield from _matrix_values(name, matrix, width, shown) if small else _extremes(name, matrix, width)
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


def _table_rows(table: Table, rows: Sequence[int], width: int) -> Iterable[RichTable | str]:
    """Numbers and attributes of some rows of a table."""
    yield from _curve_tables(table, "", list(table.row_names), width, rows)
    yield from _table_attributes(table, rows, except_for=table.head_attributes())


def _table_attributes(table: Table, rows: Sequence[int], except_for: Collection[str] = ()) -> Iterable[RichTable]:
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
        shown = _build_table(["", *(name.replace("_", " ") for name in attributes)])
        for column in shown.columns:
            column.justify = "left"
        for index in rows:
            cells = [_format_value(values[index]) for values in attributes.values()]
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


def _heads_as_table(grid: HeadGrid) -> Table:
    """The same numbers with a row for each head."""

    def flatten(measures: Mapping[str, Estimates]) -> dict[str, Estimates]:
        return {name: Estimates.concatenate([e[layer] for layer in range(e.shape[0])]) for name, e in measures.items()}

    shape = next(iter(grid.measures.values())).shape
    return Table(
        measures=flatten(grid.measures),
        baselines={name: flatten(measures) for name, measures in grid.baselines.items()},
        row_names=tuple(str(Head(*index)) for index in np.ndindex(*shape)),
    )


def _head_card(data: Shape, head: Head, width: int, all_rows: bool) -> Iterable[RichTable | str]:
    """What a result says about one head; the whole result if it has no numbers of single heads."""
    match data:
        case HeadGrid() as grid:
            yield from _head_measures(grid, head, head, width)
        case Table() as table if str(head) in table.row_names:
            yield from _head_measures(table, head, str(head), width)
            yield from _table_attributes(table, [table.row_names.index(str(head))])
        case Table() as table if rows := _rows_about(table, head):
            yield f"Head {head}: {count_noun(len(rows), 'rows')} of {len(table.row_names)}"
            yield from _table_rows(table, rows, width)
        case Table() as table if table.head_attributes():
            yield f"Head {head} is in none of {count_noun(len(table.row_names), 'rows')}; other heads were selected."
            yield from _result_tables(data, width, all_rows)
        case Matrix() as matrix if str(head) in matrix.row_names:
            for name in matrix.measures:
                yield from _extremes(name, matrix, width, matrix.row_names.index(str(head)))
        case _:
            yield f"No number of this result is about a single head such as {head}: the whole result."
            yield from _result_tables(data, width, all_rows)


def _rows_about(table: Table, head: Head) -> list[int]:
    """The rows whose name or attribute is the head."""
    columns = [table.row_names, *table.head_attributes().values()]
    return [row for row in range(len(table.row_names)) if any(column[row] == str(head) for column in columns)]


def _head_measures(data: HeadGrid | Table, head: Head, key: Head | str, width: int) -> Iterable[RichTable | str]:
    """All measures of a head with their ranks among all heads and their baselines."""
    measures = [Measure(name, estimates, data) for name, estimates in data.measures.items()]
    ranks = [measure.rank(key) for measure in measures]
    n_measured = [int(np.isfinite(measure.estimates.value).sum()) for measure in measures]
    baselines = {
        name: [m.baselines[name][key] if m.name in by_measure else None for m in measures]
        for name, by_measure in data.baselines.items()
    }
    labels = [
        TableColumn("measure", tuple(f"{m.name} (lowest)" if m.low_stands_out else m.name for m in measures)),
        TableColumn("rank", tuple(f"{r} of {n}" if r else "" for r, n in zip(ranks, n_measured, strict=True))),
    ]
    end = "highest, or lowest where the measure says so" if any(m.low_stands_out for m in measures) else "highest"
    yield f"Head {head}, its rank among all heads (1: {end}) and baselines"
    intervals, with_n = describe_intervals(data.measures), len(sample_sizes(data)) > 1
    columns = _measure_columns([m[key] for m in measures], baselines, intervals, with_n)
    yield from _fill_tables(labels, [columns], width, MAX_COLUMNS)


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
        varying = {
            name: estimates.value
            for name, estimates in by_measure.items()
            if _varies(estimates.value, grid.measures[name].value)
        }
        if varying:
            columns = {name: TableColumn(name, tuple(map(_format_mean, values))) for name, values in varying.items()}
            yield f"Baseline, mean over heads, by layer: {baseline}"
            labels = [TableColumn("layer", tuple(layers))]
            yield from _fill_tables(labels, list(map(MeasureColumns, columns.values())), width, MAX_MEASURES)


def _varies(baseline: FloatArray, measure: FloatArray) -> bool:
    """Whether a baseline's means over heads differ between layers, by more than a tenth of what the model's do."""
    return _range_of_means(baseline) > max(5e-4, 0.1 * _range_of_means(measure))


def _range_of_means(values: FloatArray) -> float:
    means = [float(np.nanmean(layer)) for layer in values if np.isfinite(layer).any()]
    return max(means) - min(means) if means else 0.0


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
    columns = _measure_columns(values, baselines, intervals, len(sample_sizes(grid)) > 1)
    yield from _fill_tables(labels, [columns], width, MAX_COLUMNS)


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
    rows: Sequence[int] | None = None,
) -> Iterable[RichTable | str]:
    """Tables of measures with their baselines, as many side by side as the width allows; of all rows or of some."""
    shown = list(range(len(row_labels)) if rows is None else rows)
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
            TableColumn(label, tuple(estimate_text(series[index]) for index in shown))
            for label, series in {sizes.label(name): estimates, **baselines}.items()
        ]
        blocks.append(MeasureColumns(columns[0], tuple(columns[1:]), sizes.by_measure.get(name)))
    sizes_of_rows = np.unique(np.concatenate([e.n[shown][e.n[shown] > 0] for e in curve.measures.values()]))
    n = f"; n = {sizes_of_rows[0]}" if len(sizes_of_rows) == 1 < len(sample_sizes(curve)) else ""
    yield f"Value [{describe_intervals(curve.measures)}] and baselines{n}"
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
    estimates: Sequence[Estimate], baselines: Mapping[str, Sequence[Estimate | None]], intervals: str, with_n: bool
) -> MeasureColumns:
    """Columns of estimates with their baselines, some of which may be missing, and their sample sizes if wished."""
    columns = [
        TableColumn(name, tuple("" if e is None else estimate_text(e) for e in series))
        for name, series in baselines.items()
    ]
    n_column = TableColumn("n", tuple(str(e.n) for e in estimates)) if with_n else None
    values = TableColumn(f"value [{intervals}]", tuple(map(estimate_text, estimates)))
    return MeasureColumns(values, tuple(columns), n_column)


def _matrix_values(name: str, matrix: Matrix, width: int, rows: Sequence[int]) -> Iterable[RichTable | str]:
    """The values of some rows of a matrix."""
    estimates = matrix.measures[name]
    n = estimates.n[np.isfinite(estimates.value) & (estimates.n > 0)]
    differ = n.size and n.min() < n.max()
    yield f"{name} (n = {n.min()} to {n.max()})" if differ else name
    blocks = [
        MeasureColumns(TableColumn(column, tuple(_format_mean(value) for value in estimates.value[rows, index])))
        for index, column in enumerate(matrix.column_names)
    ]
    labels = [TableColumn("", tuple(matrix.row_names[row] for row in rows))]
    yield from _fill_tables(labels, blocks, width, MAX_MATRIX_COLUMNS)


def _extremes(name: str, matrix: Matrix, width: int, row: int | None = None) -> Iterable[RichTable | str]:
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
    columns = _measure_columns([estimates[cell] for cell in cells], baselines, intervals, with_n)
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
    yield from _describe_counts(result)


def _describe_counts(result: Result) -> Iterable[str]:
    """The counts of each input; models with equal counts, such as a model and its untrained copy, share a line."""
    roles: dict[str, list[str]] = {}
    for role, summary in result.inputs.items():
        if isinstance(summary, Mapping) and "counts" in summary:
            counts = ", ".join(count_noun(count, name) for name, count in summary["counts"].items())
            text = f"on {summary['corpus']['name']}: {counts}"
            roles.setdefault(text, []).append(f"{role} {summary['model']['name']}")
    for text, models in roles.items():
        yield f"Input ({', '.join(models)}) {text}"


def _build_table(columns: Sequence[str] = ()) -> RichTable:
    """An empty table; column names wrap only between words."""
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(box=SIMPLE, pad_edge=False)
    for index, name in enumerate(columns):
        left = index == 0 or name in {"measure", ""}
        table.add_column(name, justify="left" if left else "right", min_width=TableColumn(name, ()).min_width)
    return table


def _format_number(estimate: Estimate) -> str:
    """Value and interval; with three decimals if it has no interval, as in tables of means over heads."""
    return f"{estimate.value:.3f}" if np.isnan(estimate.low) else estimate_text(estimate)


def _format_mean(value: object) -> str:
    array = np.asarray(value, np.float64)
    measured = array[np.isfinite(array)]
    return f"{measured.mean():.3f}" if measured.size else ""


def _length(measures: Mapping[str, Estimates]) -> int:
    return next(iter(measures.values())).shape[0]
