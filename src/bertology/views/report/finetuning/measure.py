"""Measure what fine-tuning changed: a model and its fine-tuned version on one corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bertology.analyses import registry
from bertology.analyses.attention.model_similarity.analysis import DIFFERENT_HEAD, DIVERGENCE
from bertology.analyses.attention.targets.analysis import MEASURES as TARGET_MEASURES
from bertology.analyses.attention_patterns.synthetic import PATTERN_CLASSES
from bertology.analyses.evaluation.evaluation import MLM, TASK_DESCRIPTIONS, prepare_evaluation
from bertology.analyses.evaluation.score_change import LOSS, LOSS_P_VALUE, SCORE
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.recordings_by_role import ForwardPass
from bertology.analyses.run import Request, RunInputs, run_all
from bertology.claims.claim import ClaimRun
from bertology.claims.run_plan import run_inputs_for
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.metrics import Counts, bootstrap_paired_runs, bootstrap_score
from bertology.progress import MessageCallback, ProgressFactory
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table
from bertology.views.head_labels import labelling_analyses, labels_from_results
from bertology.views.report.finetuning.changes import (
    Change,
    FinetuningChanges,
    HeadChange,
    LayerChange,
    NeededHead,
    TaskScore,
)

N_LAYERS, N_HEADS, N_NEEDED = 3, 5, 3
"""How many layers and heads are listed."""
MAX_ABLATION_EXAMPLES = 200
MAJORITY, RANDOM_WEIGHTS = "majority class", "random weights"
SIMILARITY, REPRESENTATIONS = "attention/model_similarity", "geometry/representation_similarity"
PATTERNS, TARGETS, ABLATION = "attention/pattern_classes", "attention/targets", "interventions/head_ablation"
EXCLUSIVE_TARGETS = TARGET_MEASURES[:7]
"""The kinds of targets that share out a head's attention, without the rest of it."""
RSA = "RSA"


def finetuning_changes(
    inputs: RunInputs, *, progress: ProgressFactory | None = None, notify: MessageCallback | None = None
) -> FinetuningChanges | None:
    """Compare a model with its fine-tuned version on their corpus; None if there is only one model."""
    names = inputs.model_names
    corpus = inputs.recording.corpus if inputs.recording is not None else inputs.corpus
    if len(names) < 2 or corpus is None:
        return None
    tuned_inputs = run_inputs_for(inputs, ClaimRun(analysis="", target="against"))
    obstacles: dict[str, str] = {}
    score = _task_score(inputs, obstacles)
    single = [(PATTERNS, {"show": "heads"}), (PATTERNS, {}), (TARGETS, {}), *((a, {}) for a in labelling_analyses())]
    on_model: list[tuple[str, dict[str, Any]]] = [(SIMILARITY, {}), (REPRESENTATIONS, {}), *single]
    on_tuned = list(single)
    if score is not None:
        on_tuned.append((ABLATION, {"sample_size": MAX_ABLATION_EXAMPLES}))
    outcomes: list[dict[int, Result | Refusal]] = []
    passes: list[ForwardPass] = []
    elapsed: dict[str, float] = {}
    for requested, batch_inputs in ((on_model, inputs), (on_tuned, tuned_inputs)):
        requests: list[Request] = [(registry.get(name), options) for name, options in requested]
        report = run_all(requests, batch_inputs, progress=progress, notify=notify, cache_results=True)
        outcomes.append(dict(enumerate(report.outcomes)))
        passes += report.passes
        for name, seconds in report.elapsed.items():
            elapsed[name] = elapsed.get(name, 0.0) + seconds
    (similarity, representations, *before), after = list(outcomes[0].values()), list(outcomes[1].values())
    ablation = after.pop() if score is not None else None
    heads, n_heads = _changed_heads(similarity, before, after, obstacles)
    needed = _needed_heads(ablation, obstacles)
    return FinetuningChanges(
        names["recording"],
        names["against"],
        corpus.name,
        score,
        _changed_layers(representations, before[1], after[1], obstacles),
        heads,
        needed,
        n_heads,
        _n_ablated(ablation),
        needed[0].loss.n if needed else 0,
        "words" if isinstance(representations, Result) and _is_by_words(representations) else "tokens",
        obstacles,
        tuple(outcome for outcome in (similarity, representations, ablation) if isinstance(outcome, Result)),
        tuple(passes),
        elapsed,
    )


