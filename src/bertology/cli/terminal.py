"""Print results for people: what was asked, the tables, and what was counted, skipped or published."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bertology.cli.head_card import head_card
from bertology.cli.result_tables import MAX_ROWS, result_tables
from bertology.cli.rich_tables import MAX_MEASURES, build_table, fill_tables, format_number
from bertology.cli.table_layout import MeasureColumns, TableColumn
from bertology.errors import count_noun
from bertology.results.shapes import Curve, Head, Table, UnmeasuredShape

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from bertology.analyses.declaration import Analysis
    from bertology.analyses.presets import Preset, PublishedNumber
    from bertology.results.comparison import ModelTable
    from bertology.results.result import Result

PIPED_WIDTH = 160


def print_result(result: Result, analysis: Analysis, *, head: Head | None = None, all_rows: bool = False) -> None:
    """Print the result for people, or what it says about one head; `--json` is for programs.

    Long tables are cut unless `all_rows`; a line says so.
    """
    console = _console()
    console.print(f"{result.analysis}: {analysis.question}", style="bold")
    for line in result.headline():
        console.print(line, style="bold")
    console.print(f"{result.sample_size}. {analysis.special_tokens}")
    for line in result.describe_inputs():
        console.print(line)
    if options := result.describe_options():
        console.print(f"Options: {options}")
    tables = result_tables(result.data, console.width, all_rows)
    for part in tables if head is None else head_card(result.data, head, console.width, all_rows):
        console.print(part, style="italic" if isinstance(part, str) else "")
    for line in _footnotes(result):
        console.print(line)
    for line in _prune_lines(result) if head is None else ():
        console.print(line, soft_wrap=True)  # a broken line could not be pasted


def print_model_table(table: ModelTable, *, all_rows: bool = False) -> None:
    """Print the numbers of several models side by side, baselines dim below them; cut unless `all_rows`."""
    console = _console()
    for analysis in dict.fromkeys(row.analysis for row in table.rows):
        numbers = table.numbers(analysis)
        console.print(f"{analysis}: value [interval] of each model, baselines below", style="bold")
        shown = build_table(["measure", "", *table.models])
        shown.columns[1].justify = "left"
        for model_row, *baselines in numbers if all_rows else numbers[:MAX_ROWS]:
            shown.add_row(model_row.measure, model_row.position, *map(model_row.cell, table.models))
            for row in baselines:
                shown.add_row("", f"  {row.series}", *map(row.cell, table.models), style="dim")
        console.print(shown)
        if len(numbers) > MAX_ROWS and not all_rows:
            console.print(f"The first {MAX_ROWS} of {len(numbers)} numbers (all: --all-rows).", style="italic")
    for name in table.not_compared:
        console.print(f"{name}: not in the table, its results have no measures; see --json.")


def print_published(result: Result, preset: Preset, findings: Sequence[str]) -> None:
    """Print the published numbers of a preset beside those of the result, and further findings of the paper."""
    from bertology.analyses.presets import format_flags, published_numbers

    console = _console()
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
        here = tuple("-" if number.here is None else format_number(number.here) for number in selected)
        published = TableColumn("published", tuple(f"{number.published:.3g}" for number in selected))
        rows = tuple((number.row, number.published_row) for number in selected)
        by_rows.setdefault(rows, []).append(MeasureColumns(TableColumn(measure, here), (published,)))
    for rows, blocks in by_rows.items():
        labels = [TableColumn("", tuple(row or "(no such measure)" for row, _ in rows))]
        if any(row != published_row for row, published_row in rows):
            labels.append(TableColumn("published layer", tuple(published_row for _, published_row in rows)))
        yield from fill_tables(labels, blocks, width, MAX_MEASURES)


def _prune_lines(result: Result) -> Iterable[str]:
    """A command for each order of removal that removes the heads that can go."""
    orders = result.data.removal_orders if isinstance(result.data, Curve) else ()
    model = result.inputs.get("model", {}).get("model", {}).get("name", "MODEL")
    for order in orders:
        if order.removed:
            yield f"To remove the first {order.n_removed} by {order.name}:"
            yield f"bertology prune {model} --heads {','.join(order.removed)} -o DIR"


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


def _console() -> Console:
    """Standard output; words and intervals contain brackets, which rich would take for styles."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False, markup=False)
