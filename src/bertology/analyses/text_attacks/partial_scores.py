"""Scores of perturbed examples, some of which may no longer be evaluable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bertology.analyses.evaluation.score_change import Scores, score_change
from bertology.arrays import BoolArray, FloatArray, IntArray
from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate
from bertology.estimates.metrics import Counts
from bertology.estimates.resampling import ratio
from bertology.training.data_split import sort_by_content

if TYPE_CHECKING:
    from bertology.analyses.evaluation.evaluation import Evaluation


@dataclass(frozen=True)
class PartialScores:
    """(example,) counts and losses in nats; a total of 0 and NaN for examples that could not be evaluated."""

    counts: Counts
    losses: FloatArray

    @property
    def is_evaluated(self) -> BoolArray:
        """(example,) whether it was evaluated."""
        return self.counts.total > 0

    @classmethod
    def missing(cls, n_examples: int) -> PartialScores:
        """Scores of examples of which none could be evaluated."""
        return cls(Counts(*np.zeros((2, n_examples))), np.full(n_examples, np.nan))


def number_examples(evaluation: Evaluation) -> list[Example]:
    """The distinct examples sorted by content, with their indices as ids."""
    return [replace(example, id=str(i)) for i, example in enumerate(distinct_examples(evaluation))]


def distinct_examples(evaluation: Evaluation) -> list[Example]:
    """The distinct examples sorted by content."""
    return sort_by_content(list({id(example): example for example in evaluation.examples}.values()))


def baseline_by_example(evaluation: Evaluation) -> Counts | None:
    """Counts of the baseline of an evaluation for the distinct examples; None if it has none."""
    if evaluation.baseline_counts is None:
        return None
    index_of_id = {id(example): index for index, example in enumerate(distinct_examples(evaluation))}
    indices = np.array([index_of_id[id(example)] for example in evaluation.examples])
    return sum_by_example(_without_losses(evaluation.baseline_counts), indices, len(index_of_id)).counts


def evaluate_perturbed(
    encoder: Encoder, evaluation: Evaluation, examples: Sequence[Example], n_examples: int, *, seed: int
) -> PartialScores:
    """Scores of perturbed examples, whose ids are their indices among `n_examples`."""
    from bertology.analyses.evaluation.evaluation import with_perturbed_examples

    if not examples:
        return PartialScores.missing(n_examples)
    try:
        perturbed = with_perturbed_examples(encoder, evaluation, examples, seed=seed)
    except Refusal:
        # All examples are too long for the model.
        return PartialScores.missing(n_examples)
    indices = np.array([int(example.id) for example in perturbed.examples])
    return sum_by_example(perturbed.scores(encoder.forward), indices, n_examples)


def sum_by_example(scores: Scores, indices: IntArray, n_examples: int) -> PartialScores:
    """Counts and mean losses of examples, from the scores of texts and the example of each text."""
    correct, total, losses, n_texts = np.zeros((4, n_examples))
    for sums, values in (
        (correct, scores.counts.correct),
        (total, scores.counts.total),
        (losses, scores.losses),
        (n_texts, 1.0),
    ):
        np.add.at(sums, indices, values)
    return PartialScores(Counts(correct, total), ratio(losses, n_texts, empty=np.nan))


def paired_score_drop(before: Counts, after: Counts, *, seed: int) -> Estimate:
    """Score before minus score after, on the examples evaluated both times, with an interval that resamples them."""
    is_paired = (before.total > 0) & (after.total > 0)
    if not is_paired.any():
        return Estimate(np.nan, np.nan, np.nan, 0)
    change = score_change(_without_losses(before), [_without_losses(after)], seed=seed, example_mask=is_paired)
    return change.score.map(lambda values: 0.0 - values)[0]


def _without_losses(counts: Counts) -> Scores:
    return Scores(np.full(len(counts.total), np.nan), counts)
