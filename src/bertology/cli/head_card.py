"""What a result says about one head: `bertology run ... --head 8-11`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from bertology.cli.result_tables import extreme_cells, result_tables, table_attributes, table_rows
from bertology.cli.rich_tables import MAX_COLUMNS, fill_tables, measure_columns
from bertology.cli.table_layout import TableColumn
from bertology.errors import count_noun
from bertology.estimates.estimate import describe_intervals
from bertology.results.measure import Measure
from bertology.results.result import sample_sizes
from bertology.results.shapes import Head, HeadGrid, Matrix, Shape, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def head_card(data: Shape, head: Head, width: int, all_rows: bool) -> Iterable[RichTable | str]:
    """What a result says about one head; the whole result if it has no numbers of single heads."""
    match data:
        case HeadGrid() as grid:
            yield from _head_measures(grid, head, head, width)
        case Table() as table if str(head) in table.row_names:
            yield from _head_measures(table, head, str(head), width)
            yield from table_attributes(table, [table.row_names.index(str(head))])
        case Table() as table if rows := _rows_about(table, head):
            yield f"Head {head}: {count_noun(len(rows), 'rows')} of {len(table.row_names)}"
            yield from table_rows(table, rows, width)
        case Table() as table if table.head_attributes():
            yield f"Head {head} is in none of {count_noun(len(table.row_names), 'rows')}; other heads were selected."
            yield from result_tables(data, width, all_rows)
        case Matrix() as matrix if str(head) in matrix.row_names:
            for name in matrix.measures:
                yield from extreme_cells(name, matrix, width, matrix.row_names.index(str(head)))
        case _:
            yield f"No number of this result is about a single head such as {head}: the whole result."
            yield from result_tables(data, width, all_rows)


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
    columns = measure_columns([m[key] for m in measures], baselines, intervals, with_n)
    yield from fill_tables(labels, [columns], width, MAX_COLUMNS)
