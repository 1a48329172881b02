"""What fine-tuning changed: the score on the corpus's labels, the most changed layers and heads, and those needed.

Everything is a field; the paragraph of conclusions is written from the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bertology.analyses import registry
from bertology.analyses.attention.model_similarity.analysis import DIFFERENT_HEAD, DIVERGENCE
from bertology.analyses.attention.targets.analysis import MEASURES as TARGET_MEASURES
from bertology.analyses.attention_patterns.synthetic import PATTERN_CLASSES
from bertology.analyses.evaluation.evaluation import MLM, TASK_DESCRIPTIONS, prepare_evaluation
from bertology.analyses.evaluation.score_change import LOSS, LOSS_P_VALUE, SCORE, SIGNIFICANCE_LEVEL
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.recordings_by_role import ForwardPass
from bertology.analyses.run import NotifyFunction, Request, RunInputs, run_all
from bertology.claims.claim import ClaimRun
from bertology.claims.run import run_inputs_for
from bertology.claims.verdict import finite_or_none
from bertology.encoder.encoder import Encoder, Randomisable
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.metrics import Counts, bootstrap_paired_runs, bootstrap_score
from bertology.progress import ProgressFactory
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table
from bertology.views.head_labels import labelling_analyses, labels_from_results
from bertology.views.report.pictures import Picture, curve_picture, grid_picture

N_LAYERS, N_HEADS, N_NEEDED = 3, 5, 3
"""How many layers and heads are listed."""
MAX_ABLATION_EXAMPLES = 200
MAJORITY, RANDOM_WEIGHTS = "majority class", "random weights"
SIMILARITY, REPRESENTATIONS = "attention/model_similarity", "geometry/representation_similarity"
PATTERNS, TARGETS, ABLATION = "attention/pattern_classes", "attention/targets", "interventions/head_ablation"
EXCLUSIVE_TARGETS = TARGET_MEASURES[:7]
"""The kinds of targets that share out a head's attention, without the rest of it."""
RSA = "RSA"


@dataclass(frozen=True)
class Change:
    """A number before and after fine-tuning, such as the attention of a head to [SEP]."""

    measure: str
    before: Estimate
    after: Estimate

    def __str__(self) -> str:
        return f"{self.measure} {_brief(self.before)} before, {_brief(self.after)} after"

    @property
    def arrow(self) -> str:
        """The change with intervals, for a table."""
        return f"{self.measure.removeprefix('attention ')}: {self.before} → {self.after}"


@dataclass(frozen=True)
class TaskScore:
    """The fine-tuned model's score on the labels of the corpus.

    `baselines` are scores on the same examples: of the most frequent label, of the model with random weights, and of
    the model before fine-tuning if it has the same task head. `above_majority` is the paired difference.
    """

    task: str
    metric: str
    score: Estimate
    baselines: Mapping[str, Estimate]
    above_majority: Estimate
    n_skipped: int = 0

    @property
    def is_above_majority(self) -> bool:
        """Whether the model is clearly better than always predicting the most frequent label."""
        return self.above_majority.clearly_above(0.0)


@dataclass(frozen=True)
class LayerChange:
    """A layer's similarity of representations (1: unchanged), and the share of attention patterns that changed most."""

    layer: int
    similarity: Estimate
    untrained_similarity: Estimate | None
    pattern: Change | None

    @property
    def name(self) -> str:
        """`layer 8`, or `embeddings`."""
        return f"layer {self.layer}" if self.layer else "embeddings"


@dataclass(frozen=True)
class HeadChange:
    """A head's change in attention (0: unchanged) and what it did before and after.

    `different_head` is the divergence from another head of the layer. `pattern_before` and `pattern_after` are the most
    frequent classes of its patterns, `target` is the target whose share of attention changed most, and labels are those
    of analyses that label heads.
    """

    head: Head
    divergence: Estimate
    different_head: Estimate | None
    pattern_before: str
    pattern_after: str
    target: Change | None
    labels_before: tuple[str, ...]
    labels_after: tuple[str, ...]

    @property
    def pattern_change(self) -> str:
        """The most frequent pattern before and after, for a table."""
        if self.pattern_before == self.pattern_after:
            return f"{self.pattern_after} (same)"
        return f"{self.pattern_before} → {self.pattern_after}"

    @property
    def description(self) -> str:
        """What the head did before and after, in a phrase."""
        labels = [" and ".join(labels) or "no label" for labels in (self.labels_before, self.labels_after)]
        parts = [
            f"{self.pattern_before} patterns before, {self.pattern_after} after"
            if self.pattern_before != self.pattern_after
            else f"{self.pattern_before} patterns before and after",
            str(self.target) if self.target else "",
            f"labelled {labels[0]} before, {labels[1]} after" if self.labels_before != self.labels_after else "",
        ]
        return "; ".join(part for part in parts if part)