def _is_by_words(result: Result) -> bool:
    return isinstance(result.data, LayerCurve) and "words compared" in result.data.sample


def _task_score(inputs: RunInputs, obstacles: dict[str, str]) -> TaskScore | None:
    tuned, corpus = inputs.against, inputs.corpus
    if tuned is None or corpus is None:
        obstacles["score"] = "a recording of the fine-tuned model cannot be run"
        return None
    try:
        evaluation = prepare_evaluation(tuned, corpus)
    except Refusal as refusal:
        obstacles["score"] = refusal.problem
        return None
    if evaluation.task == MLM or evaluation.majority is None:
        task_heads = ", ".join(sorted(tuned.task_heads)) or "none"
        obstacles["score"] = f"{tuned.name} has no task head for them, or there are none (its task heads: {task_heads})"
        return None
    counts = evaluation.scores(tuned.forward).counts
    baselines = {MAJORITY: bootstrap_score(evaluation.majority)}
    if isinstance(tuned, Randomisable):
        baselines[RANDOM_WEIGHTS] = bootstrap_score(evaluation.scores(tuned.randomised(seed=0).forward).counts)
    before = _score_before(inputs.encoder, inputs, evaluation.task)
    if before is not None and inputs.encoder is not None:
        baselines[f"{inputs.encoder.name}, before"] = bootstrap_score(before)
    return TaskScore(
        TASK_DESCRIPTIONS.get(evaluation.task, evaluation.task),
        evaluation.metric,
        bootstrap_score(counts),
        baselines,
        bootstrap_paired_runs([counts], [evaluation.majority], seed=0),
        evaluation.skipped,
    )


def _score_before(encoder: Encoder | None, inputs: RunInputs, task: str) -> Counts | None:
    """The score of the model before fine-tuning; None if it has no task head for these labels."""
    if encoder is None or inputs.corpus is None:
        return None
    try:
        return prepare_evaluation(encoder, inputs.corpus, task=task).scores(encoder.forward).counts
    except Refusal:
        return None


def _changed_layers(
    representations: Result | Refusal,
    before: Result | Refusal,
    after: Result | Refusal,
    obstacles: dict[str, str],
) -> tuple[LayerChange, ...]:
    if isinstance(representations, Refusal) or not isinstance(representations.data, LayerCurve):
        obstacles["layers"] = _problem(representations)
        return ()
    curve = representations.data
    similarity = curve.measures[RSA]
    untrained = curve.baselines.get(UNTRAINED_MODEL, {}).get(RSA)
    order = np.argsort(np.nan_to_num(similarity.value, nan=np.inf), kind="stable")[:N_LAYERS]
    tables = [outcome.data for outcome in (before, after) if isinstance(outcome, Result)]
    return tuple(
        LayerChange(
            layer,
            similarity[layer],
            None if untrained is None else untrained[layer],
            _largest_change(*(_layer_patterns(table, layer) for table in tables)) if len(tables) == 2 else None,
        )
        for layer in map(int, order)
    )


def _layer_patterns(table: object, layer: int) -> dict[str, Estimate]:
    """The proportions of pattern classes in a layer; none for the embeddings."""
    row = f"layer {layer}"
    if not isinstance(table, Table) or row not in table.row_names:
        return {}
    return {f"{name} patterns": table.measures[name][table.row_names.index(row)] for name in PATTERN_CLASSES}


def _largest_change(before: Mapping[str, Estimate], after: Mapping[str, Estimate]) -> Change | None:
    """The measure that changed most, of those that both models have."""
    changes = [Change(name, before[name], after[name]) for name in before if name in after]
    known = [change for change in changes if np.isfinite(change.after.value - change.before.value)]
    return max(known, key=lambda change: abs(change.after.value - change.before.value), default=None)


