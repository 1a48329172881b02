"""Compare a model with a series of others, such as the checkpoints of a training run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bertology.analyses.run import Request, RunInputs, run_all, with_partner
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.progress import MessageCallback, ProgressFactory
from bertology.results.result import Result
from bertology.results.results import Results, unique_names
from bertology.results.shapes import LayerCurve, Matrix


def run_against_all(
    requests: Sequence[Request],
    inputs: RunInputs,
    partners: Iterable[Any],
    *,
    progress: ProgressFactory | None = None,
    notify: MessageCallback | None = None,
) -> list[Result | Results[Result]]:
    """Run the analyses against each of the partners: one result, or results by partner, for each analysis.

    Layer curves become a matrix of partners by layers. Partners are used one at a time, so that they may be loaded
    lazily.
    """
    for analysis, _ in requests:
        if "against" not in analysis.inputs:
            raise Refusal(
                f"{analysis.name} analyses one model, and several models were given with --against",
                "an analysis that compares two models",
                "Remove --against; `bertology list analyses` lists the analyses that compare models",
            )
    names: list[str] = []
    by_partner: list[list[Result]] = []
    for partner in partners:
        paired = with_partner(inputs, partner)
        names.append(paired.model_names["against"])
        report = run_all(requests, paired, progress=progress, notify=notify, raise_refusals=True)
        by_partner.append(report.results())
    if not names:
        raise Refusal("The list of models to compare with is empty", "at least one model", "Name one with --against")
    names = unique_names(names)
    return [_merge(names, [results[index] for results in by_partner]) for index in range(len(requests))]


def _merge(names: Sequence[str], results: Sequence[Result]) -> Result | Results[Result]:
    """Layer curves of the same length as one matrix; other results by name."""
    curves = [result.data for result in results if isinstance(result.data, LayerCurve)]
    if len(curves) < len(results):
        return Results(dict(zip(names, results, strict=True)), "model")
    data, n = _build_matrix(names, curves), max(result.n for result in results)
    return results[0].model_copy(update={"data": data, "inputs": _merge_inputs(names, results), "n": n})


def _build_matrix(names: Sequence[str], curves: Sequence[LayerCurve]) -> Matrix:
    first = curves[0]

    def stack(estimates_by_model: Sequence[Mapping[str, Estimates]]) -> dict[str, Estimates]:
        return {name: Estimates.stack([part[name] for part in estimates_by_model]) for name in estimates_by_model[0]}

    layers = next(iter(first.measures.values())).shape[0]
    return Matrix(
        measures=stack([curve.measures for curve in curves]),
        baselines={name: stack([curve.baselines[name] for curve in curves]) for name in first.baselines},
        units=first.units,
        row_names=tuple(names),
        column_names=tuple(f"layer {layer + first.first_layer}" for layer in range(layers)),
    )


def _merge_inputs(names: Sequence[str], results: Sequence[Result]) -> dict[str, Any]:
    inputs = {role: summary for role, summary in results[0].inputs.items() if role != "against"}
    return inputs | {f"against {name}": each.inputs["against"] for name, each in zip(names, results, strict=True)}
