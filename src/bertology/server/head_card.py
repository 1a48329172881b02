"""All that is known of one head over the corpus: numbers of stored results, claims, examples, histograms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import BaseModel

from bertology.analyses import registry
from bertology.analyses.head_selection.functions import POSITION_LABELS, RAREST_WORD, TO_DEPENDENT, TO_GOVERNOR
from bertology.analyses.link_index.head_profile import (
    LinkHistogram,
    SimilarHead,
    link_histograms,
    missed_examples,
    random_examples,
    similar_heads,
    strongest_examples,
)
from bertology.analyses.link_index.index import LinkIndex
from bertology.citations import CITATIONS
from bertology.encoder.encoder import Head
from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, Table
from bertology.results.units import display_unit
from bertology.server.known_results import DEFAULT_ANALYSES, KnownResult
from bertology.server.link_search import LinkExample, link_example
from bertology.views.head_labels import labels_from_results
from bertology.views.payload import HeadLabel

N_STRONGEST, N_RANDOM, N_MISSED, N_SIMILAR = 10, 10, 5, 3


class HeadNumber(BaseModel):
    """A measure of the head: its estimate, baselines, and rank among all heads (1: stands out most).

    `effect_size` is the distance from the mean of all heads in standard deviations of the heads. A p value has
    neither: it is one of `n_heads` tests, and is compared with the significance level. Nor has a number that is the
    same for all heads. `settings` says what was not as by default when the analysis ran.
    """

    analysis: str
    settings: str
    measure: str
    unit: str
    is_p_value: bool
    value: float | None
    low: float | None
    high: float | None
    interval: str
    n: int
    baselines: dict[str, float | None]
    rank: int | None
    n_heads: int
    effect_size: float | None


class HeadClaim(BaseModel):
    """A published finding whose numbers are those of this head."""

    id: str
    claim: str
    paper: str
    verdict: str
    answer: str
    settings: str


class SimilarHeadAnswer(BaseModel):
    """A head that attends most to the same words, in this proportion of `n` words; `mean` is that of all heads."""

    head: str
    agreement: float
    mean: float
    n: int


class MissingPart(BaseModel):
    """A part of the card that has not been computed, and the job that computes it; `reason` if none can."""

    part: str
    kind: str
    analysis: str = ""
    reason: str = ""


class HeadCard(BaseModel):
    """One head over the corpus; what has not been computed is in `missing`, not left out in silence.

    `citations` are keys of the papers that its numbers, labels and claims follow.
    """

    head: str
    model: str
    corpus: str
    labels: list[HeadLabel]
    numbers: list[HeadNumber]
    claims: list[HeadClaim]
    cost_of_removal: list[HeadNumber]
    similar: list[SimilarHeadAnswer]
    strongest: list[LinkExample]
    random: list[LinkExample]
    missed: list[LinkExample]
    missed_label: str
    missed_note: str
    histograms: list[LinkHistogram]
    missing: list[MissingPart]
    citations: list[str]


def build_card(
    head: Head,
    shape: tuple[int, int],
    results: Mapping[str, KnownResult],
    index: LinkIndex | None,
    claim_records: Sequence[Mapping[str, Any]],
    *,
    model: str,
    corpus: str,
    unsuited: Mapping[str, str],
) -> HeadCard:
    """The card of a head from the results by analysis, the link index and the records of tested claims.

    `unsuited` has the reasons why analyses cannot run on the model and the corpus.
    """
    labels = [
        label
        for label in labels_from_results([each.result for each in results.values()], *shape)
        if (label.layer, label.head) == tuple(head)
    ]
    by_analysis = {name: _numbers(known, head) for name, known in results.items()}
    claims = _claims(claim_records, head)
    functions = results["heads/functions"].result if "heads/functions" in results else None
    label = _function_label(functions, head)
    missing = [
        MissingPart(part=name, kind="analysis", analysis=name, reason=unsuited.get(name, ""))
        for name in DEFAULT_ANALYSES
        if name not in results
    ]
    if index is None:
        missing.append(MissingPart(part="links", kind="links"))
    if not claim_records:
        missing.append(MissingPart(part="claims", kind="claims"))
    missed = missed_examples(index, head, label, N_MISSED) if index is not None and label else []
    return HeadCard(
        head=str(head),
        model=model,
        corpus=corpus,
        labels=labels,
        numbers=[number for name, each in by_analysis.items() if not _is_cost(results[name]) for number in each],
        claims=claims,
        cost_of_removal=[
            number
            for name, each in by_analysis.items()
            if _is_cost(results[name])
            for number in sorted(each, key=lambda number: _cost_order(results[name], number))
        ],
        similar=[_similar(each) for each in similar_heads(index, head, N_SIMILAR)] if index is not None else [],
        strongest=[link_example(index, e) for e in strongest_examples(index, head, N_STRONGEST)] if index else [],
        random=[link_example(index, each) for each in random_examples(index, head, N_RANDOM)] if index else [],
        missed=[link_example(index, each) for each in missed] if index is not None else [],
        missed_label=label,
        missed_note=_missed_note(label, functions, index),
        histograms=link_histograms(index, head) if index is not None else [],
        missing=missing,
        citations=_citations([name for name, each in by_analysis.items() if each], claims),
    )


def _is_cost(known: KnownResult) -> bool:
    data = known.result.data
    return isinstance(data, HeadGrid) and data.costs is not None


def _cost_order(known: KnownResult, number: HeadNumber) -> int:
    """What removal costs first, then its p values, then what is derived from them."""
    costs = known.result.data.costs if isinstance(known.result.data, HeadGrid) else None
    operations = costs.operations.values() if costs is not None else ()
    is_cost = any(number.measure in (operation.loss, operation.score) for operation in operations)
    return 0 if is_cost else 1 if number.is_p_value else 2


def _citations(analyses: Sequence[str], claims: Sequence[HeadClaim]) -> list[str]:
    keys = [key for name in analyses for key in registry.get(name).citations]
    return [key for key in dict.fromkeys([*keys, *(claim.paper for claim in claims)]) if key in CITATIONS]


def _similar(similar: SimilarHead) -> SimilarHeadAnswer:
    return SimilarHeadAnswer(head=str(similar.head), agreement=similar.agreement, mean=similar.mean, n=similar.n)


def _missed_note(label: str, functions: Result | None, index: LinkIndex | None) -> str:
    if functions is None or index is None:
        return "Needs the results of heads/functions and the index of links."
    if not label:
        return "The head has no function by heads/functions, so that nothing is expected of it."
    return f"Words from which a head with the function {label!r} should attend elsewhere."


def _function_label(result: Result | None, head: Head) -> str:
    """The function that heads/functions assigns to the head; empty if it confirms none."""
    if result is None or not isinstance(result.data, Table):
        return ""
    table = result.data
    for row in range(len(table.row_names)):
        if table.attribute("head", row) == str(head) and table.attribute("function", row):
            label = str(table.attribute("function", row))
            is_known = label in POSITION_LABELS.values() or label == RAREST_WORD
            return label if is_known or label.endswith((TO_GOVERNOR, TO_DEPENDENT)) else ""
    return ""


def _numbers(known: KnownResult, head: Head) -> list[HeadNumber]:
    data = known.result.data
    if isinstance(data, HeadGrid):
        return [
            _number(known, name, estimates, (head[0], head[1]), data.baselines_of(name), name in data.lowest)
            for name, estimates in data.measures.items()
        ]
    if not isinstance(data, Table) or "head" not in data.attributes:
        return []
    rows = [row for row in range(len(data.row_names)) if data.attribute("head", row) == str(head)]
    return [
        _number(known, name, estimates, (row,), data.baselines_of(name), False)
        for row in rows
        for name, estimates in data.measures.items()
    ]


def _number(
    known: KnownResult,
    measure: str,
    estimates: Estimates,
    index: tuple[int, ...],
    baselines: Mapping[str, Estimates],
    lowest: bool,
) -> HeadNumber:
    estimate: Estimate = estimates[index]
    unit = getattr(known.result.data, "units", {}).get(measure, "")
    is_p_value = display_unit(unit, measure).is_p_value
    values = estimates.value[np.isfinite(estimates.value)]
    spread = float(values.std()) if len(values) > 1 else 0.0
    is_ranked = math.isfinite(estimate.value) and spread > 0 and not is_p_value
    better = (values < estimate.value) if lowest else (values > estimate.value)
    is_grid = len(index) == 2
    return HeadNumber(
        analysis=known.result.analysis,
        settings=known.settings,
        measure=measure,
        unit=unit,
        is_p_value=is_p_value,
        value=_finite(estimate.value),
        low=_finite(estimate.low),
        high=_finite(estimate.high),
        interval=estimate.interval,
        n=estimate.n,
        baselines={name: _finite(baseline[index].value) for name, baseline in baselines.items()},
        rank=int(better.sum()) + 1 if is_ranked else None,
        n_heads=len(values),
        effect_size=(estimate.value - float(values.mean())) / spread if is_grid and is_ranked else None,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _claims(records: Sequence[Mapping[str, Any]], head: Head) -> list[HeadClaim]:
    return [
        HeadClaim(
            id=record["id"],
            claim=record["claim"],
            paper=record["paper"],
            verdict=record["verdict"],
            answer=record["answer"],
            settings=record["settings"],
        )
        for record in records
        if record.get("head") == str(head)
    ]
