"""Which findings hold in all models, which in one, and which differ: statements that verdicts and tests support.

That a finding holds in all models needs no correction: each verdict must hold (an intersection-union test). That
models differ needs a significant difference, after the correction for all comparisons of the atlas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bertology.atlas.differences import ModelDifference
from bertology.atlas.judged_model import AtlasRecord, JudgedFinding, JudgedModel
from bertology.atlas.seeds import SeedFamily
from bertology.claims.verdict import Outcome
from bertology.errors import count_noun

Agreement = Literal["universal", "without training", "nowhere", "one model", "differs", "undecided", "not judged"]
AGREEMENTS: dict[Agreement, str] = {
    "universal": "holds in every trained model",
    "without training": "holds in every trained model, and without training too",
    "one model": "holds in one trained model and fails in the others, which differ from it after correction",
    "differs": "holds in some trained models and fails in others, which differ after correction",
    "nowhere": "fails in every trained model",
    "undecided": "no statement about all trained models is supported: verdicts are open, or differences may be noise",
    "not judged": "judged in fewer than two trained models",
}
"""What each agreement means."""
MIN_MODELS = 2


class FindingAgreement(AtlasRecord):
    """What the models say together about a finding.

    `holds` of `judged` finished trained models; `n_different` of `n_compared` pairs of all models differ after the
    correction. Of pairs of finished trained models, `n_different_trained` do, and `n_beyond_seeds` of these by more
    than the seeds of any trained family (None without one).
    """

    finding: str
    agreement: Agreement
    text: str
    holds: int
    judged: int
    n_compared: int
    n_different: int
    n_different_trained: int
    n_beyond_seeds: int | None = None


def agree(
    id: str,
    trained: Sequence[JudgedModel],
    untrained: Sequence[JudgedModel],
    differences: Sequence[ModelDifference],
    families: Sequence[SeedFamily] = (),
) -> FindingAgreement:
    """What finished trained models, and untrained ones, say about a finding; `differences` are those of the finding."""
    findings = {model.name: finding for model in trained if (finding := _judged(model, id)) is not None}
    random = [finding for model in untrained if (finding := _judged(model, id)) is not None]
    different = [difference for difference in differences if difference.is_significant]
    agreement, text = _agreement(findings, random, different)
    names = {model.name for model in trained}
    among_trained = [difference for difference in different if {difference.first, difference.second} <= names]
    spreads = [family.spreads[id] for family in families if family.is_trained and id in family.spreads]
    beyond = sum(abs(difference.value) > max(spreads) for difference in among_trained) if spreads else None
    return FindingAgreement(
        finding=id,
        agreement=agreement,
        text=text,
        holds=sum(finding.outcome == "holds" for finding in findings.values()),
        judged=len(findings),
        n_compared=len(differences),
        n_different=len(different),
        n_different_trained=len(among_trained),
        n_beyond_seeds=beyond,
    )


def _judged(model: JudgedModel, id: str) -> JudgedFinding | None:
    finding = model.find(id)
    return None if finding is None or finding.outcome == "not applicable" else finding


def _agreement(
    findings: dict[str, JudgedFinding], untrained: Sequence[JudgedFinding], different: Sequence[ModelDifference]
) -> tuple[Agreement, str]:
    if len(findings) < MIN_MODELS:
        return "not judged", "judged in too few models"
    by_outcome: dict[Outcome, list[str]] = {"holds": [], "fails": [], "inconclusive": []}
    for name, finding in findings.items():
        by_outcome[finding.outcome].append(name)
    holding, failing, n = by_outcome["holds"], by_outcome["fails"], len(findings)
    if len(holding) == n:
        without_training = all(finding.status == "unspecific" for finding in findings.values())
        if without_training or (untrained and all(finding.outcome == "holds" for finding in untrained)):
            return "without training", "holds without training"
        return "universal", f"universal: {n} of {n} trained"
    if len(failing) == n:
        return "nowhere", f"in none of {count_noun(n, 'models')}"
    pairs = {frozenset((difference.first, difference.second)) for difference in different}
    if len(holding) == 1 and len(failing) == n - 1 and all(frozenset((holding[0], f)) in pairs for f in failing):
        return "one model", f"only in {holding[0]}"
    if any(frozenset((yes, no)) in pairs for yes in holding for no in failing):
        return "differs", f"in {len(holding)} of {n}, models differ"
    if holding and failing:
        return "undecided", f"in {len(holding)} of {n}, not told apart"
    return "undecided", f"in {len(holding)} of {n}, {len(by_outcome['inconclusive'])} undecided"


class ModelPeculiarity(AtlasRecord):
    """A finding in which a model has a larger, or smaller, effect than every other finished trained model."""

    model: str
    finding: str
    is_larger: bool
    least_difference: float
    """The difference from the model that is nearest."""


def find_peculiarities(
    models: Sequence[JudgedModel], trained: Sequence[JudgedModel], differences: Sequence[ModelDifference]
) -> tuple[ModelPeculiarity, ...]:
    """What sets each model apart: it differs from all other finished trained models, in the same direction."""
    by_pair: dict[tuple[str, str, str], float] = {}
    for difference in differences:
        if difference.is_significant:
            by_pair[difference.finding, difference.first, difference.second] = difference.value
            by_pair[difference.finding, difference.second, difference.first] = -difference.value
    peculiarities: list[ModelPeculiarity] = []
    for model in models:
        others = [other for other in trained if other.name != model.name]
        for finding in model.findings:
            compared = [other for other in others if _judged(other, finding.id) is not None]
            values = [by_pair.get((finding.id, model.name, other.name), 0.0) for other in compared]
            if len(values) < MIN_MODELS or not (min(values) > 0 or max(values) < 0):
                continue
            peculiarities.append(
                ModelPeculiarity(
                    model=model.name,
                    finding=finding.id,
                    is_larger=min(values) > 0,
                    least_difference=min(values, key=abs),
                )
            )
    return tuple(peculiarities)
