"""Select the best head for each label on one half of the sentences, and evaluate it on the other half.

The halves depend only on the words of the sentences, never on their order, and equal sentences stay together. Trying
every head in every direction is accounted for in three ways: the held-out accuracy is that of a head selected on other
sentences; the interval of the best head on all sentences is simultaneous for all heads; and the heads not significantly
worse than the best are found by multiple comparisons with the best (see `estimates.comparison_with_best`). The p value
compares the held-out head with a baseline by a paired t test over sentences, with Holm's correction for the labels; the
interval of their difference resamples the same sentences for both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.head_selection.gold_links import LinkCounts
from bertology.arrays import Array, BoolArray
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.hypothesis_tests import BestCandidate, argmax_rate, compare_with_best, holm, paired_t_test
from bertology.estimates.resampling import bootstrap_ratio
from bertology.results.shapes import AttributeValue, Head, Table

HELD_OUT_ACCURACY = "accuracy (held out)"
BEST_ACCURACY = "accuracy of the best head (not held out)"
INDISTINGUISHABLE = "heads not significantly worse"
P_VALUE = "p (Holm)"
ZERO = "zero"
SIGNIFICANCE_LEVEL = 0.05
MAX_LISTED_HEADS = 5
ACCURACY_UNIT = "proportion of examples, 0 to 1"


def difference_measure(baseline: str) -> str:
    """The name of the difference between the held-out accuracy and that of a baseline on the same examples."""
    return f"accuracy - {baseline}"


def selection_half(texts: Sequence[str], seed: int) -> BoolArray:
    """(unit,) whether each unit is in the selection half: every other one in a shuffled order of the texts."""
    shuffled = sorted(set(texts), key=lambda text: hashlib.sha256(f"{seed}\n{text}".encode()).digest())
    is_first = {text: index % 2 == 0 for index, text in enumerate(shuffled)}
    return np.array([is_first[text] for text in texts], np.bool_)


@dataclass(frozen=True)
class HeadSelection:
    """The selection for one label.

    `selected` is the best candidate on the selection half, `best` that on all sentences. `baseline_variants` has the
    best variant of each baseline on the selection half and on all sentences.
    """

    selected: int
    best: BestCandidate
    baseline_variants: dict[str, tuple[int, int]]


def select_heads(
    counts: LinkCounts, selection_mask: BoolArray, *, min_examples: int, seed: int
) -> list[HeadSelection | None]:
    """The selection for each label; None with fewer than `min_examples` examples, or none in one of the halves."""
    selections: list[HeadSelection | None] = []
    for label in range(len(counts.labels)):
        correct, total = counts.candidates(label), counts.total[:, label]
        selected = argmax_rate(correct[selection_mask], total[selection_mask])
        enough = total.sum() >= min_examples and selected is not None and total[~selection_mask].any()
        best = compare_with_best(correct, total, seed=seed) if enough else None
        if best is None or selected is None:
            selections.append(None)
            continue
        variants = {
            name: (_best_variant(values[selection_mask, :, label]), _best_variant(values[..., label]))
            for name, values in counts.baseline_correct.items()
        }
        selections.append(HeadSelection(selected, best, variants))
    return selections


def _best_variant(correct: Array) -> int:
    return int(correct.sum(0).argmax())


def selection_table(
    counts: LinkCounts, randomised: LinkCounts | None, *, baseline: str, min_examples: int, seed: int
) -> Table:
    """One row per label: held-out accuracy of the selected head, the best head on all sentences, and the baselines.

    `baseline` is the one that p values and differences compare with. Heads, directions and counts are attributes.
    """
    selection_mask = selection_half(counts.unit_texts, seed)
    selections = select_heads(counts, selection_mask, min_examples=min_examples, seed=seed)
    total = np.where([selection is not None for selection in selections], counts.total, 0).astype(np.float64)
    held_out_total = total[~selection_mask]
    selected = _candidate_correct(counts, [selection and selection.selected for selection in selections])
    bests = [selection and selection.best for selection in selections]
    baselines: dict[str, dict[str, Estimates]] = {}
    for name, correct in counts.baseline_correct.items():
        held_out_variant, best_variant = (
            _variant_correct(correct, [selection and selection.baseline_variants[name][i] for selection in selections])
            for i in (0, 1)
        )
        baselines[name] = {
            HELD_OUT_ACCURACY: _pooled_accuracy(held_out_variant[~selection_mask], held_out_total, seed),
            BEST_ACCURACY: _pooled_accuracy(best_variant, total, seed),
        }
    compared = _variant_correct(
        counts.baseline_correct[baseline],
        [selection and selection.baseline_variants[baseline][0] for selection in selections],
    )
    p = holm(paired_t_test(np.where(total > 0, selected - compared, np.nan)[~selection_mask]))
    n_units = (total > 0).sum(0)
    n_worse = [np.nan if best is None else len(best.indistinguishable) for best in bests]
    difference = difference_measure(baseline)
    measures = {
        HELD_OUT_ACCURACY: _pooled_accuracy(selected[~selection_mask], held_out_total, seed),
        difference: _pooled_accuracy((selected - compared)[~selection_mask], held_out_total, seed),
        BEST_ACCURACY: _best_estimates(bests, n_units),
        INDISTINGUISHABLE: _exact(n_worse, n_units),
        P_VALUE: _exact(p, (held_out_total > 0).sum(0) * np.isfinite(p)),
    }
    if randomised is not None:
        baselines[UNTRAINED_MODEL] = _untrained_baseline(randomised, selections, selection_mask, total, seed)
    n_candidates = int(np.prod(counts.correct.shape[1:4]))
    baselines["all other heads"] = {INDISTINGUISHABLE: _exact(np.full(len(bests), n_candidates - 1.0), n_units)}
    baselines["significance level"] = {P_VALUE: _exact(np.full(len(bests), SIGNIFICANCE_LEVEL), n_units)}
    baselines[ZERO] = {difference: _exact(np.zeros(len(bests)), n_units)}
    return Table(
        measures=measures,
        baselines=baselines,
        row_names=counts.labels,
        attributes=_attributes(counts, selections),
        notes={
            label: f"Not scored: {n} example{'s' * (n != 1)} (minimum {min_examples})."
            for label, selection, n in zip(counts.labels, selections, counts.total.sum(0).tolist(), strict=True)
            if selection is None
        },
        units={
            HELD_OUT_ACCURACY: ACCURACY_UNIT,
            difference: "difference of proportions, -1 to 1",
            BEST_ACCURACY: ACCURACY_UNIT,
            INDISTINGUISHABLE: f"heads and directions, 0 to {n_candidates - 1}",
            P_VALUE: "probability, 0 to 1",
        },
    )


def _pooled_accuracy(correct: Array, total: Array, seed: int) -> Estimates:
    return bootstrap_ratio(correct, total, seed=seed) if len(correct) else Estimates.empty(correct.shape[1])


def _candidate_correct(counts: LinkCounts, candidates: Sequence[int | None]) -> Array:
    """(unit, label) correct answers of the candidate of each label; 0 without a candidate."""
    correct = np.zeros(counts.total.shape)
    for label, candidate in enumerate(candidates):
        if candidate is not None:
            correct[:, label] = counts.candidates(label)[:, candidate]
    return correct


def _variant_correct(correct: Array, variants: Sequence[int | None]) -> Array:
    """(unit, label) correct answers of the variant of each label."""
    columns = [np.zeros(len(correct)) if v is None else correct[:, v, label] for label, v in enumerate(variants)]
    return np.stack(columns, axis=1)


def _untrained_baseline(
    randomised: LinkCounts,
    selections: Sequence[HeadSelection | None],
    selection_mask: BoolArray,
    total: Array,
    seed: int,
) -> dict[str, Estimates]:
    """The best head of the untrained model, selected in the same way from as many candidates."""
    selected: list[int | None] = []
    bests: list[BestCandidate | None] = []
    for label, selection in enumerate(selections):
        correct, label_total = randomised.candidates(label), randomised.total[:, label]
        selected.append(argmax_rate(correct[selection_mask], label_total[selection_mask]) if selection else None)
        bests.append(compare_with_best(correct, label_total, seed=seed) if selection else None)
    held_out = _candidate_correct(randomised, selected)[~selection_mask]
    return {
        HELD_OUT_ACCURACY: _pooled_accuracy(held_out, total[~selection_mask], seed),
        BEST_ACCURACY: _best_estimates(bests, (total > 0).sum(0)),
    }


def _best_estimates(bests: Sequence[BestCandidate | None], n: Array) -> Estimates:
    rows = [(np.nan, np.nan, np.nan) if best is None else (best.rate, best.low, best.high) for best in bests]
    value, low, high = np.array(rows, np.float64).reshape(-1, 3).T
    return Estimates(value=value, low=low, high=high, n=n.astype(np.int64), interval="simultaneous")


def _exact(values: Sequence[float] | Array, n: Array) -> Estimates:
    """Numbers without an interval; NaN where n is 0."""
    return Estimates.exact(np.where(n > 0, np.asarray(values, np.float64), np.nan), n)


def head_attributes(heads: Sequence[Head | None]) -> dict[str, tuple[AttributeValue, ...]]:
    """The attributes `head` and `layer` (from 1) of a table's rows."""
    return {
        "head": tuple(None if head is None else str(head) for head in heads),
        "layer": tuple(None if head is None else head[0] + 1 for head in heads),
    }


