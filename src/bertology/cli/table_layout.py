"""Fit text and tables to the width of a terminal: wrap lines, split wide tables, show sample sizes."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bertology.arrays import Array
from bertology.estimates.estimate import Estimates

PADDING = 3
"""Columns of padding around the text of a table column."""
MIN_LINE_WIDTH = 20
"""Minimum width of a line after its indent."""


def wrap_line(line: str, indent: int = 0) -> str:
    """The line wrapped to the terminal; unchanged if stdout is not a terminal."""
    if not sys.stdout.isatty():
        return line
    columns = max(shutil.get_terminal_size().columns, indent + MIN_LINE_WIDTH)
    return textwrap.fill(line, columns, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)


@dataclass(frozen=True)
class TableColumn:
    """A column of a table: its name and the text of its cells."""

    name: str
    cells: tuple[str, ...]

    @property
    def min_width(self) -> int:
        """The smallest width in which no cell wraps and the name wraps only between words."""
        return max(map(len, [*self.name.split(), *self.cells, ""]))

    @property
    def width(self) -> int:
        """The smallest width with padding."""
        return self.min_width + PADDING

    def heading(self, width: int) -> list[str]:
        """The name wrapped to a width."""
        return textwrap.wrap(self.name, max(width, 1), break_on_hyphens=False, break_long_words=False) or [""]

    def next_width(self, width: int) -> int:
        """The smallest greater width at which the name has fewer lines."""
        lines = len(self.heading(width))
        return next(w for w in range(width + 1, width + len(self.name) + 1) if len(self.heading(w)) < lines)


@dataclass(frozen=True)
class MeasureColumns:
    """A measure with its baselines, and its column of sample sizes if it has one."""

    measure: TableColumn
    baselines: tuple[TableColumn, ...] = ()
    n_column: TableColumn | None = None


def split_into_tables(
    labels: Sequence[TableColumn], column_groups: Sequence[MeasureColumns], width: int, max_columns: int
) -> Sequence[Sequence[TableColumn]]:
    """The columns of each table, at most `max_columns`.

    A measure and its baselines share a table if they fit; else the measure is repeated in the next one. A table has
    at least one measure and one baseline, however narrow the terminal. Labels wrap if that makes fewer tables.
    """
    full, narrowest = label_width(labels[0], width), min_label_width(labels[0], width)
    available = remaining_width(labels, width)
    wrapped = available + full - max(narrowest, min(full, width // 5))
    layouts = [
        list(_fill_tables(column_groups, room, available + full - narrowest, max_columns))
        for room in (available, wrapped)
    ]
    return min(layouts, key=len)


def _fill_tables(
    column_groups: Sequence[MeasureColumns], available: int, max_available: int, max_columns: int
) -> Iterator[Sequence[TableColumn]]:
    table: list[TableColumn] = []
    for group in column_groups:
        for part in _split_group(group, available, max_available, max_columns):
            if table and (len(table) + len(part) > max_columns or _total_width([*table, *part]) > available):
                yield table
                table = []
            table = [*table, *part]
    if table:
        yield table


def remaining_width(labels: Sequence[TableColumn], width: int) -> int:
    """The width that is left after the labels."""
    return width - label_width(labels[0], width) - _total_width(labels[1:])


def fits(labels: Sequence[TableColumn], columns: Sequence[TableColumn], width: int) -> bool:
    """Whether the columns fit after the labels, if the first label wraps."""
    return min_label_width(labels[0], width) + _total_width([*labels[1:], *columns]) <= width


def label_width(label: TableColumn, width: int) -> int:
    """The width of the first label: its length, at most about a third of the line."""
    return min(max(label.width, len(label.name) + PADDING), max(width // 3, min_label_width(label, width)))


def min_label_width(label: TableColumn, width: int) -> int:
    """The width of the first label if it wraps between words, at most two fifths of the line."""
    words = [word for text in (label.name, *label.cells) for word in text.split()]
    return min(max(map(len, [*words, ""])) + PADDING, 2 * width // 5)


def column_widths(columns: Sequence[TableColumn], available: int) -> list[int]:
    """Column widths: the minimum, with spare width given to names that wrap, those with most lines first."""
    widths = [column.min_width for column in columns]
    spare = available - _total_width(columns)
    while True:
        heights = [len(column.heading(width)) for column, width in zip(columns, widths, strict=True)]
        wrapped = [
            (-height, column.next_width(width) - width, index)
            for index, (column, width, height) in enumerate(zip(columns, widths, heights, strict=True))
            if height > 1
        ]
        affordable = [(extra, index) for _, extra, index in sorted(wrapped) if extra <= spare]
        if not affordable:
            return widths
        extra, index = affordable[0]
        widths[index] += extra
        spare -= extra


def _total_width(columns: Sequence[TableColumn]) -> int:
    return sum(column.width for column in columns)


def _split_group(
    group: MeasureColumns, available: int, max_available: int, max_columns: int
) -> Iterator[list[TableColumn]]:
    """The columns of a measure in as many parts as needed; sample sizes follow the measure, or come last."""
    columns, n_column = list(group.baselines), [group.n_column] if group.n_column else []
    part = [group.measure]
    if _total_width([*part, *n_column, *columns[:1]]) <= max_available:
        part += n_column
    else:
        columns += n_column
    start = len(part)
    for column in columns:
        if len(part) > start and (len(part) == max_columns or _total_width([*part, column]) > available):
            yield part
            part, start = [group.measure], 1
        part.append(column)
    yield part


@dataclass(frozen=True)
class SampleSizes:
    """Columns for the sample size n: none if n is the same everywhere, one if it differs by row, else one per measure.

    `constant` has the n of measures that differ from others but not by row: it is shown in their names.
    """

    shared_column: tuple[TableColumn, ...]
    by_measure: Mapping[str, TableColumn]
    constant: Mapping[str, int]

    @classmethod
    def from_estimates(cls, measures: Mapping[str, Estimates], rows: Sequence[int]) -> SampleSizes:
        """The sample sizes of these rows; unmeasured cells have none."""
        counts = {
            name: np.where(np.isfinite(estimates.value), estimates.n, 0)[list(rows)]
            for name, estimates in measures.items()
        }
        stacked = np.stack(list(counts.values()))
        if len(np.unique(stacked[stacked > 0])) <= 1:
            return cls((), {}, {})
        largest = stacked.max(0)
        if ((stacked == largest) | (stacked == 0)).all():
            return cls((_n_column(largest),), {}, {})
        constant = {name: int(n.max()) for name, n in counts.items() if len(np.unique(n[n > 0])) == 1}
        by_measure = {name: _n_column(n) for name, n in counts.items() if name not in constant and n.any()}
        return cls((), by_measure, constant)

    def label(self, measure: str) -> str:
        """The name of a measure, with its n if that differs from other measures but not by row."""
        return f"{measure} (n={self.constant[measure]})" if measure in self.constant else measure


def _n_column(counts: Array) -> TableColumn:
    return TableColumn("n", tuple(str(count) if count else "" for count in counts))