@dataclass(frozen=True)
class NeededHead:
    """What disabling a head costs the fine-tuned model: changes in score and loss, and p with Holm's correction."""

    head: Head
    score: Estimate
    loss: Estimate
    p: float

    @property
    def stands_out(self) -> bool:
        """Whether the loss is significantly higher without the head."""
        return self.p < SIGNIFICANCE_LEVEL and self.loss.value > 0


@dataclass(frozen=True)
class FinetuningChanges:
    """The difference between a model and its fine-tuned version on one corpus.

    `layers` and `heads` are the most changed ones first, `needed` the heads whose removal costs most. `obstacles` say
    why a part is missing. `results` are the results that the parts are read from.
    """

    model: str
    tuned: str
    corpus: str
    score: TaskScore | None = None
    layers: tuple[LayerChange, ...] = ()
    heads: tuple[HeadChange, ...] = ()
    needed: tuple[NeededHead, ...] = ()
    n_heads: int = 0
    n_ablated_heads: int = 0
    n_ablation_examples: int = 0
    unit: str = "tokens"
    obstacles: Mapping[str, str] = field(default_factory=dict[str, str])
    results: tuple[Result, ...] = field(default=(), repr=False)
    passes: tuple[ForwardPass, ...] = ()
    elapsed: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def conclusions(self) -> str:
        """One paragraph: score, layers, heads, and heads that the task needs."""
        parts = [self._layer_sentence(), self._head_sentence(), self._needed_sentence()]
        parts = [*parts, self._score_sentence()] if self.score is None else [self._score_sentence(), *parts]
        return " ".join(part for part in parts if part)

    def _score_sentence(self) -> str:
        score = self.score
        if score is None:
            return f"The labels of {self.corpus} were not used: {self.obstacles.get('score', 'there are none')}."
        baselines = ", ".join(f"{name} {estimate}" for name, estimate in score.baselines.items())
        sentence = (
            f"{self.tuned} has {score.metric} {score.score} on the labels of {score.score.n} texts of {self.corpus} "
            f"({baselines})"
        )
        if score.is_above_majority:
            return f"{sentence}: {score.above_majority} more than the majority class."
        return (
            f"{sentence}: it cannot be told from the majority class (difference {score.above_majority}), so what "
            "follows is not evidence of a learnt task."
        )

    def _layer_sentence(self) -> str:
        if not self.layers:
            return f"Layers were not compared: {self.obstacles['layers']}." if "layers" in self.obstacles else ""
        similarities = ", ".join(f"{layer.name} ({RSA} {layer.similarity})" for layer in self.layers)
        untrained = self.layers[0].untrained_similarity
        reference = f"; an untrained model has {_brief(untrained)} in {self.layers[0].name}" if untrained else ""
        return f"Its representations differ most from those of {self.model} in {similarities}{reference}."

    def _head_sentence(self) -> str:
        if not self.heads:
            return f"Heads were not compared: {self.obstacles['heads']}." if "heads" in self.obstacles else ""
        names = [str(change.head) for change in self.heads]
        first = self.heads[0]
        return (
            f"Attention changed most in the heads {', '.join(names)} of {self.n_heads}; in {first.head} (divergence "
            f"{first.divergence}): {first.description}."
        )

    def _needed_sentence(self) -> str:
        if not self.needed:
            return ""
        outstanding = [head for head in self.needed if head.stands_out]
        scope = f"disabled one at a time on {self.n_ablation_examples} texts"
        if outstanding:
            names = ", ".join(f"{head.head} (loss {head.loss.value:+.3g}, {_format_p(head.p)})" for head in outstanding)
            return f"Of {self.n_ablated_heads} heads {scope}, the task needs most: {names}."
        first = self.needed[0]
        return (
            f"Of {self.n_ablated_heads} heads {scope}, none stands out: without {first.head}, which costs most, the "
            f"loss changes by {first.loss} ({_format_p(first.p)})."
        )

    @property
    def notes(self) -> list[str]:
        """How to read the tables, and what is missing from them."""
        texts = f"n = {self.heads[0].divergence.n} texts" if self.heads else ""
        notes = [
            f"Arrows lead from {self.model} to {self.tuned}. Intervals resample texts{f' ({texts})' if texts else ''}; "
            "layers and heads are listed because they changed most, which the intervals are not corrected for. Special "
            f"tokens count in attention, not in {RSA}."
        ]
        if self.heads:
            notes.append(
                "Patterns: the most frequent class of attention/pattern_classes. Targets: attention/targets. Labels: "
                f"{', '.join(labelling_analyses())}, where the corpus has the annotations. Other head: the divergence "
                "from the previous head of the same layer."
            )
        if self.unit == "words":
            notes.append("The models tokenise the texts differently and were compared word by word.")
        if self.score is not None and self.score.n_skipped:
            notes.append(f"{self.score.n_skipped} texts without a label, or too long, are not in the score.")
        return notes + [f"Not measured, {part}: {reason}." for part, reason in self.obstacles.items()]

    def as_record(self) -> dict[str, Any]:
        """All fields as plain values, and the conclusions."""
        score = self.score
        return {
            "model": self.model,
            "tuned": self.tuned,
            "corpus": self.corpus,
            "conclusions": self.conclusions,
            "unit": self.unit,
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
                for change in self.layers
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
                for change in self.heads
            ],
            "needed_heads": [
                {
                    "head": str(needed.head),
                    "score": _record(needed.score),
                    "loss": _record(needed.loss),
                    "p": needed.p,
                    "stands_out": needed.stands_out,
                }
                for needed in self.needed
            ],
            "n_heads": self.n_heads,
            "n_ablated_heads": self.n_ablated_heads,
            "n_ablation_examples": self.n_ablation_examples,
            "obstacles": dict(self.obstacles),
        }

    def pictures(self) -> list[Picture]:
        """The changes of all heads, with the most changed ones marked, and of all layers."""
        pictures: list[Picture] = []
        for result in self.results:
            if result.analysis == SIMILARITY:
                pictures.append(grid_picture(result, DIVERGENCE, [change.head for change in self.heads]))
            elif result.analysis == REPRESENTATIONS:
                pictures.append(curve_picture(result, RSA))
        return pictures

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The numbers as tables, by heading; empty ones are left out."""
        score = self.score
        scores = [] if score is None else [(self.tuned, score.score), *score.baselines.items()]
        tables: dict[str, list[dict[str, Any]]] = {
            f"Score on the labels ({score.metric})" if score else "Score": [
                {"model": name, "score [95 % interval]": str(estimate), "n": estimate.n} for name, estimate in scores
            ],
            f"Most changed layers ({RSA} of {self.unit}, 1: unchanged)": [
                {
                    "layer": change.name,
                    f"{RSA} [95 % interval]": str(change.similarity),
                    "untrained model": str(change.untrained_similarity or ""),
                    "patterns that changed most": change.pattern.arrow if change.pattern else "",
                }
                for change in self.layers
            ],
            f"Most changed heads ({DIVERGENCE}, 0: unchanged, at most 0.69)": [
                {
                    "head": str(change.head),
                    "divergence": str(change.divergence),
                    "other head": _brief(change.different_head) if change.different_head else "",
                    "patterns": change.pattern_change,
                    "target that changed most": change.target.arrow if change.target else "",
                    "labels before": ", ".join(change.labels_before) or "none",
                    "labels after": ", ".join(change.labels_after) or "none",
                }
                for change in self.heads
            ],
            f"Heads whose removal costs {self.tuned} most": [
                {
                    "head": str(needed.head),
                    "change in loss [95 % interval]": str(needed.loss),
                    "change in score [95 % interval]": str(needed.score),
                    "p (Holm)": needed.p,
                    "stands out": "yes" if needed.stands_out else "no",
                }
                for needed in self.needed
            ],
        }
        return {heading: rows for heading, rows in tables.items() if rows}


def finetuning_changes(
    inputs: RunInputs, *, progress: ProgressFactory | None = None, notify: NotifyFunction | None = None
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


def _brief(estimate: Estimate) -> str:
    return f"{estimate.value:.2g}"


def _format_p(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _record(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    limits = {name: finite_or_none(getattr(estimate, name)) for name in ("value", "low", "high")}
    return {**limits, "n": estimate.n, "interval": estimate.interval}


def _change_record(change: Change | None) -> dict[str, Any] | None:
    if change is None:
        return None
    return {"measure": change.measure, "before": _record(change.before), "after": _record(change.after)}
