"""What heads do, shown in place: labels that a user gives, or those an analysis found, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from bertology.errors import Refusal
from bertology.results.estimate import Estimate
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid
from bertology.views.payload import HeadLabel

Labels = Mapping[str, str] | Result


def head_labels(labels: Labels, layers: int, heads: int) -> list[HeadLabel]:
    """Labels by head, `layer-head` from 1 with the evidence in brackets, or the measures of a result by head."""
    if isinstance(labels, Result):
        return list(_of_result(labels, layers, heads))
    return [_given(name, text, layers, heads) for name, text in labels.items()]


def _given(name: str, text: str, layers: int, heads: int) -> HeadLabel:
    layer, dash, head = name.partition("-")
    inside = dash and layer.isdigit() and head.isdigit() and 1 <= int(layer) <= layers and 1 <= int(head) <= heads
    if not inside:
        raise Refusal(f"{name!r} names no head", f"1-1 to {layers}-{heads}", "Write a label's head as layer-head")
    label, _, evidence = text.partition(" (")
    return HeadLabel(layer=int(layer) - 1, head=int(head) - 1, label=label, evidence=evidence.removesuffix(")"))


def _of_result(result: Result, layers: int, heads: int) -> Iterator[HeadLabel]:
    """For each head the measure that stands furthest above all of its baselines, where its whole interval does."""
    grid = result.data
    if not isinstance(grid, HeadGrid):
        raise Refusal(
            f"{result.analysis} gives a {grid.shape}, which does not label heads",
            "a result with a number for each head, such as that of attention/patterns",
            "Give such a result, or labels of your own: {'3-5': 'previous token'}",
        )
    shape = next(iter(grid.measures.values())).shape
    if shape != (layers, heads):
        raise Refusal(
            f"{result.analysis} measured {shape[0]} layers of {shape[1]} heads, the view has {layers} of {heads}",
            "a result of the model that is shown",
            "Run the analysis on that model",
        )
    for place in np.ndindex(shape):
        found = [one for name in grid.measures if (one := _margin(grid, name, Head(*place))) is not None]
        if found:
            _, label, evidence = max(found)
            yield HeadLabel(layer=place[0], head=place[1], label=label, evidence=f"{evidence}; {result.analysis}")


def _margin(grid: HeadGrid, name: str, head: Head) -> tuple[float, str, str] | None:
    """How far the measure's interval lies above the highest of its baselines; None where it does not."""
    own: Estimate = grid.measures[name][head]
    beside: dict[str, Estimate] = {b: m[name][head] for b, m in grid.baselines.items() if name in m}
    if not beside or not all(own.clearly_above(chance) for chance in beside.values()):
        return None
    highest = max(chance.high for chance in beside.values())
    chances = ", ".join(f"{chance} {estimate.value:.3g}" for chance, estimate in beside.items())
    return own.low - highest, name, f"{own}, n = {own.n}; {chances}"