def candidate_head(counts: LinkCounts, candidate: int) -> Head:
    """The head of a candidate."""
    return Head(*counts.unravel(candidate)[:2])


def candidate_direction(counts: LinkCounts, candidate: int) -> str:
    """The direction of a candidate."""
    return counts.directions[counts.unravel(candidate)[2]]


def format_candidate(counts: LinkCounts, candidate: int) -> str:
    """The head and direction of a candidate, such as `8-11 dependent to governor`."""
    return f"{candidate_head(counts, candidate)} {candidate_direction(counts, candidate)}".strip()


def _attributes(
    counts: LinkCounts, selections: Sequence[HeadSelection | None]
) -> dict[str, tuple[AttributeValue, ...]]:
    """The held-out head of each row, the best head on all sentences, and the variant of each baseline on all."""
    scored = list(enumerate(selections))
    attributes = head_attributes([s and candidate_head(counts, s.selected) for s in selections])
    if any(counts.directions):
        attributes["direction"] = tuple(s and candidate_direction(counts, s.selected) for s in selections)
    attributes["best_head"] = tuple(s and str(candidate_head(counts, s.best.index)) for s in selections)
    if any(counts.directions):
        attributes["best_direction"] = tuple(s and candidate_direction(counts, s.best.index) for s in selections)
    attributes["n_correct"] = tuple(s and int(counts.candidates(label)[:, s.best.index].sum()) for label, s in scored)
    attributes["n_examples"] = tuple(counts.total.sum(0).tolist())
    attributes["not_significantly_worse"] = tuple(s and _list_indistinguishable(counts, n, s.best) for n, s in scored)
    for name, variants in counts.baseline_variants.items():
        if any(variants):
            attributes[name] = tuple(s and variants[s.baseline_variants[name][1]] for s in selections)
    return attributes


