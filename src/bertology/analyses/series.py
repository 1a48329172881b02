"""One comparison against a series of models, such as the checkpoints of a training run: each curve over the series."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bertology.analyses.declaration import Analysis
from bertology.analyses.run import Announce, Subject, run
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.recording.recorder import Progress
from bertology.results.estimate import Estimates
from bertology.results.result import Result
from bertology.results.sampling import joined
from bertology.results.shapes import LayerCurve, Matrix


def run_series(
    analysis: Analysis,
    subject: Subject,
    names: Sequence[str],
    more: Iterable[Encoder],
    options: Mapping[str, Any],
    *,
    progress: Callable[[str], Progress] | None = None,
    notify: Announce | None = None,
) -> Result:
    """The analysis against the subject's own second model, then against each of `more`; `names` names all of them.

    Curves by layer become a matrix of models by layers. Models are loaded one after the other, so `more` may be lazy.
    """
    if "against" not in analysis.inputs:
        raise Refusal(
            f"{analysis.name} looks at one model, and {len(names)} were given to compare it with",
            "an analysis of two models",
            "Leave --against out; `bertology list analyses` names those that compare",
        )
    results = [run(analysis, subject, options, progress=progress, notify=notify)]
    _refuse_other_shapes(analysis, results[0])
    results += [
        run(analysis, replace(subject, against=other), options, progress=progress, notify=notify) for other in more
    ]
    data, most = _over(names, results), max(result.n for result in results)
    return results[0].model_copy(update={"data": data, "inputs": _inputs(names, results), "n": most})


def _refuse_other_shapes(analysis: Analysis, result: Result) -> None:
    if not isinstance(result.data, LayerCurve):
        raise Refusal(
            f"{analysis.name} gave a {result.data.shape}, which has no curve by layer to follow over several models",
            "one model with --against, or a curve by layer",
            f"See `bertology run {analysis.name} --help` for an option that gives a LayerCurve, such as --show layers",
        )


def _over(names: Sequence[str], results: Sequence[Result]) -> Matrix:
    curves = [result.data for result in results if isinstance(result.data, LayerCurve)]
    first = curves[0]

    def stacked(parts: Sequence[Mapping[str, Estimates]]) -> dict[str, Estimates]:
        return {name: joined([part[name] for part in parts]) for name in parts[0]}

    layers = next(iter(first.measures.values())).shape[0]
    return Matrix(
        measures=stacked([curve.measures for curve in curves]),
        baselines={name: stacked([curve.baselines[name] for curve in curves]) for name in first.baselines},
        units=first.units,
        rows_named=tuple(names),
        columns_named=tuple(f"layer {layer + first.first}" for layer in range(layers)),
    )


def _inputs(names: Sequence[str], results: Sequence[Result]) -> dict[str, Any]:
    inputs = {role: summary for role, summary in results[0].inputs.items() if role != "against"}
    return inputs | {f"against {name}": each.inputs["against"] for name, each in zip(names, results, strict=True)}
