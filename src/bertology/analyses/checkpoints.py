"""Compare a model with a series of others, such as the checkpoints of a training run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertology.analyses.declaration import Analysis
from bertology.analyses.run import NotifyFunction, ProgressFactory, RunInputs, run_analysis
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import LayerCurve, Matrix


def run_checkpoints(
    analysis: Analysis,
    inputs: RunInputs,
    names: Sequence[str],
    further_encoders: Iterable[Encoder],
    options: Mapping[str, Any],
    *,
    progress: ProgressFactory | None = None,
    notify: NotifyFunction | None = None,
) -> Result:
    """Run the analysis against `inputs.against` and each further encoder; `names` are the names of all of them.

    Layer curves become a matrix of models by layers. Encoders are used one at a time, so that `further_encoders` may
    load them lazily.
    """
    if "against" not in analysis.inputs:
        raise Refusal(
            f"{analysis.name} analyses one model, and {len(names)} models were given with --against",
            "an analysis that compares two models",
            "Remove --against; `bertology list analyses` lists the analyses that compare models",
        )
    results = [run_analysis(analysis, inputs, options, progress=progress, notify=notify)]
    _require_layer_curve(analysis, results[0])
    results += [
        run_analysis(analysis, replace(inputs, against=encoder), options, progress=progress, notify=notify)
        for encoder in further_encoders
    ]
    data, n = _build_matrix(names, results), max(result.n for result in results)
    return results[0].model_copy(update={"data": data, "inputs": _merge_inputs(names, results), "n": n})


def _require_layer_curve(analysis: Analysis, result: Result) -> None:
    if not isinstance(result.data, LayerCurve):
        raise Refusal(
            f"With several --against models the result must be one value per layer; {analysis.name} gave a "
            f"{result.data.shape}",
            "a LayerCurve, or one --against model",
            "Add --show layers if the analysis has it, or name one model",
        )


def _build_matrix(names: Sequence[str], results: Sequence[Result]) -> Matrix:
    curves = [result.data for result in results if isinstance(result.data, LayerCurve)]
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
