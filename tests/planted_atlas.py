"""Judged models with planted effects: sentences that all models share, and noise that each has for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bertology.arrays import FloatArray
from bertology.atlas.content import Atlas
from bertology.atlas.judged_model import Effect, JudgedFinding, JudgedModel, encode_resamples
from bertology.claims.claim import Claim, Greater, NumberSelector
from bertology.claims.verdict import Outcome
from bertology.estimates.resampling import bootstrap_mean
from bertology.results.drawing.strip import StripMark
from bertology.views.report.findings import Status

N_SENTENCES = 60
STATUSES: dict[Outcome, Status] = {"holds": "specific", "fails": "fails", "inconclusive": "undecided"}


def planted_claim(id: str) -> Claim:
    return Claim(
        id=id,
        topic="Where attention goes",
        statement=f"The {id} is above 0.",
        headline=f"There is {id}.",
        section="1",
        published_value="half",
        published=0.5,
        analysis="attention/entropy",
        unit="percent",
        test=Greater(left=NumberSelector(measure=id), right=0.0),
    )


def planted_finding(id: str, values: FloatArray) -> JudgedFinding:
    """A finding whose effect is the mean of (sentence,) values; its interval decides."""
    estimates = bootstrap_mean(values, seed=0)
    value, low, high = (float(np.asarray(part)) for part in (estimates.value, estimates.low, estimates.high))
    assert estimates.resampled is not None
    resampled = estimates.resampled[:200].reshape(-1)
    outcome: Outcome = "holds" if low > 0 else "fails" if high < 0 else "inconclusive"
    return JudgedFinding(
        id=id,
        outcome=outcome,
        status=STATUSES[outcome],
        headline=f"There is {id}.",
        answer=f"It is {value:.2f}.",
        unit="percent",
        marks=(
            StripMark("estimate", value, low, high, "this model", f"{value:.0%}"),
            StripMark("published", 0.5, 0.5, 0.5, "published", "50 %"),
        ),
        number=f"{value:.0%}",
        interval=f"[{low:.0%}, {high:.0%}]",
        effect=Effect(
            value=value,
            standard_error=float(resampled.std()),
            n=int(np.isfinite(values).sum()),
            n_rows=int(estimates.n_rows),
            resampled=encode_resamples(resampled),
        ),
        corpora=("c0ffee",),
    )


def planted_model(source: str, findings: Sequence[JudgedFinding], *, is_trained: bool = True) -> JudgedModel:
    return JudgedModel(
        name=source,
        source=source,
        fingerprint=f"fingerprint of {source}",
        n_layers=4,
        n_heads=4,
        width=32,
        n_parameters=1_000_000,
        is_trained=is_trained,
        findings=tuple(findings),
    )


def planted_atlas(
    effects: Mapping[str, Mapping[Any, float]], *, seed: int = 0, noise: float = 0.1, untrained: Sequence[str] = ()
) -> Atlas:
    """An atlas of (model, finding) effects: sentences differ by far more than models do, and all read the same ones."""
    generator = np.random.default_rng(seed)
    ids = list(next(iter(effects.values())))
    sentences = {id: generator.normal(0.0, 0.3, N_SENTENCES) for id in ids}
    models = [
        planted_model(
            name,
            [
                planted_finding(id, value + sentences[id] + generator.normal(0.0, noise, N_SENTENCES))
                for id, value in by_finding.items()
            ],
            is_trained=name not in untrained,
        )
        for name, by_finding in effects.items()
    ]
    claims = tuple(planted_claim(id) for id in ids)
    return Atlas(tuple(models), claims, {"name": "planted", "examples": N_SENTENCES})
