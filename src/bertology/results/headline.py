"""What to read first in a result: the score before an intervention, what its removals cost, and which stand out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bertology.errors import count_noun
from bertology.estimates.estimate import Estimate
from bertology.results.measured_shape import ReferenceScore, RemovalCosts
from bertology.results.shapes import (
    Curve,
    Head,
    HeadGrid,
    LayerCurve,
    MeasuredShape,
    RemovalOrder,
    Shape,
    Table,
    UnmeasuredShape,
)

N_PER_END = 3
MAX_NAMES = 10
"""Longer lists of parts that stand out are cut."""


@dataclass(frozen=True)
class Removal:
    """What removing one part costs; the p value is NaN, and the score None, if it was not measured."""

    name: str
    loss: Estimate
    score: Estimate | None
    p_value: float

    def describe(self, metric: str) -> str:
        """The part with its change in loss, p value and change in score."""
        p = "" if np.isnan(self.p_value) else f", {format_p(self.p_value)}"
        score = "" if self.score is None else f"; {metric} {format_change(self.score)}"
        return f"{self.name} ({format_change(self.loss)}{p}{score})"


def headline(data: Shape) -> list[str]:
    """The first lines of a result; none if it has no score that others are compared with."""
    if isinstance(data, UnmeasuredShape):
        return []
    lines = [data.describe_reference()]
    if data.reference is not None:
        lines.append(_describe_score(data.reference))
    if data.costs is not None:
        lines += _describe_costs(data.costs, removals(data), data.units)
    if isinstance(data, Curve):
        lines += map(_describe_order, data.removal_orders)
    return [line for line in lines if line]


def removals(data: MeasuredShape) -> list[Removal]:
    """What each removal costs, the most costly first; none if the shape has no `costs`."""
    return sorted(_removals(data), key=lambda removal: -removal.loss.value) if data.costs is not None else []


def _removals(data: MeasuredShape) -> Iterator[Removal]:
    assert data.costs is not None, "only interventions have costs"
    for operation, measures in data.costs.operations.items():
        loss = data.measures[measures.loss]
        for index in np.argwhere(np.isfinite(loss.value)).tolist():
            cell = tuple(index)
            yield Removal(
                f"{operation} {_part_name(data, cell)}".strip(),
                loss[cell],
                data.measures[measures.score][cell] if measures.score else None,
                float(data.measures[measures.p_value].value[cell]) if measures.p_value else np.nan,
            )


def _part_name(data: MeasuredShape, cell: tuple[int, ...]) -> str:
    match data:
        case HeadGrid():
            return str(Head(*cell))
        case LayerCurve():
            return f"layer {cell[0] + data.first_layer}"
        case Table():
            return data.row_names[cell[0]]
        case _:
            return ", ".join(map(str, cell))


def _describe_score(reference: ReferenceScore) -> str:
    score, baseline = reference.score[()], reference.baseline_score[()]
    name = reference.metric[:1].upper() + reference.metric[1:]
    return f"{name} of {reference.name}: {score} (n = {score.n}); {reference.baseline}: {baseline}."


def _describe_costs(costs: RemovalCosts, ranked: Sequence[Removal], units: Mapping[str, str]) -> list[str]:
    if not ranked:
        return []
    loss = next(iter(costs.operations.values())).loss
    unit = ", ".join(filter(None, ["change in loss", units.get(loss)]))
    n_most = min(N_PER_END, (len(ranked) + 1) // 2)
    n_least = min(N_PER_END, len(ranked) - n_most)
    most, least = ranked[:n_most], ranked[::-1][:n_least]
    lines = [f"Highest cost ({unit}): {'; '.join(r.describe(costs.metric) for r in most)}."]
    if least:
        lines.append(f"Lowest cost: {'; '.join(r.describe(costs.metric) for r in least)}.")
    return [*lines, _describe_outstanding(costs, ranked)]


def _describe_outstanding(costs: RemovalCosts, ranked: Sequence[Removal]) -> str:
    """Which parts the model needs, and which do harm, after the correction for all comparisons."""
    n_tested = sum(np.isfinite(removal.p_value) for removal in ranked)
    if not n_tested:
        return ""
    significant = [removal for removal in ranked if removal.p_value < costs.significance_level]
    correction = f"Holm's correction for {count_noun(n_tested, 'comparisons')} (p < {costs.significance_level:g})"
    if not significant:
        return f"No {costs.part} stands out after {correction}."
    needed, harmful = ([r.name for r in significant if (r.loss.value > 0) is sign] for sign in (True, False))
    return f"After {correction}, needed: {_join(needed)}; better without: {_join(harmful)}."


def _describe_order(order: RemovalOrder) -> str:
    """The first and last heads of an order of removal, and how many can go."""
    first, last = order.heads[:N_PER_END], order.heads[::-1][:N_PER_END]
    return (
        f"Order by {order.name}: first to go {', '.join(first)}; last {', '.join(last)}; {order.n_removed} of "
        f"{count_noun(len(order.heads), 'heads')} can go ({order.criterion})."
    )


def _join(names: Sequence[str]) -> str:
    rest = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return (", ".join(names[:MAX_NAMES]) or "none") + rest


def format_change(change: Estimate) -> str:
    """A change with its sign and interval."""
    return f"+{change}" if change.value > 0 else str(change)


def format_p(p: float) -> str:
    """A p value; those below 0.001 are not written out."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"
