"""Scores per example, and how much an intervention changes them on the same examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import BoolArray, FloatArray, IntArray
from bertology.estimates.estimate import Estimates
from bertology.estimates.hypothesis_tests import holm, paired_test
from bertology.estimates.metrics import Counts, bootstrap_paired_runs, bootstrap_runs
from bertology.estimates.resampling import (
    bootstrap_mean,
    bootstrap_sentences_and_seeds,
    exact_where_unanimous,
    ratio,
    widen_by_rule_of_three,
)
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES, CostMeasures, ReferenceScore, RemovalCosts

if TYPE_CHECKING:
    from bertology.analyses.evaluation.evaluation import Evaluation
    from bertology.analyses.text_attacks.partial_scores import PartialScores

SIGNIFICANCE_LEVEL = 0.05
NEGLIGIBLE = 1e-4
"""Differences of one example's loss up to this many nats are rounding errors and count as 0.

The same forward pass in single precision computed in another order (other batches, heads multiplied by 1, resumed from
a layer) moved one example of mini-pairs by at most 5e-5 nats, of mini by 6e-6, of tiny by 1e-6; scaling one head by
0.999 moves most examples by as much and more. The threshold is a ten-thousandth of the gold label's probability, which
no score of fewer than ten thousand examples shows. In half precision rounding errors reach 0.3, with either sign: they
are left to the test, which treats them as noise.
"""
SCORE, LOSS = "change in score", "change in loss"
USEFUL, HARMFUL = "significantly useful", "significantly harmful"
SCORE_P_VALUE, LOSS_P_VALUE = "p of change in score (Holm)", "p of change in loss (Holm)"
ZERO, MAJORITY_CLASS, SIGNIFICANCE = "zero", "majority class", "significance level"


@dataclass(frozen=True)
class Scores:
    """(example,) losses in nats, and counts of correct and total."""

    losses: FloatArray
    counts: Counts

    def to_lists(self) -> list[list[float]]:
        """Losses, correct and total as lists, for JSON."""
        return [self.losses.tolist(), self.counts.correct.tolist(), self.counts.total.tolist()]

    @classmethod
    def from_arrays(cls, losses: FloatArray, correct: FloatArray, total: FloatArray) -> Scores:
        """Scores from the arrays, or lists, that `to_lists` gives."""
        return cls(np.asarray(losses), Counts(np.asarray(correct), np.asarray(total)))

    def restricted_to(self, example_mask: BoolArray) -> Scores:
        """The scores of a subset of the examples."""
        return Scores(self.losses[example_mask], _subset(self.counts, example_mask))


@dataclass(frozen=True)
class ScoreChange:
    """(intervention,) changes in score and loss, after minus before, and their p values with Holm's correction."""

    score: Estimates
    loss: Estimates
    score_p: Estimates
    loss_p: Estimates

    @property
    def is_useful(self) -> Estimates:
        """1 if the loss is significantly higher without the removed part, at the 5 % level after Holm's correction."""
        return self._significant_flags(self.loss.value > 0)

    @property
    def is_harmful(self) -> Estimates:
        """1 if the loss is significantly lower without the removed part."""
        return self._significant_flags(self.loss.value < 0)

    def measures(self) -> dict[str, Estimates]:
        """Changes, significance and p values by measure name."""
        return {
            SCORE: self.score,
            LOSS: self.loss,
            USEFUL: self.is_useful,
            HARMFUL: self.is_harmful,
            SCORE_P_VALUE: self.score_p,
            LOSS_P_VALUE: self.loss_p,
        }

    def _significant_flags(self, direction: BoolArray) -> Estimates:
        significant = direction & (self.loss_p.value < SIGNIFICANCE_LEVEL)
        is_tested = np.isfinite(self.loss_p.value)
        return Estimates.exact(np.where(is_tested, significant.astype(np.float64), np.nan), self.loss_p.n)


def score_change(
    baseline: Scores, variants: Sequence[Scores], *, seed: int, example_mask: BoolArray | None = None
) -> ScoreChange:
    """The change in score and loss of each variant, on all examples or those of the mask.

    The score is pooled over examples. p values are those of two-sided paired tests; for the pooled score, of each
    example's influence on it. Losses and scores are each corrected for the number of variants.
    """
    mask = np.ones(len(baseline.losses), np.bool_) if example_mask is None else example_mask
    before, after = baseline.restricted_to(mask), [variant.restricted_to(mask) for variant in variants]
    loss_differences = np.stack([scores.losses - before.losses for scores in after], 1)
    influences = np.stack([_influence(scores.counts) - _influence(before.counts) for scores in after], 1)
    n = np.full(len(variants), mask.sum())
    return ScoreChange(
        _score_differences(before.counts, [s.counts for s in after], seed, is_different=(loss_differences != 0).any(0)),
        bootstrap_mean(loss_differences, seed=seed),
        _p_values(influences, n),
        loss_p_values(loss_differences),
    )


def loss_p_values(differences: FloatArray) -> Estimates:
    """P values of (example, ...) changes in loss, two-sided, with Holm's correction for their number."""
    measured = np.isfinite(differences)
    return _p_values(np.where(measured & (np.abs(differences) <= NEGLIGIBLE), 0.0, differences), measured.sum(0))


def mean_scores(scores: Sequence[Scores]) -> Scores:
    """Scores averaged over several variants, example by example."""
    return Scores.from_arrays(
        np.mean([s.losses for s in scores], 0),
        np.mean([s.counts.correct for s in scores], 0),
        np.mean([s.counts.total for s in scores], 0),
    )


