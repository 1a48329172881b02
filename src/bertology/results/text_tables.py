"""Results as tables: wide records for data frames, Markdown, LaTeX, and the summary that notebooks show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from bertology.estimates.estimate import describe_intervals, estimate_text
from bertology.results.html_table import format_value, html_table
from bertology.results.measure import Measure, cell_key, describe_size, match_name
from bertology.results.measured_shape import Record
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, MeasuredShape, Table

if TYPE_CHECKING:
    from bertology.results.result import Result

MAX_CELLS = 50
"""Measures with more numbers are cut to the best ones in Markdown and LaTeX, unless the caller says how many."""
N_BEST = 3
SUMMARY_ROWS = 12
"""Rows of the summary in a notebook."""
MISSING = "–"


def frame_records(result: Result) -> list[Record]:
    """Wide records: one per number, with its interval, n and the value of each baseline in columns of their own.

    Every record of a shape with measures has the columns `layer` and `head`, empty where a number is about neither.
    """
    source = {"analysis": result.analysis, **input_names(result)}
    data = result.data
    if not isinstance(data, MeasuredShape):
        return [source | {_column_name(name, source): value for name, value in row.items()} for row in data.rows()]
    return [source | record for name in data.measures for record in _measure_records(name, data, source)]


def _measure_records(measure: str, data: MeasuredShape, source: Mapping[str, str]) -> Iterator[Record]:
    estimates, baselines = data.measures[measure], data.baselines_of(measure)
    for index in np.ndindex(*estimates.shape):
        numbers = {name: getattr(estimates, name)[index].item() for name in ("value", "low", "high", "n")}
        axes, attributes = _axis_columns(data, index)
        record = {
            "measure": measure,
            **axes,
            **numbers,
            "interval": estimates.interval,
            "unit": data.units.get(measure, ""),
        }
        for name in data.baselines:
            value = baselines[name].value[index].item() if name in baselines else np.nan
            record[_column_name(name, {**source, **record}, "baseline")] = value
        for name, value in attributes.items():
            record[_column_name(name, {**source, **record}, "row")] = value
        yield record


def _axis_columns(data: MeasuredShape, index: tuple[int, ...]) -> tuple[Record, Record]:
    """The columns that say what a number is about, and further facts about the row of a table."""
    axes: Record = {"layer": None, "head": None}
    key = cell_key(data, index)
    match data:
        case HeadGrid():
            return axes | {"layer": index[0] + 1, "head": key}, {}
        case LayerCurve():
            return axes | {"layer": key}, {}
        case Curve():
            return axes | {data.x_name: key}, {}
        case Matrix():
            return axes | {"row": data.row_names[index[0]], "column": data.column_names[index[1]]}, {}
        case Table():
            attributes: Record = {name: values[index[0]] for name, values in data.attributes.items()}
            head, layer = attributes.pop("head", None), attributes.pop("layer", None)
            if layer is None and isinstance(head, str) and re.fullmatch(r"\d+-\d+", head):
                layer = Head.parse(head)[0] + 1
            notes = {"note": data.notes.get(data.row_names[index[0]], "")} if data.notes else {}
            return {"layer": layer, "head": head, "row": key}, attributes | notes


def _column_name(name: str, taken: Mapping[str, Any], prefix: str = "item") -> str:
    """The name, or with a prefix if another column has it."""
    return f"{prefix} {name}" if name in taken else name


def input_names(result: Result) -> dict[str, str]:
    """The names of the model, of the model it is compared with, if any, and of the corpus."""
    summaries = {role: summary for role, summary in result.inputs.items() if isinstance(summary, Mapping)}
    models = {role: summaries[role].get("model", {}) for role in ("model", "against") if role in summaries}
    corpus = summaries.get("corpus") or summaries.get("model", {}).get("corpus", {})
    names = {role: str(model.get("name", "")) for role, model in models.items()}
    return {"model": "", **names, "corpus": str(corpus.get("name", ""))}


@dataclass(frozen=True)
class TextTable:
    """A table as text: groups of rows, one for each measure, below one heading."""

    caption: str
    columns: tuple[str, ...]
    groups: tuple[tuple[tuple[str, ...], ...], ...]
    n_labels: int
    """The first columns, which are text; the others are numbers."""

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The rows of all groups."""
        return [row for group in self.groups for row in group]


