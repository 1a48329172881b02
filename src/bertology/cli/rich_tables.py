"""Tables of estimates with their baselines, fitted to the width of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.cli.table_layout import (
    PADDING,
    MeasureColumns,
    TableColumn,
    column_widths,
    fits,
    min_label_width,
    remaining_width,
    split_into_tables,
)
from bertology.estimates.estimate import Estimate, estimate_text

if TYPE_CHECKING:
    from rich.table import Table as RichTable

MAX_COLUMNS = 7
MAX_MEASURES = 16


def fill_tables(
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
    table = build_table()
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


def measure_columns(
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


def build_table(columns: Sequence[str] = ()) -> RichTable:
    """An empty table; column names wrap only between words."""
    from rich.box import SIMPLE
    from rich.table import Table as RichTable

    table = RichTable(box=SIMPLE, pad_edge=False)
    for index, name in enumerate(columns):
        left = index == 0 or name in {"measure", ""}
        table.add_column(name, justify="left" if left else "right", min_width=TableColumn(name, ()).min_width)
    return table


def format_number(estimate: Estimate) -> str:
    """Value and interval; with three decimals if it has no interval, as in tables of means over heads."""
    return f"{estimate.value:.3f}" if np.isnan(estimate.low) else estimate_text(estimate)


def format_mean(value: object) -> str:
    """The mean of the measured values with three decimals; empty without any."""
    array = np.asarray(value, np.float64)
    measured = array[np.isfinite(array)]
    return f"{measured.mean():.3f}" if measured.size else ""
