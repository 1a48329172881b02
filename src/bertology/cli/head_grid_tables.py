"""Numbers of all heads as tables: means by layer, the head that stands out by each measure, a row for each head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import FloatArray
from bertology.cli.rich_tables import MAX_COLUMNS, MAX_MEASURES, fill_tables, format_mean, measure_columns
from bertology.cli.table_layout import MeasureColumns, TableColumn
from bertology.estimates.estimate import Estimates, describe_intervals
from bertology.results.result import sample_sizes
from bertology.results.shapes import Head, HeadGrid, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable


def layer_means(grid: HeadGrid, width: int) -> Iterable[RichTable | str]:
    """Means over heads by layer, in as many tables as the width needs."""
    layers = [str(layer + 1) for layer in range(len(next(iter(grid.measures.values())).value))]
    blocks: list[MeasureColumns] = []
    for name, estimates in grid.measures.items():
        baselines = (b[name].value if name in b else np.nan for b in grid.baselines.values())
        blocks.append(MeasureColumns(TableColumn(name, tuple(map(format_mean, (*estimates.value, *baselines))))))
    yield "Mean over heads, by layer"
    labels = [TableColumn("layer", (*layers, *grid.baselines))]
    yield from fill_tables(labels, blocks, width, MAX_MEASURES, n_measured_rows=len(layers))
    for baseline, by_measure in grid.baselines.items():
        # A baseline such as the attention weights alone has its own value in every layer: the mean above hides it.
        varying = {
            name: estimates.value
            for name, estimates in by_measure.items()
            if _varies(estimates.value, grid.measures[name].value)
        }
        if varying:
            columns = {name: TableColumn(name, tuple(map(format_mean, values))) for name, values in varying.items()}
            yield f"Baseline, mean over heads, by layer: {baseline}"
            labels = [TableColumn("layer", tuple(layers))]
            yield from fill_tables(labels, list(map(MeasureColumns, columns.values())), width, MAX_MEASURES)


def _varies(baseline: FloatArray, measure: FloatArray) -> bool:
    """Whether a baseline's means over heads differ between layers, by more than a tenth of what the model's do."""
    return _range_of_means(baseline) > max(5e-4, 0.1 * _range_of_means(measure))


def _range_of_means(values: FloatArray) -> float:
    means = [float(np.nanmean(layer)) for layer in values if np.isfinite(layer).any()]
    return max(means) - min(means) if means else 0.0


def highest_heads(grid: HeadGrid, width: int) -> Iterable[RichTable | str]:
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
    columns = measure_columns(values, baselines, intervals, len(sample_sizes(grid)) > 1)
    yield from fill_tables(labels, [columns], width, MAX_COLUMNS)


def _format_head(values: FloatArray, head: Head | None) -> str:
    """The name of a head, and how many others have the same value."""
    if head is None:
        return "all equal"
    n_others = int((values == values[head]).sum()) - 1
    return f"{head} and {n_others} more" if n_others else str(head)


def heads_as_table(grid: HeadGrid) -> Table:
    """The same numbers with a row for each head."""

    def flatten(measures: Mapping[str, Estimates]) -> dict[str, Estimates]:
        return {name: Estimates.concatenate([e[layer] for layer in range(e.shape[0])]) for name, e in measures.items()}

    shape = next(iter(grid.measures.values())).shape
    return Table(
        measures=flatten(grid.measures),
        baselines={name: flatten(measures) for name, measures in grid.baselines.items()},
        row_names=tuple(str(Head(*index)) for index in np.ndindex(*shape)),
    )
