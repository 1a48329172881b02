"""Learning curves of classifiers on frozen features (arora2020)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.answers import run_answers
from bertology.analyses.frozen_features.dataset import DatasetOptions
from bertology.analyses.frozen_features.score_grid import (
    CorrectTotal,
    counts_by_seed,
    score_from_counts,
    score_with_interval,
)
from bertology.analyses.frozen_features.train_size_curves import CurveOptions, compute_learning_curves
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_sentences_and_seeds, exact_where_unanimous
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES, change_measure
from bertology.results.shapes import Curve

NAME = "features/learning_curves"
ZERO = "zero"


@analysis(
    question="How does the advantage of contextual features change with the amount of training data?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("arora2020",),
    version=6,
    cost=Cost(15.0),
    answers=True,
)
def learning_curves(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    curve_options: CurveOptions = CurveOptions(),
    dataset_options: DatasetOptions = DatasetOptions(),
) -> Curve:
    """Test score of a classifier on frozen features, 0 to 1, by number of training examples.

    One measure per feature: span F1 for entities, else accuracy (features/comparison describes the classifiers and
    their validation). Training sizes are evenly spaced on a log scale, from --min-train-fraction to all examples; with
    one seed a smaller training set is part of a larger one. The validation set has the same size at every training
    size. Arora et al. take fractions 1/2^k.

    `model - static` is the difference of two features on the same examples and seeds; `reduction of (model - static)
    with full data` is this difference minus the one with all training examples, paired in the same way.
    features/data_efficiency derives crossing points and data ratios from the same cached scores. `change of (model -
    static) from half the training data` is what the second half of all training examples adds to the difference with
    full data, missing at smaller sizes: a difference that still changes says little about the features.

    Baselines at each size: the majority class of the training examples; for token tasks also the most frequent label of
    the word; for differences, zero. Scores are micro-averaged over seeds; intervals resample examples and seeds
    together.
    """
    curves = compute_learning_curves(encoder, corpus, cache, dataset_options, curve_options, analysis_name=NAME)
    pairs = list(combinations(range(len(curves.features)), 2))

    def score_differences(correct_total: CorrectTotal) -> CorrectTotal:
        scores = score_from_counts(correct_total)
        first, second = ([pair[side] for pair in pairs] for side in (0, 1))
        return scores[..., first, :] - scores[..., second, :]

    def reductions(correct_total: CorrectTotal) -> CorrectTotal:
        differences = score_differences(correct_total)
        return differences - differences[..., -1:]

    def changes(correct_total: CorrectTotal) -> CorrectTotal:
        """From counts with half and all of the training data; missing at all sizes but the last."""
        differences = score_differences(correct_total)
        missing = np.full((*differences.shape[:-1], len(curves.sizes) - 1), np.nan)
        return np.concatenate([missing, differences[..., 1:] - differences[..., :1]], -1)

    counts, seed = curves.correct_total, dataset_options.seed
    half_and_full = np.stack([curves.half_correct_total, counts[..., -1, :]], -2)
    estimates = Estimates.concatenate(
        [
            score_with_interval(counts, seed=seed),
            exact_where_unanimous(bootstrap_sentences_and_seeds(counts, score_differences, seed=seed), lowest=-1.0),
            bootstrap_sentences_and_seeds(counts, reductions, seed=seed),
            exact_where_unanimous(bootstrap_sentences_and_seeds(half_and_full, changes, seed=seed), lowest=-1.0),
        ]
    )
    differences = [f"{curves.features[first]} - {curves.features[second]}" for first, second in pairs]
    differences = [
        *differences,
        *(f"reduction of ({difference}) with full data" for difference in differences),
        *map(change_measure, differences),
    ]
    baselines = {
        name: dict.fromkeys(curves.features, score_with_interval(counts, seed=seed))
        for name, counts in curves.baselines.items()
    }
    if differences:
        zeros = Estimates.exact(np.zeros(len(curves.sizes)), len(curves.dataset.test))
        baselines[ZERO] = dict.fromkeys(differences, zeros)
    metric = curves.dataset.task.metric
    curve = Curve(
        x_name="training examples",
        x=np.array(curves.sizes, np.float64),
        measures={name: estimates[index] for index, name in enumerate([*curves.features, *differences])},
        baselines=baselines,
        units=dict.fromkeys(curves.features, f"{metric}, 0 to 1")
        | dict.fromkeys(differences, f"difference of {metric}, -1 to 1"),
        sample=curves.dataset.sample,
    )

    def answers() -> Iterator[Answer]:
        """What is right of each test example, by feature or baseline and training size."""
        by_series = {(MODEL_SERIES, name): counts[:, :, index] for index, name in enumerate(curves.features)}
        by_series |= {(name, None): sums for name, sums in curves.baselines.items()}
        for (series, feature), by_size in by_series.items():
            for index, size in enumerate(curves.sizes):
                condition: Answer = {"series": series, "feature": feature, "training examples": size}
                yield from run_answers(curves.dataset.test, counts_by_seed(by_size[:, :, index]), condition)

    return curve.with_answers(answers)
