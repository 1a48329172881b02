"""Select the best head for each label on one half of the sentences and score it on the other, over many random halves.

The halves depend only on the words of the sentences, never on their order, and equal sentences stay together. Trying
every head in every direction is accounted for in three ways: the held-out accuracy is that of heads selected on other
sentences, with values, intervals and p values combined over all splits (see `estimates.cross_fitting`); the interval of
the best head on all sentences is simultaneous for all heads; and the heads not significantly worse than the best are
found by multiple comparisons with the best (see `estimates.hypothesis_tests`). Differences and p values compare the
selected heads with a baseline on the same sentences, with Holm's correction of p values for the labels. The best fixed
offset is selected on all sentences, which can only favour the baseline.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.head_selection.answers import link_answers
from bertology.analyses.head_selection.gold_links import LinkCounts
from bertology.arrays import Array, BoolArray
from bertology.estimates.cross_fitting import (
    CrossFit,
    cross_fit,
    cross_fitted_p,
    cross_fitted_ratio,
    random_halves,
    resampled_cross_fit,
)
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.hypothesis_tests import MIN_UNITS, BestCandidate, compare_with_best, holm
from bertology.estimates.resampling import bootstrap_proportion
from bertology.results.measured_shape import MODEL_SERIES, N_KEPT_RESAMPLES, KeptResamples, Resamples
from bertology.results.shapes import AttributeValue, Head, Table

HELD_OUT_ACCURACY = "accuracy (held out)"
BEST_ACCURACY = "accuracy of the best head (not held out)"
INDISTINGUISHABLE = "heads not significantly worse"
P_VALUE = "p (Holm)"
ZERO = "zero"
SIGNIFICANCE_LEVEL = 0.05
MAX_LISTED_HEADS = 5
ACCURACY_UNIT = "proportion of examples, 0 to 1"
MISSING = Estimate(np.nan, np.nan, np.nan, 0, "t")


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

    `fit` has the candidates selected on each half of each split, `best` is the best candidate on all sentences.
    `baseline_variants` has the best variant of each baseline on all sentences.
    """

    fit: CrossFit
    best: BestCandidate
    baseline_variants: dict[str, int]

    @property
    def selected(self) -> int:
        """The candidate selected most often."""
        return self.fit.most_selected[0]


def select_heads(counts: LinkCounts, halves: BoolArray, *, min_examples: int, seed: int) -> list[HeadSelection | None]:
    """The selection for each label; None with fewer than `min_examples` examples, or none in one of the halves."""
    selections: list[HeadSelection | None] = []
    for label in range(len(counts.labels)):
        correct, total = counts.candidates(label), counts.total[:, label]
        enough = total.sum() >= min_examples
        fit = cross_fit_heads(counts, halves, label) if enough else None
        best = compare_with_best(correct, total, seed=seed) if enough else None
        if fit is None or best is None:
            selections.append(None)
            continue
        variants = {name: int(values[..., label].sum(0).argmax()) for name, values in counts.baseline_correct.items()}
        selections.append(HeadSelection(fit, best, variants))
    return selections


def cross_fit_heads(counts: LinkCounts, halves: BoolArray, label: int) -> CrossFit | None:
    """The heads with most correct answers for a label on each half."""
    correct = counts.candidates(label).astype(np.float64)
    return cross_fit(halves, counts.total[:, label], lambda half: half @ correct)


