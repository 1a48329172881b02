"""Training dynamics: checkpoints of one training run as a series, and when each finding appears in it."""

from __future__ import annotations

from collections.abc import Sequence

from bertology.atlas.judged_model import AtlasRecord, JudgedModel
from bertology.atlas.model_names import find_checkpoint
from bertology.claims.verdict import Outcome
from bertology.views.report.content import UNTRAINED_PREFIX

MIN_CHECKPOINTS = 2


class TrainingRun(AtlasRecord):
    """The models of one training run by progress, in percent or steps; the untrained model is at 0."""

    name: str
    unit: str
    models: tuple[str, ...]
    progress: tuple[float, ...]
    appearances: tuple[Appearance, ...]


class Appearance(AtlasRecord):
    """From which progress on a finding holds, and the last one at which it did not, if there is one.

    `after` is None if it holds from the first checkpoint on.
    """

    finding: str
    after: float | None
    by: float


TrainingRun.model_rebuild()


def find_training_runs(models: Sequence[JudgedModel]) -> tuple[TrainingRun, ...]:
    """The runs of which at least two checkpoints were judged, the finished and the untrained model among them."""
    by_source = {model.source: model for model in models}
    runs: dict[tuple[str, str], list[tuple[float, JudgedModel]]] = {}
    for model in models:
        checkpoint = find_checkpoint(model.source)
        if checkpoint is not None:
            runs.setdefault((checkpoint.run, checkpoint.unit), []).append((checkpoint.progress, model))
    finished: list[TrainingRun] = []
    for (name, unit), points in runs.items():
        if unit == "%" and name in by_source:
            points.append((100.0, by_source[name]))
        if (untrained := by_source.get(f"{UNTRAINED_PREFIX}{name}")) is not None:
            points.append((0.0, untrained))
        points.sort(key=lambda point: point[0])
        if len(points) >= MIN_CHECKPOINTS:
            finished.append(_training_run(name, unit, points))
    return tuple(finished)


def _training_run(name: str, unit: str, points: Sequence[tuple[float, JudgedModel]]) -> TrainingRun:
    ids = dict.fromkeys(finding.id for _, model in points for finding in model.findings)
    appearances = (_appearance(id, points) for id in ids)
    return TrainingRun(
        name=name,
        unit=unit,
        models=tuple(model.name for _, model in points),
        progress=tuple(progress for progress, _ in points),
        appearances=tuple(appearance for appearance in appearances if appearance is not None),
    )


def _appearance(id: str, points: Sequence[tuple[float, JudgedModel]]) -> Appearance | None:
    """When a finding appears for good; None if it does not hold at the end, or was not judged there."""
    outcomes: list[tuple[float, Outcome]] = [
        (progress, finding.outcome) for progress, model in points if (finding := model.find(id)) is not None
    ]
    judged = [(progress, outcome) for progress, outcome in outcomes if outcome != "not applicable"]
    if len(judged) < MIN_CHECKPOINTS or judged[-1][1] != "holds":
        return None
    earlier = [index for index, (_, outcome) in enumerate(judged) if outcome != "holds"]
    if not earlier:
        return Appearance(finding=id, after=None, by=judged[0][0])
    last = earlier[-1]
    return Appearance(finding=id, after=judged[last][0], by=judged[last + 1][0])
