"""Accuracy, F1 and Matthews' correlation from counts per example, with bootstrap intervals over examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertology.arrays import FloatArray
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.resampling import (
    bootstrap_proportion,
    exact_where_unanimous,
    percentile_interval,
    ratio,
    resampled_ratios,
)

MetricEstimates = dict[str, Estimate]


@dataclass(frozen=True)
class Counts:
    """Correct and total per example: 1 of 1 for a class; 2 TP of (TP + FP) + (TP + FN) for spans, which gives F1."""

    correct: FloatArray
    total: FloatArray

    @property
    def score(self) -> float:
        """Accuracy, or micro F1 of spans; 0 if the total is 0."""
        return float(ratio(self.correct.sum(), self.total.sum()))


def bootstrap_score(counts: Counts) -> Estimate:
    """The score, between 0 and 1, with a 95 % bootstrap interval over examples."""
    return bootstrap_proportion(counts.correct[:, None], counts.total[:, None], seed=0).with_n(len(counts.correct))[0]


def bootstrap_runs(runs: Sequence[Counts], seed: int) -> Estimate:
    """The mean score of several runs on the same examples, with an interval that resamples examples and runs."""
    estimate = _mean_over_runs(*_run_scores(runs, seed), seed, len(runs[0].correct))
    return exact_where_unanimous(Estimates.stack([estimate]))[0]


def bootstrap_paired_runs(after: Sequence[Counts], before: Sequence[Counts], seed: int) -> Estimate:
    """The mean difference in score between pairs of runs with the same seed and examples.

    The interval resamples pairs, so an example that is hard for both, or a seed that is bad for both, does not widen
    it.
    """
    (scores_after, resampled_after), (scores_before, resampled_before) = (
        _run_scores(runs, seed) for runs in (after, before)
    )
    n = len(after[0].correct)
    return _mean_over_runs(scores_after - scores_before, resampled_after - resampled_before, seed, n)


def _run_scores(runs: Sequence[Counts], seed: int) -> tuple[FloatArray, FloatArray]:
    """(run,) scores, and (resample, run) scores of resampled examples, which are the same for the same seed."""
    correct, total = np.stack([run.correct for run in runs], 1), np.stack([run.total for run in runs], 1)
    sums = resampled_ratios(np.concatenate([correct, total], axis=1), np.ones(len(correct)), seed=seed)
    return ratio(correct.sum(0), total.sum(0)), ratio(sums[:, : len(runs)], sums[:, len(runs) :])


def _mean_over_runs(scores: FloatArray, resampled: FloatArray, seed: int, n_examples: int) -> Estimate:
    runs = np.random.default_rng(seed).integers(resampled.shape[1], size=resampled.shape)
    low, high = percentile_interval(np.take_along_axis(resampled, runs, axis=1).mean(1))
    value = float(scores.mean())
    return Estimate(value, min(float(low), value), max(float(high), value), n_examples)


def count_correct_labels(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Counts:
    """Counts of correct labels in each example's sequence of labels."""
    pairs = zip(gold, predicted, strict=True)
    correct = [sum(a == b for a, b in zip(labels, guesses, strict=True)) for labels, guesses in pairs]
    return Counts(np.array(correct, np.float64), np.array([len(labels) for labels in gold], np.float64))


def macro_f1_and_mcc(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> MetricEstimates:
    """Macro-averaged F1 (0 to 1) over the labels that occur, and Matthews' correlation (-1 to 1, 0 is chance)."""
    labels = sorted({label for sequence in (*gold, *predicted) for label in sequence})
    index = {label: i for i, label in enumerate(labels)}
    confusion = np.zeros((len(gold), len(labels) ** 2), np.float64)
    for row, (gold_labels, predicted_labels) in enumerate(zip(gold, predicted, strict=True)):
        for label, guess in zip(gold_labels, predicted_labels, strict=True):
            confusion[row, index[label] * len(labels) + index[guess]] += 1
    used = np.flatnonzero(confusion.sum(0))
    # Both metrics are the same for counts and for proportions of all counts, and proportions are resampled.
    resampled = resampled_ratios(confusion[:, used], confusion.sum(1), seed=0)
    total = confusion.sum(0, keepdims=True)[:, used]
    rows = np.concatenate([total / total.sum(), resampled[np.isfinite(resampled).all(1)]])
    marginals = _label_marginals(rows, used // len(labels), used % len(labels), len(labels))
    return {
        "macro-F1": _with_interval(_macro_f1(*marginals), len(gold)),
        "MCC": _with_interval(_mcc(*marginals, rows.sum(1)), len(gold)),
    }


def _with_interval(values: FloatArray, n: int) -> Estimate:
    """The first value, with the percentile interval of the others."""
    low, high = percentile_interval(values[1:]) if n > 1 and len(values) > 1 else (np.nan, np.nan)
    return Estimate(float(values[0]), float(low), float(high), n)


def _label_marginals(
    rows: FloatArray, gold_labels: NDArray[np.intp], predicted_labels: NDArray[np.intp], n_labels: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(row, label) proportions of true positives, gold labels and predicted labels."""
    true_positives, gold, predicted = (np.zeros((len(rows), n_labels)) for _ in range(3))
    for cell, (label, guess) in enumerate(zip(gold_labels, predicted_labels, strict=True)):
        gold[:, label] += rows[:, cell]
        predicted[:, guess] += rows[:, cell]
        if label == guess:
            true_positives[:, label] += rows[:, cell]
    return true_positives, gold, predicted


def _macro_f1(true_positives: FloatArray, gold: FloatArray, predicted: FloatArray) -> FloatArray:
    return ratio(2 * true_positives, gold + predicted).sum(1) / (gold + predicted > 0).sum(1)


def _mcc(true_positives: FloatArray, gold: FloatArray, predicted: FloatArray, total: FloatArray) -> FloatArray:
    covariance = true_positives.sum(1) * total - (gold * predicted).sum(1)
    scale = np.sqrt((total**2 - (predicted**2).sum(1)).clip(0) * (total**2 - (gold**2).sum(1)).clip(0))
    return np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 1e-12)