def _changed_heads(
    similarity: Result | Refusal,
    before: Sequence[Result | Refusal],
    after: Sequence[Result | Refusal],
    obstacles: dict[str, str],
) -> tuple[tuple[HeadChange, ...], int]:
    """The heads with the largest divergence, and the number of all heads."""
    if isinstance(similarity, Refusal) or not isinstance(similarity.data, HeadGrid):
        obstacles["heads"] = _problem(similarity)
        return (), 0
    grid = similarity.data
    divergence, other = grid.measures[DIVERGENCE], grid.baselines.get(DIFFERENT_HEAD, {}).get(DIVERGENCE)
    order = np.argsort(-np.nan_to_num(divergence.value, nan=-1.0), axis=None, kind="stable")[:N_HEADS]
    labels_before, labels_after = (_labels(outcomes, divergence) for outcomes in (before, after))
    changes: list[HeadChange] = []
    for index in order.tolist():
        head = Head(*(int(axis) for axis in np.unravel_index(index, divergence.shape)))
        patterns_before, patterns_after = (_head_measures(outcomes[0], head) for outcomes in (before, after))
        targets = [_select(_head_measures(outcomes[2], head), EXCLUSIVE_TARGETS) for outcomes in (before, after)]
        changes.append(
            HeadChange(
                head,
                divergence[head],
                None if other is None else other[head],
                _most_frequent(patterns_before),
                _most_frequent(patterns_after),
                _largest_change(*targets),
                labels_before.get(head, ()),
                labels_after.get(head, ()),
            )
        )
    return tuple(changes), int(divergence.value.size)


def _select(measures: Mapping[str, Estimate], names: Sequence[str]) -> dict[str, Estimate]:
    return {name: measures[name] for name in names if name in measures}


def _labels(outcomes: Sequence[Result | Refusal], divergence: Estimates) -> dict[Head, tuple[str, ...]]:
    results = [outcome for outcome in outcomes[3:] if isinstance(outcome, Result)]
    labels: dict[Head, tuple[str, ...]] = {}
    for label in labels_from_results(results, *divergence.shape):
        head = Head(label.layer, label.head)
        labels[head] = (*labels.get(head, ()), label.label)
    return labels


def _head_measures(outcome: Result | Refusal, head: Head) -> dict[str, Estimate]:
    data = outcome.data if isinstance(outcome, Result) else None
    return {name: estimates[head] for name, estimates in data.measures.items()} if isinstance(data, HeadGrid) else {}


def _most_frequent(measures: Mapping[str, Estimate]) -> str:
    """The most frequent class of a head's patterns."""
    known = {name: measures[name].value for name in PATTERN_CLASSES if name in measures}
    known = {name: value for name, value in known.items() if np.isfinite(value)}
    return max(known, key=lambda name: known[name]) if known else "unclassified"


def _needed_heads(ablation: Result | Refusal | None, obstacles: dict[str, str]) -> tuple[NeededHead, ...]:
    """The heads whose removal raises the loss most."""
    if ablation is None:
        return ()
    if isinstance(ablation, Refusal) or not isinstance(ablation.data, HeadGrid):
        obstacles["needed heads"] = _problem(ablation)
        return ()
    measures = ablation.data.measures
    order = np.argsort(-np.nan_to_num(measures[LOSS].value, nan=-np.inf), axis=None, kind="stable")[:N_NEEDED]
    heads = [Head(*(int(axis) for axis in np.unravel_index(i, measures[LOSS].shape))) for i in order.tolist()]
    return tuple(
        NeededHead(head, measures[SCORE][head], measures[LOSS][head], float(measures[LOSS_P_VALUE].value[head]))
        for head in heads
    )


def _problem(outcome: Result | Refusal) -> str:
    return outcome.problem if isinstance(outcome, Refusal) else f"{outcome.analysis} gave another shape"


def _n_ablated(ablation: Result | Refusal | None) -> int:
    data = ablation.data if isinstance(ablation, Result) else None
    return int(data.measures[LOSS].value.size) if isinstance(data, HeadGrid) else 0
