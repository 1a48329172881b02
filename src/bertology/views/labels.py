"""What heads do, shown in place: labels that a user gives, or those analyses found, each with its evidence.

A head is labelled by an analysis only where the interval of its score lies above those of all baselines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from bertology.errors import Refusal
from bertology.results.estimate import Estimate
from bertology.results.result import Result
from bertology.results.shapes import Baselines, Head, HeadGrid, Table
from bertology.views.payload import HeadLabel

_HEAD = re.compile(r"\d+-\d+")
_CHOSEN = re.compile(r"held out (\d+-\d+) ?([^;]*)")
LABELLING = ("heads/functions", "heads/dependency", "heads/coreference", "heads/roles", "attention/patterns")
"""Analyses whose score says that a head does something, not how much of something it has; the surest first."""


def given_labels(labels: Mapping[str, str], layers: int, heads: int) -> list[HeadLabel]:
    """Labels by head, `layer-head` from 1, with the evidence in brackets."""
    return [_given(name, text, layers, heads) for name, text in labels.items()]


def _given(name: str, text: str, layers: int, heads: int) -> HeadLabel:
    layer, dash, head = name.partition("-")
    inside = dash and layer.isdigit() and head.isdigit() and 1 <= int(layer) <= layers and 1 <= int(head) <= heads
    if not inside:
        raise Refusal(f"{name!r} names no head", f"1-1 to {layers}-{heads}", "Write a label's head as layer-head")
    label, _, evidence = text.partition(" (")
    return HeadLabel(layer=int(layer) - 1, head=int(head) - 1, label=label, evidence=evidence.removesuffix(")"))


def found_labels(results: Sequence[Result], layers: int, heads: int) -> list[HeadLabel]:
    """The labels of all results that label heads, in the order of heads."""
    surest = sorted(results, key=lambda result: LABELLING.index(result.analysis))
    found = [label for result in surest for label in _of_result(result, layers, heads)]
    return sorted(found, key=lambda one: (one.layer, one.head))


def labels_heads(result: Result) -> bool:
    """Whether its numbers say what heads do."""
    return result.analysis in LABELLING and isinstance(result.data, HeadGrid | Table)


def _of_result(result: Result, layers: int, heads: int) -> Iterator[HeadLabel]:
    found = _of_grid(result.data) if isinstance(result.data, HeadGrid) else _of_table(result)
    for head, label, evidence in found:
        if head[0] >= layers or head[1] >= heads:
            raise Refusal(
                f"{result.analysis} speaks of head {head}, the view has {layers} layers of {heads} heads",
                "a result of the model that is shown",
                "Run the analysis on that model",
            )
        yield HeadLabel(layer=head[0], head=head[1], label=label, evidence=f"{evidence}; {result.analysis}")


def _of_grid(grid: HeadGrid) -> Iterator[tuple[Head, str, str]]:
    """For each head the measure that stands furthest above all of its baselines."""
    shape = next(iter(grid.measures.values())).shape
    for place in np.ndindex(shape):
        head = Head(*place)
        found: list[tuple[float, str, str]] = []
        for name, estimates in grid.measures.items():
            beside: dict[str, Estimate] = {b: m[name][head] for b, m in grid.baselines.items() if name in m}
            own: Estimate = estimates[head]
            if _stands_out(own, beside):
                margin = own.low - max(chance.high for chance in beside.values())
                found.append((margin, name, _evidence(own, beside)))
        if found:
            _, label, evidence = max(found)
            yield head, label, evidence


def _of_table(result: Result) -> Iterator[tuple[Head, str, str]]:
    """Rows that are heads, with their function first in the note, or rows whose note names the head held out."""
    table = result.data
    assert isinstance(table, Table), "labels_heads says so"
    measure = next(iter(table.measures))
    for row, name in enumerate(table.rows_named):
        note = table.notes.get(name, "")
        own: Estimate = table.measures[measure][row]
        beside = _baselines(table.baselines, measure, row)
        if not _stands_out(own, beside) or _untested(table, row):
            continue
        chosen = _CHOSEN.match(note)
        if chosen:
            direction = f", {chosen[2].strip()}" if chosen[2].strip() else ""
            yield Head.parse(chosen[1]), f"{name}{direction}", f"{measure} {_evidence(own, beside)}"
        elif _HEAD.fullmatch(name) and ": " in note and not note.startswith("no "):
            yield Head.parse(name), note.partition(" | ")[0], f"{measure} {_evidence(own, beside)}"


def _untested(table: Table, row: int) -> bool:
    """Whether the table has a test of its rows, corrected for their number, that this one does not pass."""
    level = table.baselines.get("level", {}).get("p")
    return level is not None and not table.measures["p"].value[row] <= level.value[row]


def _baselines(baselines: Baselines, measure: str, row: int) -> dict[str, Estimate]:
    return {name: measures[measure][row] for name, measures in baselines.items() if measure in measures}


def _stands_out(own: Estimate, beside: Mapping[str, Estimate]) -> bool:
    return bool(beside) and all(own.clearly_above(chance) for chance in beside.values())


def _evidence(own: Estimate, beside: Mapping[str, Estimate]) -> str:
    return f"{own}, n = {own.n}; {', '.join(f'{name} {chance.value:.3g}' for name, chance in beside.items())}"