def text_table(result: Result, measures: Sequence[str] = (), n_best: int | None = None) -> TextTable:
    """One row per number, with its interval, n and baselines; of each measure only the `n_best`, if given.

    A measure of more than 50 numbers is cut to its 3 best, and an illustration to its first 50 rows, unless `n_best`
    says otherwise; the caption says so.
    """
    data = result.data
    names = input_names(result)
    title = f"{result.analysis}: {names['model']} on {names['corpus']}"
    policy = str(result.provenance.get("special_tokens", "")).replace("`", "")
    if not isinstance(data, MeasuredShape):
        rows = list(data.rows())
        columns = tuple(dict.fromkeys(name for row in rows for name in row))
        shown = rows[: MAX_CELLS if n_best is None else n_best]
        cut = f" The first {len(shown)} of {len(rows)} rows." if len(shown) < len(rows) else ""
        cells = tuple(tuple(format_value(row.get(name, "")) for name in columns) for row in shown)
        return TextTable(f"{title}.{cut} {policy}".strip(), columns, (cells,), len(columns))
    chosen = [match_name("measure", name, data.measures) for name in measures] or list(data.measures)
    selected = [Measure(name, data.measures[name], data) for name in chosen]
    n_cells = max(map(len, selected))
    if n_best is None and n_cells > MAX_CELLS:
        n_best = N_BEST
    baselines = [name for name, by_measure in data.baselines.items() if any(m in by_measure for m in chosen)]
    heads = data.head_attributes() if isinstance(data, Table) else {}
    labels = (
        *(("measure",) if len(chosen) > 1 else ()),
        *_axis_names(data),
        *(name.replace("_", " ") for name in heads),
    )
    intervals = describe_intervals({name: data.measures[name] for name in chosen})
    groups = tuple(tuple(_rows(measure, n_best, baselines, heads, len(chosen) > 1)) for measure in selected)
    single = f", {chosen[0]}{f' ({unit})' if (unit := selected[0].unit) else ''}" if len(chosen) == 1 else ""
    cut = ""
    if n_best is not None and n_best < n_cells:
        ends = "lowest" if all(m.low_stands_out for m in selected) else "highest"
        cut = f" The {n_best} {ends} of {describe_size(data)}{' by each measure' if len(chosen) > 1 else ''}."
    if n_best is None and isinstance(data, Table) and (empty := data.empty_rows()):
        cut = f" {len(empty)} of {describe_size(data)} were not measured and are left out."
    caption = f"{title}{single}. Value [{intervals}] and baselines.{cut} {policy}".strip()
    return TextTable(caption, (*labels, "value", "n", *baselines), groups, len(labels))


def _axis_names(data: MeasuredShape) -> tuple[str, ...]:
    match data:
        case HeadGrid():
            return ("head",)
        case LayerCurve():
            return ("layer",)
        case Curve():
            return (data.x_name,)
        case Matrix():
            return ("row", "column")
        case Table():
            return ("row",)


def _rows(
    measure: Measure,
    n_best: int | None,
    baselines: Sequence[str],
    attributes: Mapping[str, Sequence[Any]],
    with_name: bool,
) -> Iterator[tuple[str, ...]]:
    levels = measure.baselines
    row_numbers = {key: index for index, key in enumerate(measure)}
    empty = set(measure.data.empty_rows() if isinstance(measure.data, Table) else ())
    for key, estimate in measure.items() if n_best is None else measure.best(n_best).items():
        if row_numbers[key] in empty:
            continue
        names = key if isinstance(key, tuple) else (f"{key:g}" if isinstance(key, float) else str(key),)
        facts = (format_value(values[row_numbers[key]]) for values in attributes.values())
        compared = (estimate_text(levels[name][key], MISSING) if name in levels else "" for name in baselines)
        label = (measure.name,) if with_name else ()
        yield (*label, *names, *facts, estimate_text(estimate, MISSING), str(estimate.n or ""), *compared)


def to_markdown(table: TextTable) -> str:
    """A pipe table with its caption below the rows."""
    aligned = ("---" if index < table.n_labels else "---:" for index in range(len(table.columns)))
    lines = [table.columns, tuple(aligned), *table.rows]
    escaped = [[cell if index == 1 else _escape_markdown(cell) for cell in line] for index, line in enumerate(lines)]
    return "\n".join(["| " + " | ".join(line) + " |" for line in escaped] + ["", _escape_markdown(table.caption)])


def _escape_markdown(text: str) -> str:
    """The text as it is: no emphasis, links, code, HTML or further columns."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(text.split()))


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "–": "--", "²": r"\textsuperscript{2}", "×": r"$\times$",
}  # fmt: skip


def escape_latex(text: str) -> str:
    """The text for LaTeX: its special characters escaped, a minus sign before negative numbers."""
    escaped = "".join(_LATEX.get(character, character) for character in " ".join(text.split()))
    return re.sub(r"(?<![\w)])-(?=\d)", "$-$", escaped)


def to_latex(table: TextTable, caption: str | None, label: str) -> str:
    """A `table` environment for the package booktabs, with its caption and label."""
    alignment = "l" * table.n_labels + "r" * (len(table.columns) - table.n_labels)
    lines = [_latex_row(table.columns), r"\midrule"]
    for number, group in enumerate(table.groups):
        lines += [r"\addlinespace"] if number else []
        for index, row in enumerate(group):
            is_repeated = table.columns[0] in {"analysis", "measure"} and index  # named once for its group
            lines.append(_latex_row(("", *row[1:]) if is_repeated else row))
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escape_latex(table.caption if caption is None else caption)}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{{alignment}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _latex_row(cells: Sequence[str]) -> str:
    # LaTeX would take a bracket at the start of a row for the argument of the \\ before it.
    first, *others = map(escape_latex, cells)
    return " & ".join([f"{{{first}}}" if first.startswith(("[", "*")) else first, *others]) + r" \\"


def summary_html(result: Result) -> str:
    """What a notebook shows: the first lines, the best numbers of each measure, and the figure."""
    n_measures = len(result.data.measures) if isinstance(result.data, MeasuredShape) else 1
    n_best = max(1, min(N_BEST, SUMMARY_ROWS // n_measures)) if n_measures > 1 else SUMMARY_ROWS
    table = text_table(result, n_best=n_best)
    rows = table.rows[:SUMMARY_ROWS]
    cut = f" The first {len(rows)} of {len(table.rows)} rows." if len(rows) < len(table.rows) else ""
    return str(
        Markup("<div>{}{}<p>{}</p><div style='overflow-x:auto'>{}</div></div>").format(
            Markup("").join(Markup("<p>{}</p>").format(line) for line in repr(result).splitlines()),
            html_table([dict(zip(table.columns, row, strict=True)) for row in rows]),
            escape(f"{table.caption}{cut} All numbers: to_pandas()."),
            Markup(result.figure().svg),
        )
    )
