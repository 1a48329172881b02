"""What fine-tuning changed in sentences, written from fields: score, layers, heads, and heads that the task needs."""

from __future__ import annotations

from collections.abc import Sequence

from bertology.claims.answer_numbers import join_texts
from bertology.claims.rounding import Unit, round_estimate
from bertology.estimates.estimate import Estimate
from bertology.views.head_labels import labelling_analyses
from bertology.views.report.finetuning.changes import FinetuningChanges, HeadChange, NeededHead, TaskScore
from bertology.views.report.finetuning.measure import MAJORITY, RANDOM_WEIGHTS, RSA

MAX_DIVERGENCE = "0.69"
_BASELINE_NAMES = {
    MAJORITY: "always the most frequent label",
    RANDOM_WEIGHTS: "the same model with random weights",
}


def conclusions(changes: FinetuningChanges) -> str:
    """One paragraph: how well the task was learnt, which layers and heads changed, and which heads it needs."""
    changed = [_layer_sentences(changes), _head_sentences(changes), _needed_sentences(changes)]
    score = _score_sentences(changes)
    parts = [*changed, score] if changes.score is None else [score, *changed]
    return " ".join(part for part in parts if part)


def _score_sentences(changes: FinetuningChanges) -> str:
    score = changes.score
    if score is None:
        reason = changes.obstacles.get("score", "there are no labels")
        return f"How well {changes.tuned} does its task on {changes.corpus} was not measured: {reason}."
    reached = _number(score.score, "percent")
    texts = f"{score.score.n} texts of {changes.corpus}"
    has = (
        f"{changes.tuned} labels {reached} of {texts} correctly"
        if score.metric == "accuracy"
        else f"{changes.tuned} has a {score.metric} of {reached} on {texts}"
    )
    first, *others = (
        (_BASELINE_NAMES.get(name, name), _number(estimate, "percent", with_interval=False))
        for name, estimate in score.baselines.items()
    )
    baselines = join_texts([f"{first[0]} reaches {first[1]}", *(f"{name} {number}" for name, number in others)])
    return f"{has}; {baselines}. {_distance(score)}"


def _distance(score: TaskScore) -> str:
    difference = _number(score.above_majority, "points")
    if score.is_above_majority:
        return f"That is {difference} more than always the most frequent label."
    return (
        f"It cannot be told from always the most frequent label (difference {difference}), so what follows is no "
        "evidence of a learnt task."
    )


def _layer_sentences(changes: FinetuningChanges) -> str:
    if not changes.layers:
        return f"Layers were not compared: {changes.obstacles['layers']}." if "layers" in changes.obstacles else ""
    first, *others = changes.layers
    sentence = (
        f"Its representations changed most in {first.name}: the similarities between {changes.unit} correlate with "
        f"those in {changes.model} at {_number(first.similarity, 'number')}, where 1 is unchanged"
    )
    if first.untrained_similarity is not None:
        untrained = _number(first.untrained_similarity, "number", with_interval=False)
        sentence += f" and an untrained model has {untrained}"
    following = join_texts([f"{layer.name} ({_number(layer.similarity, 'number')})" for layer in others])
    return f"{sentence}.{f' Next {_verb(others)} {following}.' if others else ''}"


def _head_sentences(changes: FinetuningChanges) -> str:
    if not changes.heads:
        return f"Heads were not compared: {changes.obstacles['heads']}." if "heads" in changes.obstacles else ""
    first, *others = changes.heads
    other = first.different_head
    compared = (
        "" if other is None else f"; another head of its layer differs by {_number(other, 'nats', with_interval=False)}"
    )
    sentence = (
        f"Of {changes.n_heads} heads, {first.head} changed its attention most: by {_number(first.divergence, 'nats')} "
        f"(Jensen-Shannon divergence, at most {MAX_DIVERGENCE}){compared}. {_head_history(first)}"
    )
    names = join_texts([str(change.head) for change in others])
    return f"{sentence}{f' Next {_verb(others)} {names}.' if others else ''}"


def _head_history(change: HeadChange) -> str:
    """What the head did before and does now."""
    before, after = change.pattern_before, change.pattern_after
    sentences = [
        f"Its patterns are mostly {after}, as before."
        if before == after
        else f"Its patterns were mostly {before} and are mostly {after} now."
    ]
    if change.target is not None:
        was, now = (
            _number(estimate, "percent", with_interval=False)
            for estimate in (change.target.before, change.target.after)
        )
        sentences.append(f"Its {change.target.measure} went from {was} to {now}.")
    if change.labels_before != change.labels_after:
        was, now = (join_texts(labels) or "nothing" for labels in (change.labels_before, change.labels_after))
        sentences.append(f"It was labelled {was} and is labelled {now} now.")
    return " ".join(sentences)


def _needed_sentences(changes: FinetuningChanges) -> str:
    if not changes.needed:
        return ""
    scope = f"Of {changes.n_ablated_heads} heads, switched off one at a time on {changes.n_ablation_examples} texts,"
    outstanding = [head for head in changes.needed if head.stands_out]
    if outstanding:
        names = join_texts([str(head.head) for head in outstanding])
        costs = join_texts([_cost(head) for head in outstanding])
        without = "it" if len(outstanding) == 1 else "each of them, in this order,"
        return f"{scope} the task needs {names}: without {without} the loss rises by {costs}."
    first = changes.needed[0]
    return f"{scope} none is needed by itself: without {first.head}, the costliest, the loss changes by {_cost(first)}."


def _cost(needed: NeededHead) -> str:
    p = "p < 0.001" if needed.p < 0.001 else f"p = {needed.p:.2g}"
    return f"{_number(needed.loss, 'nats')} ({p})"


def _number(estimate: Estimate, unit: Unit, *, with_interval: bool = True) -> str:
    """A number with the digits that its interval supports: `88 % [83, 93]`."""
    rounded = round_estimate(estimate, unit)
    return " ".join(part for part in (rounded.text, rounded.interval if with_interval else "") if part)


def _verb(parts: Sequence[object]) -> str:
    return "is" if len(parts) == 1 else "are"


def reading_notes(changes: FinetuningChanges) -> list[str]:
    """How to read the tables, and what is missing from them."""
    texts = f" (n = {changes.heads[0].divergence.n} texts)" if changes.heads else ""
    notes = [
        f"Arrows lead from {changes.model} to {changes.tuned}. Intervals resample texts{texts}; layers and heads are "
        "listed because they changed most, which the intervals are not corrected for. Special tokens count in "
        f"attention, not in {RSA}."
    ]
    if changes.heads:
        notes.append(
            "Patterns: the most frequent class of attention/pattern_classes. Targets: attention/targets. Labels: "
            f"{', '.join(labelling_analyses())}, where the corpus has the annotations. Other head: the divergence "
            "from the previous head of the same layer."
        )
    if changes.unit == "words":
        notes.append("The models tokenise the texts differently and were compared word by word.")
    if changes.score is not None and changes.score.n_skipped:
        notes.append(f"{changes.score.n_skipped} texts without a label, or too long, are not in the score.")
    return notes + [f"Not measured, {part}: {reason}." for part, reason in changes.obstacles.items()]