def selection_table(
    counts: LinkCounts, randomised: LinkCounts | None, *, baseline: str, min_examples: int, seed: int
) -> Table:
    """One row per label: held-out accuracy of the selected head, the best head on all sentences, and the baselines.

    `baseline` is the one that p values and differences compare with. Heads, directions and counts are attributes.
    """
    halves = random_halves(counts.unit_texts, seed=seed)
    selections = select_heads(counts, halves, min_examples=min_examples, seed=seed)
    is_scored = np.array([selection is not None for selection in selections], np.bool_)
    total = np.where(is_scored, counts.total, 0).astype(np.float64)
    n_units = (total > 0).sum(0)
    baselines: dict[str, dict[str, Estimates]] = {}
    for name, correct in counts.baseline_correct.items():
        variants = [selection and selection.baseline_variants[name] for selection in selections]
        accuracy = bootstrap_proportion(_variant_correct(correct, variants), total, seed=seed)
        baselines[name] = {HELD_OUT_ACCURACY: accuracy, BEST_ACCURACY: accuracy}
    accuracies, differences, p_values = zip(
        *(_evaluate(counts, label, selection, baseline) for label, selection in enumerate(selections)), strict=True
    )
    p = holm(np.array(p_values))
    bests = [selection and selection.best for selection in selections]
    difference = difference_measure(baseline)
    measures = {
        HELD_OUT_ACCURACY: Estimates.stack(accuracies),
        difference: Estimates.stack(differences),
        BEST_ACCURACY: _best_estimates(bests, n_units),
        INDISTINGUISHABLE: _exact([np.nan if best is None else len(best.indistinguishable) for best in bests], n_units),
        P_VALUE: _exact(p, n_units * np.isfinite(p)),
    }
    if randomised is not None:
        baselines[UNTRAINED_MODEL] = _untrained_baseline(randomised, halves, is_scored, seed)
    n_candidates = int(np.prod(counts.correct.shape[1:4]))
    baselines["all other heads"] = {INDISTINGUISHABLE: _exact(np.full(len(bests), n_candidates - 1.0), n_units)}
    baselines["significance level"] = {P_VALUE: _exact(np.full(len(bests), SIGNIFICANCE_LEVEL), n_units)}
    baselines[ZERO] = {difference: _exact(np.zeros(len(bests)), n_units)}
    table = Table(
        measures=measures,
        baselines=baselines,
        row_names=counts.labels,
        attributes=_attributes(counts, selections),
        notes=_notes(counts, is_scored, min_examples),
        units={
            HELD_OUT_ACCURACY: ACCURACY_UNIT,
            difference: "difference of proportions, -1 to 1",
            BEST_ACCURACY: ACCURACY_UNIT,
            INDISTINGUISHABLE: f"heads and directions, 0 to {n_candidates - 1}",
            P_VALUE: "probability, 0 to 1",
        },
    )
    table = table.with_kept_resamples(_resampled_accuracies(counts, selections, baseline, seed))
    items = counts.items
    return table if items is None else table.with_answers(lambda: link_answers(counts, items, selections))


def _evaluate(
    counts: LinkCounts, label: int, selection: HeadSelection | None, baseline: str
) -> tuple[Estimate, Estimate, float]:
    """Accuracy of the heads selected for a label, its difference from the baseline, and the p value of that."""
    if selection is None:
        return MISSING, MISSING, np.nan
    total = counts.total[:, label].astype(np.float64)
    correct = selection.fit.scores(counts.candidates(label))
    differences = correct - counts.baseline_correct[baseline][:, selection.baseline_variants[baseline], label]
    p = cross_fitted_p(np.where(total > 0, differences, np.nan))
    return cross_fitted_ratio(correct, total), cross_fitted_ratio(differences, total, lowest=-1.0), p


def _resampled_accuracies(
    counts: LinkCounts, selections: Sequence[HeadSelection | None], baseline: str, seed: int
) -> KeptResamples:
    """(resample, label) accuracies of the selected heads and their differences from the baseline; NaN if not scored."""
    resampled = np.full((2, N_KEPT_RESAMPLES, len(selections)), np.nan, np.float32)
    for label, selection in enumerate(selections):
        if selection is None:
            continue
        total = counts.total[:, label].astype(np.float64)
        correct = selection.fit.scores(counts.candidates(label))
        simple = counts.baseline_correct[baseline][:, selection.baseline_variants[baseline], label]
        for row, numerators in enumerate((correct, correct - simple)):
            resampled[row, :, label] = resampled_cross_fit(numerators, total, seed=seed, resamples=N_KEPT_RESAMPLES)
    names = (HELD_OUT_ACCURACY, difference_measure(baseline))
    n_rows = np.full(len(selections), len(counts.total), np.int64)
    return {(MODEL_SERIES, name): Resamples(values, n_rows) for name, values in zip(names, resampled, strict=True)}


