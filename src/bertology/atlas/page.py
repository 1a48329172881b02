"""The atlas as a self-contained page: a matrix of findings and models, in the marks of the report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from bertology.atlas.content import Atlas
from bertology.atlas.differences import SIGNIFICANCE_LEVEL, ModelDifference
from bertology.atlas.judged_model import JudgedFinding, JudgedModel
from bertology.atlas.model_names import find_checkpoint
from bertology.atlas.pictures import draw_map, forest, peak_forest, training_panels
from bertology.atlas.training import Appearance, TrainingRun
from bertology.atlas.universality import AGREEMENTS, Agreement, FindingAgreement
from bertology.claims.claim import Claim
from bertology.claims.rounding import Unit, difference_unit, factor, format_constant
from bertology.errors import count_noun
from bertology.html import render
from bertology.results.drawing.strip import MARK_NAMES, draw_sign
from bertology.results.drawing.style import page_css
from bertology.results.palette import css_variables
from bertology.views.report.findings import STATUSES, Status

FULL_INK = 0.5
"""The effect, as a part of the scale of shares, that is drawn in full size."""
MIN_SIZE, MAX_SIZE = 9.0, 20.0
"""The size of the sign of a verdict, in pixels."""
MAX_PAIRS = 12
"""So many pairs of models are listed in an opened row; all are in the JSON."""


def atlas_page(content: Atlas, reports: Mapping[str, str] | None = None) -> str:
    """The page; `reports` are the addresses of reports by the name of the model."""
    agreements = {agreement.finding: agreement for agreement in content.agreements}
    rows = {claim.id: _row(claim, agreements[claim.id], content) for claim in content.claims}
    by_agreement: dict[Agreement, list[str]] = {
        kind: [a.finding for a in content.agreements if a.agreement == kind] for kind in AGREEMENTS
    }
    sizes = sorted(content.models, key=lambda model: (model.n_parameters or 0, model.name))
    training = sorted(content.models, key=lambda model: (_training_rank(model), model.name))
    return render(
        "atlas.html",
        content=content,
        light=css_variables("light"),
        dark=css_variables("dark"),
        figure_css=Markup(page_css()),
        lead=_lead(content),
        columns=[
            {
                "name": model.name,
                "id": _model_id(model),
                "size": model.size,
                "training": _training(model),
                "by_size": sizes.index(model),
                "by_training": training.index(model),
            }
            for model in content.models
        ],
        topics={topic: [rows[claim.id] for claim in claims] for topic, claims in content.by_topic().items()},
        rows=rows,
        n_different=sum(agreement.n_different > 0 for agreement in content.agreements),
        n_comparisons=len(content.differences),
        n_significant=sum(difference.is_significant for difference in content.differences),
        agreements=[
            {"kind": kind, "meaning": AGREEMENTS[kind], "rows": [rows[id] for id in ids]}
            for kind, ids in by_agreement.items()
            if ids
        ],
        statuses=STATUSES,
        legend=[(draw_sign(kind), name) for kind, name in MARK_NAMES.items()],
        map=None if content.map is None else draw_map(content.map, content),
        runs=[_run(run, rows, content) for run in content.training_runs],
        models=[_model(model, rows, content, (reports or {}).get(model.name, "")) for model in content.models],
        level=f"{SIGNIFICANCE_LEVEL:.0%}",
    )


def _lead(content: Atlas) -> str:
    n_sentences = content.corpus.get("examples", 0)
    return (
        f"{count_noun(len(content), 'models')}, {count_noun(n_sentences, 'examples')} of {content.corpus['name']}, the "
        f"same {count_noun(len(content.claims), 'tests')}. The size of a sign is the effect: how far the number lies "
        "from what it is compared with."
    )


def _training(model: JudgedModel) -> str:
    checkpoint = find_checkpoint(model.source)
    if not model.is_trained:
        return "untrained"
    return f"{checkpoint.progress:g} {checkpoint.unit}" if checkpoint is not None else ""


def _training_rank(model: JudgedModel) -> float:
    checkpoint = find_checkpoint(model.source)
    if not model.is_trained:
        return -1.0
    return checkpoint.progress if checkpoint is not None else float("inf")


def _model_id(model: JudgedModel) -> str:
    return "model-" + re.sub(r"[^a-z0-9]+", "-", model.name.lower()).strip("-")


def _row(claim: Claim, agreement: FindingAgreement, content: Atlas) -> dict[str, Any]:
    judged = [(model, finding) for model in content.models if (finding := model.find(claim.id)) is not None]
    effects = [abs(finding.effect.value) for _, finding in judged if finding.effect is not None]
    full = FULL_INK if claim.unit in ("percent", "points") else max(effects, default=0.0) or 1.0
    different = [d for d in content.differences if d.finding == claim.id and d.is_significant]
    appearance = content.appearance(claim.id)
    by_model = {model.name: _cell(model, finding, full) for model, finding in judged}
    return {
        "id": claim.id,
        "headline": claim.headline or claim.statement,
        "statement": claim.statement,
        "cells": [by_model.get(model.name, _EMPTY_CELL) for model in content.models],
        "agreement": agreement.agreement,
        "text": _agreement_text(agreement, appearance),
        "n_different": agreement.n_different,
        "effect": max(effects, default=0.0) / full,
        "forest": forest(claim, judged, content) or "",
        "peaks": peak_forest(judged) or "",
        "heads": [_heads(model, finding, claim.unit) for model, finding in judged if finding.heads is not None],
        "answers": [{"model": model.name, "status": f.status, "answer": f.answer} for model, f in judged],
        "obstacles": _obstacles(judged),
        "published": claim.published_value,
        "reference": claim.reference,
        "short_reference": claim.short_reference,
        "section": claim.section,
        "tested": _tested(agreement, content),
        "pairs": [_pair(d, claim.unit) for d in sorted(different, key=lambda d: -abs(d.value))[:MAX_PAIRS]],
        "n_pairs": len(different),
        "filled": sorted({finding.filled_from for _, finding in judged if finding.filled_from}),
    }


_EMPTY_CELL = {"status": "not-tested", "size": MIN_SIZE, "tip": "not judged", "word": "not judged", "model": ""}


def _cell(model: JudgedModel, finding: JudgedFinding, full: float) -> dict[str, Any]:
    effect = 0.0 if finding.effect is None else min(1.0, abs(finding.effect.value) / full)
    is_sized = finding.status in ("specific", "unspecific", "uncontrolled")
    word = STATUSES[finding.status].word
    number = f"{finding.number} {finding.interval}".strip()
    lines = [f"{model.name}: {word}", number, finding.position, *(mark.description for mark in finding.marks[1:])]
    return {
        "model": model.name,
        "status": finding.status,
        "word": word,
        "size": MIN_SIZE + (MAX_SIZE - MIN_SIZE) * effect**0.5 if is_sized else 11.0,
        "tip": "\n".join(filter(None, lines)) if finding.marks else f"{model.name}: {word}\n{finding.obstacle[:200]}",
    }


def _agreement_text(agreement: FindingAgreement, appearance: tuple[TrainingRun, Appearance] | None) -> str:
    if appearance is None or appearance[1].after is None or agreement.agreement == "without training":
        return agreement.text
    run, appeared = appearance
    return f"{agreement.text}; appears between {appeared.after:g} and {appeared.by:g}\N{NO-BREAK SPACE}{run.unit}"


def _tested(agreement: FindingAgreement, content: Atlas) -> str:
    """How the pairs of models were compared, in a sentence."""
    if not agreement.n_compared:
        return "No pair of models can be compared: the number has no sampling error, or too few examples."
    paired = [d.is_paired for d in content.differences if d.finding == agreement.finding]
    how = "sentence by sentence" if any(paired) else "by independent intervals"
    if any(paired) and not all(paired):
        how += ", or by independent intervals where there are no resamples of the same sentences"
    text = (
        f"{count_noun(agreement.n_compared, 'pairs')} of models compared {how}; Holm's correction over all "
        f"{len(content.differences):,} comparisons of the atlas: {agreement.n_different} differ, of finished trained "
        f"models {agreement.n_different_trained}"
    )
    if agreement.n_beyond_seeds is None:
        return f"{text}. How far seeds of one trained model would differ is not known here."
    return f"{text}; {agreement.n_beyond_seeds} of these by more than seeds of one trained model do."


def _pair(difference: ModelDifference, unit: Unit) -> dict[str, str]:
    first, second = difference.first, difference.second
    value, low, high = difference.value, difference.low, difference.high
    if value < 0:
        first, second, value, low, high = second, first, -value, -high, -low
    scale, shown = factor(unit), difference_unit(unit)
    return {
        "first": first,
        "second": second,
        "number": f"{format_constant(float(f'{value:.2g}'), shown)} [{low * scale:.2g}, {high * scale:.2g}]",
        "p": f"{difference.p_adjusted:.1g}",
    }


def _heads(model: JudgedModel, finding: JudgedFinding, unit: Unit) -> dict[str, Any]:
    assert finding.heads is not None
    heads = finding.heads
    random_best = heads.random_best
    return {
        "model": model.name,
        "passing": f"{heads.n_passing} of {heads.n_heads} ({heads.n_passing / max(heads.n_heads, 1):.0%})",
        "best": format_constant(float(f"{heads.best:.2g}"), unit),
        "random": "" if random_best is None else format_constant(float(f"{random_best:.2g}"), unit),
    }


def _obstacles(judged: list[tuple[JudgedModel, JudgedFinding]]) -> list[dict[str, str]]:
    """Why a finding could not be judged, with the models."""
    reasons: dict[str, list[str]] = {}
    for model, finding in judged:
        if finding.obstacle:
            reasons.setdefault(finding.obstacle, []).append(model.name)
    return [{"models": ", ".join(names), "reason": reason} for reason, names in reasons.items()]


def _run(run: TrainingRun, rows: Mapping[str, dict[str, Any]], content: Atlas) -> dict[str, Any]:
    groups: dict[tuple[float, float | None], list[dict[str, Any]]] = {}
    for appearance in run.appearances:
        groups.setdefault((appearance.by, appearance.after), []).append(rows[appearance.finding])
    return {
        "name": run.name,
        "points": ", ".join(f"{progress:g}" for progress in run.progress),
        "unit": run.unit,
        "groups": [
            {
                "text": f"from the first checkpoint on ({by:g}\N{NO-BREAK SPACE}{run.unit})"
                if after is None
                else f"between {after:g} and {by:g}\N{NO-BREAK SPACE}{run.unit}",
                "rows": group,
            }
            for (by, after), group in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or -1.0))
        ],
        "panels": training_panels(run, content),
    }


def _model(model: JudgedModel, rows: Mapping[str, dict[str, Any]], content: Atlas, report: str) -> dict[str, Any]:
    counts: dict[Status, int] = {status: sum(f.status == status for f in model.findings) for status in STATUSES}
    apart = [each for each in content.peculiarities if each.model == model.name]
    apart.sort(key=lambda each: -abs(each.least_difference))
    family = next((family for family in content.families if model.name in family.models), None)
    return {
        "name": model.name,
        "id": _model_id(model),
        "source": model.source,
        "facts": [
            ("architecture", model.architecture or "not known"),
            ("size", f"{model.size} parameters" if model.n_parameters else model.size),
            ("width", str(model.width)),
            ("training", _training(model) or "trained"),
            ("fingerprint", model.fingerprint[:16]),
            *([("seeds", f"one of {len(family.models)} of {family.name}")] if family is not None else []),
            *([("tokens", model.unknown_tokens)] if model.unknown_tokens else []),
            *([("added from", model.added_from)] if model.added_from else []),
        ],
        "tally": [
            {"status": status, "count": n, "word": STATUSES[status].tally[n != 1]} for status, n in counts.items() if n
        ],
        "apart": [{"row": rows[each.finding], "word": "more" if each.is_larger else "less"} for each in apart],
        "report": report,
        "command": f"bertology report {model.source}",
    }
