"""`Atlas`: the judged models and what they say together, as a value that can be read, tabulated and written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bertology.atlas.differences import ModelDifference, compare_models
from bertology.atlas.earlier_atlas import digest_test
from bertology.atlas.judged_model import JudgedFinding, JudgedModel, NotJudged
from bertology.atlas.model_names import find_checkpoint
from bertology.atlas.profiles import ProfileMap, map_models
from bertology.atlas.seeds import SeedFamily, find_seed_families
from bertology.atlas.training import Appearance, TrainingRun, find_training_runs
from bertology.atlas.universality import FindingAgreement, ModelPeculiarity, agree, find_peculiarities
from bertology.claims.claim import TOPICS, Claim
from bertology.errors import unknown_name
from bertology.results.result import versions

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False, repr=False)
class Atlas:
    """The verdicts of several models on the same claims and corpus. `atlas["mini"]` is one model.

    `not_judged` are the models that could not be judged, with the reasons; `messages` say what was left out.
    """

    models: tuple[JudgedModel, ...]
    claims: tuple[Claim, ...]
    corpus: Mapping[str, Any]
    not_judged: tuple[NotJudged, ...] = ()
    messages: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __getitem__(self, name: str) -> JudgedModel:
        by_name = {model.name: model for model in self.models}
        if name not in by_name:
            raise unknown_name("model of this atlas", name, by_name)
        return by_name[name]

    def __len__(self) -> int:
        return len(self.models)

    def __repr__(self) -> str:
        counts = [f"{sum(a.agreement == kind for a in self.agreements)} {kind}" for kind in ("universal", "differs")]
        names = ", ".join(model.name for model in self.models)
        return f"Atlas of {len(self)} models ({names}), {len(self.claims)} findings: {', '.join(counts)}."

    @cached_property
    def trained(self) -> tuple[JudgedModel, ...]:
        """The trained models, without checkpoints of unfinished training."""
        return tuple(
            model for model in self.models if model.is_trained and not _is_unfinished(model.source, self.models)
        )

    @cached_property
    def untrained(self) -> tuple[JudgedModel, ...]:
        """The models with random weights."""
        return tuple(model for model in self.models if not model.is_trained)

    @cached_property
    def differences(self) -> tuple[ModelDifference, ...]:
        """All tested differences between two models, corrected for their number."""
        return compare_models(self.models)

    @cached_property
    def families(self) -> tuple[SeedFamily, ...]:
        """Models that differ only in their seed."""
        return find_seed_families(self.models)

    @cached_property
    def agreements(self) -> tuple[FindingAgreement, ...]:
        """What the models say together about each finding, in the order of the claims."""
        by_finding: dict[str, list[ModelDifference]] = {claim.id: [] for claim in self.claims}
        for difference in self.differences:
            by_finding[difference.finding].append(difference)
        return tuple(
            agree(claim.id, self.trained, self.untrained, by_finding[claim.id], self.families) for claim in self.claims
        )

    @cached_property
    def peculiarities(self) -> tuple[ModelPeculiarity, ...]:
        """What sets each model apart from all finished trained ones."""
        return find_peculiarities(self.models, self.trained, self.differences)

    @cached_property
    def map(self) -> ProfileMap | None:
        """The models on a map by their profiles; None if there are too few."""
        return map_models(self.models)

    @cached_property
    def training_runs(self) -> tuple[TrainingRun, ...]:
        """The checkpoints of each training run."""
        return find_training_runs(self.models)

    def appearance(self, id: str) -> tuple[TrainingRun, Appearance] | None:
        """When a finding appears in the first run in which it does."""
        return next(((run, a) for run in self.training_runs for a in run.appearances if a.finding == id), None)

    def by_topic(self) -> dict[str, list[Claim]]:
        """The claims by topic, in the order of the topics."""
        groups: dict[str, list[Claim]] = {topic: [] for topic in TOPICS}
        for claim in self.claims:
            groups[claim.topic].append(claim)
        return {topic: group for topic, group in groups.items() if group}

    def records(self) -> list[dict[str, Any]]:
        """One record per finding and model: verdict, estimate, effect, head or layers, peak and heads that pass."""
        return [_record(claim, model, finding) for claim in self.claims for model, finding in self._row(claim)]

    def _row(self, claim: Claim) -> Sequence[tuple[JudgedModel, JudgedFinding]]:
        row = [(model, model.find(claim.id)) for model in self.models]
        return [(model, finding) for model, finding in row if finding is not None]

    def to_pandas(self) -> pandas.DataFrame:
        """One row per finding and model; see `records`."""
        import pandas

        return pandas.DataFrame(self.records())

    def to_json(self) -> dict[str, Any]:
        """A JSON object: models, findings, verdicts, differences, families, training runs, map, records.

        Its `records` hold what another atlas needs to add these models; the rest is computed from them.
        """
        agreements = {agreement.finding: agreement for agreement in self.agreements}
        finished = {model.name for model in self.trained}
        return {
            "corpus": dict(self.corpus),
            "options": dict(self.options),
            "versions": versions(),
            "models": [
                {
                    **model.model_dump(mode="json", exclude={"findings"}),
                    "size": model.size,
                    "is_finished": model.name in finished,
                }
                for model in self.models
            ],
            "not_judged": [each.model_dump(mode="json") for each in self.not_judged],
            "messages": list(self.messages),
            "findings": [
                {
                    "id": claim.id,
                    "test_digest": digest_test(claim),
                    "topic": claim.topic,
                    "claim": claim.statement,
                    "headline": claim.headline or claim.statement,
                    "paper": claim.paper,
                    "unit": claim.unit,
                    "published_value": claim.published_value,
                    **agreements[claim.id].model_dump(mode="json", exclude={"finding"}),
                }
                for claim in self.claims
            ],
            "verdicts": self.records(),
            "differences": [difference.model_dump(mode="json") for difference in self.differences],
            "peculiarities": [each.model_dump(mode="json") for each in self.peculiarities],
            "families": [family.model_dump(mode="json") for family in self.families],
            "training_runs": [run.model_dump(mode="json") for run in self.training_runs],
            "map": None if self.map is None else self.map.model_dump(mode="json"),
            "records": [model.model_dump(mode="json") for model in self.models],
        }

    def json_text(self) -> str:
        """The JSON object as text."""
        return json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False)


def _is_unfinished(source: str, models: Sequence[JudgedModel]) -> bool:
    """Whether a model is an early checkpoint: before 100 %, or before the last step of its run."""
    checkpoint = find_checkpoint(source)
    if checkpoint is None:
        return False
    if checkpoint.unit == "%":
        return checkpoint.progress < 100
    others = [find_checkpoint(model.source) for model in models]
    last = max(other.progress for other in others if other is not None and other.run == checkpoint.run)
    return checkpoint.progress < last


def _record(claim: Claim, model: JudgedModel, finding: JudgedFinding) -> dict[str, Any]:
    marks = {mark.kind: mark for mark in finding.marks if mark.kind != "required"}
    estimate, effect, peak, heads = marks.get("estimate"), finding.effect, finding.peak, finding.heads
    return {
        "finding": claim.id,
        "topic": claim.topic,
        "model": model.name,
        "verdict": finding.outcome,
        "status": finding.status,
        "value": None if estimate is None else estimate.value,
        "low": None if estimate is None else estimate.low,
        "high": None if estimate is None else estimate.high,
        "n": None if effect is None else effect.n,
        "position": finding.position or None,
        "effect": None if effect is None else effect.value,
        "effect_error": None if effect is None else effect.standard_error,
        **{name: marks[name].value if name in marks else None for name in ("baseline", "untrained", "published")},
        "peak_layer": None if peak is None else peak.layer,
        **dict(
            zip(
                ("peak_depth", "peak_depth_low", "peak_depth_high"),
                (None, None, None) if peak is None else peak.depths,
                strict=True,
            )
        ),
        "heads_passing": None if heads is None else heads.n_passing,
        "heads": None if heads is None else heads.n_heads,
        "best_head": None if heads is None else heads.best,
        "random_best_head": None if heads is None else heads.random_best,
        "filled_from": finding.filled_from or None,
        "reason": finding.obstacle or None,
    }