def _list_indistinguishable(counts: LinkCounts, label: int, best: BestCandidate) -> str:
    """The most accurate heads that are not significantly worse than the best."""
    correct = counts.candidates(label).sum(0)
    ordered = sorted(best.indistinguishable, key=lambda candidate: -correct[candidate])
    names = [format_candidate(counts, int(candidate)) for candidate in ordered[:MAX_LISTED_HEADS]]
    return ", ".join(names + ["..."] * (len(ordered) > MAX_LISTED_HEADS))


def append_row(
    table: Table,
    name: str,
    measures: Mapping[str, Estimate],
    baselines: Mapping[str, Mapping[str, Estimate]],
    attributes: Mapping[str, AttributeValue],
    note: str,
) -> Table:
    """The table with one more row; measures, baselines and attributes that the row does not have are missing there."""
    return Table(
        measures={key: _append_estimate(column, measures.get(key)) for key, column in table.measures.items()},
        baselines={
            baseline: {key: _append_estimate(c, baselines.get(baseline, {}).get(key)) for key, c in columns.items()}
            for baseline, columns in table.baselines.items()
        },
        units=table.units,
        sample=table.sample,
        row_names=(*table.row_names, name),
        attributes={key: (*values, attributes.get(key)) for key, values in table.attributes.items()},
        notes={**table.notes, name: note},
    )


def _append_estimate(column: Estimates, estimate: Estimate | None) -> Estimates:
    if estimate is None:
        return Estimates.concatenate([column, Estimates.empty(1)])
    return Estimates.concatenate([column, Estimates.stack([replace(estimate, interval=column.interval)])])
