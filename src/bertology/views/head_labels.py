"""Labels of heads: from the user, or from results of analyses that declare `labels_heads`, with their evidence.

A result labels a head only if the head's score meets the criterion that the analysis declares: a share of attention or
an accuracy, and a distance from the highest baseline. The score goes with the label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bertology.analyses import registry
from bertology.analyses.label_criteria import MIN_CHOSEN, HeadLabelling
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate, Estimates
from bertology.number_ranges import parse_whole_number
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, Table
from bertology.views.payload import HeadLabel
from bertology.views.relation_names import function_name, relation_name

SIGNIFICANCE_LEVEL = "significance level"
"""The baseline of a measure of p values: rows with a larger p value are not significant."""
MAX_LISTED_HEADS = 12
DIGITS = 4


def labels_from_user(labels: Mapping[str, str], layers: int, heads: int) -> list[HeadLabel]:
    """Labels by head (`layer-head`, counted from 1), with evidence in brackets."""
    return [_parse_label(name, text, layers, heads) for name, text in labels.items()]


def _parse_label(name: str, text: str, layers: int, heads: int) -> HeadLabel:
    layer, dash, head = name.partition("-")
    valid = dash and 1 <= (parse_whole_number(layer) or 0) <= layers and 1 <= (parse_whole_number(head) or 0) <= heads
    if not valid:
        raise Refusal(f"{name!r} is not a head", f"1-1 to {layers}-{heads}", "Write the head of a label as layer-head")
    label, _, evidence = text.partition(" (")
    return HeadLabel(layer=int(layer) - 1, head=int(head) - 1, label=label, evidence=evidence.removesuffix(")"))


def labels_from_results(results: Sequence[Result], layers: int, heads: int) -> list[HeadLabel]:
    """The labels of all results that label heads, by head, and for one head by the declared rank of the analysis.

    Of equal labels of a head, that of the first rank stays; labels of one analysis are in the order of their effect.
    """
    labelling = [(declared.rank, result) for result in results if (declared := head_labelling(result))]
    ranked = [result for _, result in sorted(labelling, key=lambda entry: entry[0])]
    labels: dict[tuple[int, int, str], HeadLabel] = {}
    for result in ranked:
        for label in sorted(_result_labels(result, layers, heads), key=lambda label: -(label.effect or 0)):
            labels.setdefault((label.layer, label.head, label.label), label)
    return sorted(labels.values(), key=lambda label: (label.layer, label.head))


def head_labelling(result: Result) -> HeadLabelling | None:
    """The rank and criteria that the analysis of the result declares; None if the result does not label heads."""
    analysis = registry.find(result.analysis)
    if not isinstance(result.data, HeadGrid | Table) or analysis is None:
        return None
    if isinstance(result.data, Table) and "head" not in result.data.attributes:
        return None
    return analysis.labels_heads


def labelling_analyses() -> list[str]:
    """The names of all analyses whose results label heads, by rank."""
    declared = [(a.labels_heads.rank, a.name) for a in registry.load_all() if a.labels_heads]
    return [name for _, name in sorted(declared)]


def labelling_note(results: Sequence[Result], labels: Sequence[HeadLabel], n_heads: int) -> str:
    """Which heads the results label, and the criteria of their analyses."""
    declared = {result.analysis: labelling for result in results if (labelling := head_labelling(result))}
    heads = sorted({Head(label.layer, label.head) for label in labels})
    names = ", ".join([*map(str, heads[:MAX_LISTED_HEADS]), *["..."] * (len(heads) > MAX_LISTED_HEADS)])
    criteria = " | ".join(f"{name}: {labelling.summary}" for name, labelling in declared.items())
    listed = f" ({names})" if names else ""
    return (
        f"{len(heads)} of {n_heads} heads are labelled{listed}. A label needs an interval above those of all baselines "
        f"and a score of: {criteria}."
    )


def _result_labels(result: Result, layers: int, heads: int) -> Iterator[HeadLabel]:
    data, labelling = result.data, head_labelling(result)
    if labelling is None:
        return
    analysis = registry.find(result.analysis)
    labels = (
        _grid_labels(data, labelling)
        if isinstance(data, HeadGrid)
        else _table_labels(data, labelling)
        if isinstance(data, Table)
        else ()
    )
    for head, label, score, baselines in labels:
        if head[0] >= layers or head[1] >= heads:
            raise Refusal(
                f"{result.analysis} has a head {head}, the model {layers} layers with {heads} heads",
                "a result of the model shown",
                "Run the analysis on that model",
            )
        compared = [value.value for name, value in baselines.items() if name not in labelling.ignored_baselines]
        yield HeadLabel(
            layer=head[0],
            head=head[1],
            label=label,
            evidence=f"{_format_evidence(score, baselines)}; {result.analysis}",
            score=round(score.value, DIGITS),
            effect=round(score.value - max(compared), DIGITS),
            citations=list(analysis.citations) if analysis else [],
        )


_LabelledHead = tuple[Head, str, Estimate, dict[str, Estimate]]
"""Head, label, score and baselines."""


def _grid_labels(grid: HeadGrid, labelling: HeadLabelling) -> Iterator[_LabelledHead]:
    """For each head the measure with the largest margin over all its baselines, of those that meet their criterion."""
    shape = next(iter(grid.measures.values())).shape
    for layer, index in np.ndindex(shape):
        head = Head(layer, index)
        candidates: list[tuple[float, str]] = []
        for name, estimates in grid.measures.items():
            score: Estimate = estimates[head]
            baselines = _estimates_at(grid.baselines_of(name), head)
            if labelling.is_met((name,), score, baselines):
                candidates.append((score.low - max(baseline.high for baseline in baselines.values()), name))
        if candidates:
            _, label = max(candidates)
            score = grid.measures[label][head]
            yield head, label, score, _estimates_at(grid.baselines_of(label), head)


def _table_labels(table: Table, labelling: HeadLabelling) -> Iterator[_LabelledHead]:
    """Rows with a head: its function if the table has functions, else the row's name and direction."""
    measure, scores = next(iter(table.measures.items()))
    for row, name in enumerate(table.row_names):
        head, function = table.attribute("head", row), table.attribute("function", row)
        baselines = _estimates_at(table.baselines_of(measure), row)
        if not head or ("function" in table.attributes and not function):
            continue
        kinds = [str(kind) for kind in (table.attribute("function_kind", row), function, name) if kind]
        if labelling.is_met(kinds, scores[row], baselines) and _is_significant(table, row) and _is_stable(table, row):
            direction = table.attribute("direction", row)
            named = relation_name(name, str(direction)) if direction else name
            label = function_name(str(function)) if function else named
            yield Head.parse(str(head)), label, scores[row], baselines


def _is_stable(table: Table, row: int) -> bool:
    """Whether the head of the row was the selected one in enough of the splits, if it was selected in several."""
    chosen_in = table.attribute("chosen_in", row)
    return chosen_in is None or float(chosen_in) >= MIN_CHOSEN


def _is_significant(table: Table, row: int) -> bool:
    """Whether all p values of the row that have a significance level are at most that level."""
    levels = table.baselines.get(SIGNIFICANCE_LEVEL, {})
    return all(table.measures[name].value[row] <= level.value[row] for name, level in levels.items())


def _estimates_at(baselines: Mapping[str, Estimates], index: int | Head) -> dict[str, Estimate]:
    return {name: estimates[index] for name, estimates in baselines.items()}


def _format_evidence(score: Estimate, baselines: Mapping[str, Estimate]) -> str:
    values = ", ".join(f"{name} {_percentage(baseline.value)}" for name, baseline in baselines.items())
    interval = "" if score.interval == "exact" else f" [{100 * score.low:.3g}, {100 * score.high:.3g}]"
    return f"{_percentage(score.value)}{interval}, n = {score.n}; {values}"


def _percentage(value: float) -> str:
    return f"{100 * value:.3g} %"