def _score_differences(before: Counts, after: Sequence[Counts], seed: int, *, is_different: BoolArray) -> Estimates:
    """Changes in score; a variant that is different may change it even if it did so in none of n examples."""
    # (example, variant, correct and total before and after)
    sums = np.stack([np.stack([before.correct, before.total, c.correct, c.total], 1) for c in after], 1)[None]
    estimates = bootstrap_sentences_and_seeds(sums, _difference, seed=seed)
    if sums.shape[1] > 1:
        return widen_by_rule_of_three(estimates, is_different)
    missing = np.full(estimates.shape, np.nan)
    return estimates.model_copy(update={"low": missing, "high": missing})


def _difference(sums: FloatArray) -> FloatArray:
    correct_before, total_before, correct_after, total_after = np.moveaxis(sums, -1, 0)
    # Two rounded quotients would differ by a rounding error where the counts are equal.
    numerator = correct_after * total_before - correct_before * total_after
    difference = ratio(numerator, total_after * total_before)
    is_defined = (total_after > 0) & (total_before > 0)
    return np.where(is_defined, difference, ratio(correct_after, total_after) - ratio(correct_before, total_before))


def _subset(counts: Counts, example_mask: BoolArray) -> Counts:
    return Counts(counts.correct[example_mask], counts.total[example_mask])


def _influence(counts: Counts) -> FloatArray:
    """(example,) values whose mean and standard error are those of the pooled score (delta method)."""
    score = counts.score
    return score + (counts.correct - score * counts.total) / max(float(counts.total.mean()), 1e-12)


def _p_values(differences: FloatArray, n: IntArray) -> Estimates:
    one_sided = np.minimum(paired_test(differences), paired_test(-differences))
    adjusted = holm(np.minimum(1.0, 2 * one_sided))
    return Estimates.exact(adjusted, np.where(np.isfinite(adjusted), n, 0))


def reference_score(
    name: str, runs: Sequence[Counts], baseline: str, baseline_counts: Counts, seed: int
) -> ReferenceScore:
    """The mean score of some runs beside a baseline on the same examples; the difference resamples pairs.

    If it is 0 in every example, as of a model that always predicts the majority class, its interval has a width all the
    same: other examples may differ.
    """
    estimates = (
        bootstrap_runs(runs, seed),
        bootstrap_runs([baseline_counts], seed),
        bootstrap_paired_runs(runs, [baseline_counts] * len(runs), seed),
    )
    score, baseline_score, difference = (Estimates.full((), estimate) for estimate in estimates)
    return ReferenceScore(
        name=name,
        baseline=baseline,
        score=score,
        baseline_score=baseline_score,
        difference=exact_where_unanimous(difference, lowest=-1.0),
    )


@dataclass(frozen=True)
class ScoreChangeReport:
    """Units, baselines and sample of the score changes of one evaluation."""

    evaluation: Evaluation
    baseline_scores: Scores

    def units(self) -> dict[str, str]:
        """The unit of each measure."""
        return {
            SCORE: f"change in {self.evaluation.metric}, -1 to 1",
            LOSS: "nats per example",
            USEFUL: "1: the loss is higher without it (p < 0.05); 0: not",
            HARMFUL: "1: the loss is lower without it (p < 0.05); 0: not",
            SCORE_P_VALUE: "probability, 0 to 1",
            LOSS_P_VALUE: "probability, 0 to 1",
        }

    def sample(self) -> dict[str, float]:
        """Number of examples, and score and loss of the intact model."""
        return {
            **self.evaluation.sample(),
            f"{self.evaluation.metric} of the intact model": round(self.baseline_scores.counts.score, 6),
            "nats per example of the intact model": round(float(self.baseline_scores.losses.mean()), 6),
        }

    def costs(self, part: str, operation: str = "") -> RemovalCosts:
        """Which measures say what removing a part costs."""
        return RemovalCosts(
            part=part,
            metric=self.evaluation.metric,
            significance_level=SIGNIFICANCE_LEVEL,
            operations={operation: CostMeasures(loss=LOSS, score=SCORE, p_value=LOSS_P_VALUE)},
        )

    def baselines(self, shape: tuple[int, ...]) -> dict[str, dict[str, Estimates]]:
        """No change, the significance level, and the change to the score of the majority class."""
        zero = Estimates.exact(np.zeros(shape))
        level = Estimates.exact(np.full(shape, SIGNIFICANCE_LEVEL))
        baselines: dict[str, dict[str, Estimates]] = {
            ZERO: dict.fromkeys((SCORE, LOSS, USEFUL, HARMFUL), zero),
            SIGNIFICANCE: dict.fromkeys((SCORE_P_VALUE, LOSS_P_VALUE), level),
        }
        if self.evaluation.majority is not None:
            difference = self.evaluation.majority.score - self.baseline_scores.counts.score
            baselines[MAJORITY_CLASS] = {SCORE: Estimates.exact(np.full(shape, difference))}
        return baselines


def score_answers(evaluation: Evaluation, scores: Mapping[str, Scores | PartialScores]) -> Iterator[Answer]:
    """Loss and score of each example under each condition, such as the intact model or without a head.

    `correct` is what the score counts (tokens, entities, answers) divided by their number. Examples without any, or
    that could not be evaluated, are left out.
    """
    for number, example in enumerate(evaluation.examples):
        item = {"item": example.id or str(number + 1), "text": " | ".join(part.text for part in example.segments)}
        for condition, condition_scores in scores.items():
            counts = condition_scores.counts
            correct, total = float(counts.correct[number]), float(counts.total[number])
            if not total:
                continue
            yield item | {
                "series": MODEL_SERIES,
                "condition": condition,
                "gold": example.label or "",
                "loss": float(condition_scores.losses[number]),
                "correct": correct / total,
            }
