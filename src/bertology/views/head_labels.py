"""Labels of heads: from the user, or from results of analyses that declare `labels_heads`, with their evidence.

A result labels a head only if the interval of the head's score lies above the intervals of all baselines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bertology.analyses import registry
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, Table
from bertology.views.payload import HeadLabel

SIGNIFICANCE_LEVEL = "significance level"
"""The baseline of a measure of p values: rows with a larger p value are not significant."""


def labels_from_user(labels: Mapping[str, str], layers: int, heads: int) -> list[HeadLabel]:
    """Labels by head (`layer-head`, counted from 1), with evidence in brackets."""
    return [_parse_label(name, text, layers, heads) for name, text in labels.items()]


def _parse_label(name: str, text: str, layers: int, heads: int) -> HeadLabel:
    layer, dash, head = name.partition("-")
    valid = dash and layer.isdigit() and head.isdigit() and 1 <= int(layer) <= layers and 1 <= int(head) <= heads
    if not valid:
        raise Refusal(f"{name!r} is not a head", f"1-1 to {layers}-{heads}", "Write the head of a label as layer-head")
    label, _, evidence = text.partition(" (")
    return HeadLabel(layer=int(layer) - 1, head=int(head) - 1, label=label, evidence=evidence.removesuffix(")"))


def labels_from_results(results: Sequence[Result], layers: int, heads: int) -> list[HeadLabel]:
    """The labels of all results that label heads, by head, and for one head by the declared rank of the analysis."""
    ranked = sorted(results, key=lambda result: label_rank(result))
    labels = [label for result in ranked for label in _result_labels(result, layers, heads)]
    return sorted(labels, key=lambda label: (label.layer, label.head))


def label_rank(result: Result) -> int:
    """The rank declared by the analysis of the result, from 1; 0 if the result does not label heads."""
    if not isinstance(result.data, HeadGrid | Table) or result.analysis not in registry.names():
        return 0
    if isinstance(result.data, Table) and "head" not in result.data.attributes:
        return 0
    return registry.get(result.analysis).labels_heads


def labelling_analyses() -> list[str]:
    """The names of all analyses whose results label heads, by rank."""
    declared = [analysis for analysis in registry.load_all() if analysis.labels_heads]
    return [analysis.name for analysis in sorted(declared, key=lambda analysis: analysis.labels_heads)]


def _result_labels(result: Result, layers: int, heads: int) -> Iterator[HeadLabel]:
    data = result.data
    labels = (
        _grid_labels(data) if isinstance(data, HeadGrid) else _table_labels(data) if isinstance(data, Table) else ()
    )
    for head, label, evidence in labels:
        if head[0] >= layers or head[1] >= heads:
            raise Refusal(
                f"{result.analysis} has a head {head}, the model {layers} layers with {heads} heads",
                "a result of the model shown",
                "Run the analysis on that model",
            )
        yield HeadLabel(layer=head[0], head=head[1], label=label, evidence=f"{evidence}; {result.analysis}")


def _grid_labels(grid: HeadGrid) -> Iterator[tuple[Head, str, str]]:
    """For each head the measure with the largest margin over all its baselines."""
    shape = next(iter(grid.measures.values())).shape
    for layer, index in np.ndindex(shape):
        head = Head(layer, index)
        candidates: list[tuple[float, str, str]] = []
        for name, estimates in grid.measures.items():
            score: Estimate = estimates[head]
            baselines = _estimates_at(grid.baselines_of(name), head)
            if _above_baselines(score, baselines):
                margin = score.low - max(baseline.high for baseline in baselines.values())
                candidates.append((margin, name, _format_evidence(score, baselines)))
        if candidates:
            _, label, evidence = max(candidates)
            yield head, label, evidence


def _table_labels(table: Table) -> Iterator[tuple[Head, str, str]]:
    """Rows with a head: its function if the table has functions, else the row's name and direction."""
    measure, scores = next(iter(table.measures.items()))
    for row, name in enumerate(table.row_names):
        head, function = table.attribute("head", row), table.attribute("function", row)
        baselines = _estimates_at(table.baselines_of(measure), row)
        if not head or ("function" in table.attributes and not function):
            continue
        if _above_baselines(scores[row], baselines) and _is_significant(table, row):
            direction = table.attribute("direction", row)
            label = str(function) if function else f"{name}, {direction}" if direction else name
            yield Head.parse(str(head)), label, f"{measure} {_format_evidence(scores[row], baselines)}"


def _is_significant(table: Table, row: int) -> bool:
    """Whether all p values of the row that have a significance level are at most that level."""
    levels = table.baselines.get(SIGNIFICANCE_LEVEL, {})
    return all(table.measures[name].value[row] <= level.value[row] for name, level in levels.items())


def _estimates_at(baselines: Mapping[str, Estimates], index: int | Head) -> dict[str, Estimate]:
    return {name: estimates[index] for name, estimates in baselines.items()}


def _above_baselines(score: Estimate, baselines: Mapping[str, Estimate]) -> bool:
    return bool(baselines) and all(score.clearly_above(baseline) for baseline in baselines.values())


def _format_evidence(score: Estimate, baselines: Mapping[str, Estimate]) -> str:
    values = ", ".join(f"{name} {baseline.value:.3g}" for name, baseline in baselines.items())
    return f"{score}, n = {score.n}; {values}"