def _notes(counts: LinkCounts, is_scored: BoolArray, min_examples: int) -> dict[str, str]:
    """Why a label is not scored, or has no interval."""
    notes: dict[str, str] = {}
    for label, scored, n, n_units in zip(
        counts.labels, is_scored, counts.total.sum(0).tolist(), (counts.total > 0).sum(0).tolist(), strict=True
    ):
        if not scored:
            notes[label] = f"Not scored: {n} example{'s' * (n != 1)} (minimum {min_examples})."
        elif n_units < MIN_UNITS:
            notes[label] = f"No interval and no p value: examples in {n_units} texts (minimum {MIN_UNITS})."
    return notes


def _variant_correct(correct: Array, variants: Sequence[int | None]) -> Array:
    """(unit, label) correct answers of the variant of each label; 0 without a variant."""
    columns = [np.zeros(len(correct)) if v is None else correct[:, v, label] for label, v in enumerate(variants)]
    return np.stack(columns, axis=1)


def _untrained_baseline(
    randomised: LinkCounts, halves: BoolArray, is_scored: BoolArray, seed: int
) -> dict[str, Estimates]:
    """The best head of the untrained model, selected in the same way from as many candidates."""
    accuracies: list[Estimate] = []
    bests: list[BestCandidate | None] = []
    for label, scored in enumerate(is_scored):
        correct, total = randomised.candidates(label), randomised.total[:, label]
        fit = cross_fit_heads(randomised, halves, label) if scored else None
        accuracies.append(MISSING if fit is None else cross_fitted_ratio(fit.scores(correct), total.astype(np.float64)))
        bests.append(compare_with_best(correct, total, seed=seed) if scored else None)
    n_units = np.where(is_scored, (randomised.total > 0).sum(0), 0)
    return {HELD_OUT_ACCURACY: Estimates.stack(accuracies), BEST_ACCURACY: _best_estimates(bests, n_units)}


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
    """The head selected most often for each row and how often, the best head on all sentences, baseline variants."""
    scored = list(enumerate(selections))
    attributes = head_attributes([s and candidate_head(counts, s.selected) for s in selections])
    if any(counts.directions):
        attributes["direction"] = tuple(s and candidate_direction(counts, s.selected) for s in selections)
    attributes["chosen_in"] = tuple(s and round(s.fit.most_selected[1], 3) for s in selections)
    attributes["best_head"] = tuple(s and str(candidate_head(counts, s.best.index)) for s in selections)
    if any(counts.directions):
        attributes["best_direction"] = tuple(s and candidate_direction(counts, s.best.index) for s in selections)
    attributes["n_correct"] = tuple(s and int(counts.candidates(label)[:, s.best.index].sum()) for label, s in scored)
    attributes["n_examples"] = tuple(counts.total.sum(0).tolist())
    attributes["not_significantly_worse"] = tuple(s and _list_indistinguishable(counts, n, s.best) for n, s in scored)
    for name, variants in counts.baseline_variants.items():
        if any(variants):
            attributes[name] = tuple(s and variants[s.baseline_variants[name]] for s in selections)
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
    appended = Table(
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
    resamples = {  # the new row is not resampled
        key: Resamples(np.pad(values, ((0, 0), (0, 1)), constant_values=np.nan), np.append(n_rows, 0))
        for key, (values, n_rows) in table.kept_resamples.items()
    }
    return appended.with_kept_resamples(resamples).with_answers(table.answers)


def _append_estimate(column: Estimates, estimate: Estimate | None) -> Estimates:
    if estimate is None:
        return Estimates.concatenate([column, Estimates.empty(1)])
    return Estimates.concatenate([column, Estimates.stack([replace(estimate, interval=column.interval)])])
