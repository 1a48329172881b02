"""The scores of all heads behind findings about one head, so that the chosen head is seen beside the others.

A table of relations names only the head it selected. The same analysis with `--show heads` scores every head; it reads
the same sites, so that no forward pass is added where the recording is in the store.
"""

from __future__ import annotations

from dataclasses import replace

from bertology.analyses import registry
from bertology.analyses.recordings_by_role import ForwardPass
from bertology.analyses.run import run_all
from bertology.claims.claim import tested_rows
from bertology.claims.claim_results import ClaimResult, ClaimResults
from bertology.claims.run_plan import run_inputs_for
from bertology.progress import MessageCallback, ProgressFactory
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, Table
from bertology.views.report.pictures import HeadScores

HEADS = {"show": "heads"}


def score_heads(
    claim_results: ClaimResults, *, progress: ProgressFactory | None = None, notify: MessageCallback | None = None
) -> tuple[dict[str, HeadScores], tuple[ForwardPass, ...]]:
    """The scores of all heads by claim id, for the claims whose table names a head; and the forward passes made."""
    scores: dict[str, HeadScores] = {}
    passes: tuple[ForwardPass, ...] = ()
    results: dict[str, Result | None] = {}
    for claim_result in claim_results:
        measure = _measure(claim_result)
        if measure is None:
            continue
        inputs = claim_results.inputs
        if claim_result.filled_from:
            inputs = replace(inputs, corpus=claim_results.filling)
        (run,) = claim_result.claim.all_runs.values()
        key = f"{run.analysis} {sorted(run.options.items())} {run.corpus} {run.target}"
        if key not in results:
            report = run_all(
                [(registry.get(run.analysis), {**run.options, **HEADS})],
                run_inputs_for(inputs, run),
                progress=progress,
                notify=notify,
                cache_results=True,
            )
            passes += tuple(report.passes)
            outcome = report.outcomes[0]
            results[key] = outcome if isinstance(outcome, Result) else None
        result = results[key]
        if result is not None and isinstance(result.data, HeadGrid) and measure in result.data.measures:
            scores[claim_result.claim.id] = HeadScores(result, measure)
    return scores, passes


def _measure(claim_result: ClaimResult) -> str | None:
    """The measure of the tested relation and the selected direction; None if the claim is not about one head."""
    runs, rows = list(claim_result.claim.all_runs.values()), tested_rows(claim_result.claim.test)
    if len(runs) != 1 or len(rows) != 1 or not claim_result.results:
        return None
    analysis, data = registry.find(runs[0].analysis), claim_result.results[0].data
    option = analysis.options.get("show") if analysis is not None else None
    if option is None or "heads" not in option.choices or not isinstance(data, Table):
        return None
    (row,) = rows
    if row not in data.row_names:
        return None
    direction = data.attribute("direction", data.row_names.index(row))
    return f"{row}, {direction}" if isinstance(direction, str) else None
