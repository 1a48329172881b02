"""Data efficiency of frozen features: ratios of training set sizes, and crossing points of curves (arora2020)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import analysis
from bertology.analyses.frozen_features.dataset import DatasetOptions
from bertology.analyses.frozen_features.train_size_curves import CurveComparisons, CurveOptions, compute_learning_curves
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.shapes import Table

NAME = "features/data_efficiency"
SCORE_DIFFERENCE, DATA_RATIO, CROSSING_POINT = "score difference", "data ratio", "crossing point"


@analysis(
    question="How many times more training data does the weaker of two features need to reach the same score?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("arora2020",),
    version=2,
)
def data_efficiency(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    curve_options: CurveOptions = CurveOptions(),
    dataset_options: DatasetOptions = DatasetOptions(),
) -> Table:
    """Ratio of the training set sizes with which two features reach the same score; 1: equally efficient.

    One row per pair of features, the better one with full data first, from the curves of features/learning_curves.
    `data ratio`: the size of the training set divided by the size at which the better feature reaches the weaker one's
    final score (Arora et al. report this fraction; 1 to 16 in their tasks). Curves are made monotonic by isotonic
    regression and interpolated linearly in the logarithm of the size. If the better feature reaches that score at the
    smallest size, the ratio is a lower bound (attribute `ratio_is_lower_bound`). `crossing point` is the number of
    examples at which the order of the two features last changes, missing if it never does. `score difference` is the
    difference with full data.

    Intervals resample examples and seeds together; that of the crossing point uses the resamples that have one
    (attribute `resamples_with_crossing`, a proportion). Baselines: zero, the same data, the smallest training size.
    """
    curves = compute_learning_curves(encoder, corpus, cache, dataset_options, curve_options, analysis_name=NAME)
    if len(curves.features) < 2:
        raise Refusal(f"{NAME} was given one feature", "two or more", "Name them with --features")
    comparisons = CurveComparisons(curves, dataset_options.seed)
    pairs = [comparisons.stronger_first(*pair) for pair in combinations(range(len(curves.features)), 2)]
    rows = tuple(f"{curves.features[better]} over {curves.features[weaker]}" for better, weaker in pairs)
    results = [comparisons.compare(*pair) for pair in pairs]
    references = {
        SCORE_DIFFERENCE: ("zero", 0.0),
        DATA_RATIO: ("same data (1)", 1.0),
        CROSSING_POINT: ("smallest training size", float(curves.sizes[0])),
    }
    n_test = len(curves.dataset.test)
    return Table(
        row_names=rows,
        measures={
            SCORE_DIFFERENCE: Estimates.stack([result.final_difference for result in results]),
            DATA_RATIO: Estimates.stack([result.data_ratio for result in results]),
            CROSSING_POINT: Estimates.stack([result.crossing_size for result in results]),
        },
        baselines={
            name: {measure: Estimates.exact(np.full(len(rows), value), n_test)}
            for measure, (name, value) in references.items()
        },
        units={
            SCORE_DIFFERENCE: f"difference of {curves.dataset.task.metric}, -1 to 1",
            DATA_RATIO: "ratio of training set sizes",
            CROSSING_POINT: "training examples",
        },
        sample=curves.dataset.sample | {"smallest training set": curves.sizes[0]},
        attributes={
            "ratio_is_lower_bound": tuple(result.ratio_is_bound for result in results),
            "resamples_with_crossing": tuple(result.p_crossing for result in results),
        },
    )
