"""What fine-tuning changed as tables, pictures and plain values."""

from __future__ import annotations

from typing import Any

from bertology.analyses.attention.model_similarity.analysis import DIVERGENCE
from bertology.claims.verdict import finite_or_none
from bertology.estimates.estimate import Estimate
from bertology.views.report.finetuning.changes import Change, FinetuningChanges
from bertology.views.report.finetuning.measure import REPRESENTATIONS, RSA, SIMILARITY
from bertology.views.report.finetuning.sentences import conclusions
from bertology.views.report.picture_shapes import Picture
from bertology.views.report.pictures import curve_picture, grid_picture


def changes_record(changes: FinetuningChanges) -> dict[str, Any]:
    """All fields as plain values, and the conclusions."""
    score = changes.score
    return {
        "model": changes.model,
        "tuned": changes.tuned,
        "corpus": changes.corpus,
        "conclusions": conclusions(changes),
        "unit": changes.unit,
        "score": None
        if score is None
        else {
            "task": score.task,
            "metric": score.metric,
            "score": _record(score.score),
            "baselines": {name: _record(estimate) for name, estimate in score.baselines.items()},
            "above_majority": _record(score.above_majority),
            "is_above_majority": score.is_above_majority,
            "skipped": score.n_skipped,
        },
        "layers": [
            {
                "layer": change.layer,
                "similarity": _record(change.similarity),
                "untrained_similarity": _record(change.untrained_similarity),
                "pattern": _change_record(change.pattern),
            }
            for change in changes.layers
        ],
        "heads": [
            {
                "head": str(change.head),
                "divergence": _record(change.divergence),
                "different_head": _record(change.different_head),
                "pattern_before": change.pattern_before,
                "pattern_after": change.pattern_after,
                "target": _change_record(change.target),
                "labels_before": list(change.labels_before),
                "labels_after": list(change.labels_after),
            }
            for change in changes.heads
        ],
        "needed_heads": [
            {
                "head": str(needed.head),
                "score": _record(needed.score),
                "loss": _record(needed.loss),
                "p": needed.p,
                "stands_out": needed.stands_out,
            }
            for needed in changes.needed
        ],
        "n_heads": changes.n_heads,
        "n_ablated_heads": changes.n_ablated_heads,
        "n_ablation_examples": changes.n_ablation_examples,
        "obstacles": dict(changes.obstacles),
    }


def changes_pictures(changes: FinetuningChanges) -> list[Picture]:
    """The changes of all heads, with the most changed ones marked, and of all layers."""
    pictures: list[Picture] = []
    for result in changes.results:
        if result.analysis == SIMILARITY:
            pictures.append(grid_picture(result, DIVERGENCE, [change.head for change in changes.heads]))
        elif result.analysis == REPRESENTATIONS:
            pictures.append(curve_picture(result, RSA))
    return pictures


def changes_tables(changes: FinetuningChanges) -> dict[str, list[dict[str, Any]]]:
    """The numbers as tables, by heading; empty ones are left out."""
    score = changes.score
    scores = [] if score is None else [(changes.tuned, score.score), *score.baselines.items()]
    tables: dict[str, list[dict[str, Any]]] = {
        f"Score on the labels ({score.metric})" if score else "Score": [
            {"model": name, "score [95 % interval]": str(estimate), "n": estimate.n} for name, estimate in scores
        ],
        f"Most changed layers ({RSA} of {changes.unit}, 1: unchanged)": [
            {
                "layer": change.name,
                f"{RSA} [95 % interval]": str(change.similarity),
                "untrained model": str(change.untrained_similarity or ""),
                "patterns that changed most": change.pattern.arrow if change.pattern else "",
            }
            for change in changes.layers
        ],
        f"Most changed heads ({DIVERGENCE}, 0: unchanged, at most 0.69)": [
            {
                "head": str(change.head),
                "divergence": str(change.divergence),
                "other head": f"{change.different_head.value:.2g}" if change.different_head else "",
                "patterns": change.pattern_change,
                "target that changed most": change.target.arrow if change.target else "",
                "labels before": ", ".join(change.labels_before) or "none",
                "labels after": ", ".join(change.labels_after) or "none",
            }
            for change in changes.heads
        ],
        f"Heads whose removal costs {changes.tuned} most": [
            {
                "head": str(needed.head),
                "change in loss [95 % interval]": str(needed.loss),
                "change in score [95 % interval]": str(needed.score),
                "p (Holm)": needed.p,
                "stands out": "yes" if needed.stands_out else "no",
            }
            for needed in changes.needed
        ],
    }
    return {heading: rows for heading, rows in tables.items() if rows}


def _record(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    limits = {name: finite_or_none(getattr(estimate, name)) for name in ("value", "low", "high")}
    return {**limits, "n": estimate.n, "interval": estimate.interval}


def _change_record(change: Change | None) -> dict[str, Any] | None:
    if change is None:
        return None
    return {"measure": change.measure, "before": _record(change.before), "after": _record(change.after)}
