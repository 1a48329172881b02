"""Learning curves of frozen features, and comparisons of two of them: data ratio and crossing point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Interval
from scipy.optimize import isotonic_regression

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.frozen_features.dataset import DatasetOptions, FrozenFeatureDataset, build_dataset
from bertology.analyses.frozen_features.downstream_models import ClassifierOption, parse_classifiers
from bertology.analyses.frozen_features.extractors import DEFAULT_FEATURES, FeaturesOption, parse_features
from bertology.analyses.frozen_features.predictions import extract_all
from bertology.analyses.frozen_features.score_grid import CorrectTotal, ScoreGrid, score_from_counts
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.resampling import exact_where_unanimous, percentile_interval, resampled_sums


@dataclass(frozen=True)
class CurveOptions:
    """Features, classifier and training sizes of learning curves."""

    features: FeaturesOption = DEFAULT_FEATURES
    classifier: ClassifierOption = "linear"
    n_train_sizes: Annotated[
        int, Interval(ge=1, le=1000), "Number of training sizes, evenly spaced on a log scale."
    ] = 7
    min_train_fraction: Annotated[
        float, Interval(gt=0, le=1), "Smallest training size, as a fraction of the training set."
    ] = 0.01


@dataclass(frozen=True)
class LearningCurves:
    """Counts by training size.

    `correct_total` is (seed, example, feature, size, 2), each baseline (seed, example, size, 2). `half_correct_total`
    is (seed, example, feature, 2), with half of all training data.
    """

    dataset: FrozenFeatureDataset
    features: tuple[str, ...]
    sizes: tuple[int, ...]
    correct_total: CorrectTotal
    half_correct_total: CorrectTotal
    baselines: Mapping[str, CorrectTotal]


def compute_learning_curves(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    dataset_options: DatasetOptions,
    curve_options: CurveOptions,
    *,
    analysis_name: str,
) -> LearningCurves:
    """Train the classifier on every feature at every size."""
    n_sizes, min_fraction = curve_options.n_train_sizes, curve_options.min_train_fraction
    if n_sizes < 1 or not 0 < min_fraction <= 1:
        raise Refusal(
            f"--n-train-sizes was given {n_sizes} and --min-train-fraction {min_fraction}",
            "1 or more, and a fraction above 0 and at most 1",
            "Leave them out",
        )
    dataset = build_dataset(corpus, dataset_options, analysis_name=analysis_name)
    extractors = parse_features(curve_options.features, encoder)
    (classifier, *_) = parse_classifiers(curve_options.classifier, dataset.task.name, "--classifier")
    grid, sizes = ScoreGrid(dataset, cache), dataset.train_sizes(n_sizes, min_fraction)
    all_sizes = sorted({*sizes, dataset.half_train_size})
    counts = grid.run(extract_all(dataset, extractors, cache), [classifier], all_sizes)[:, :, :, 0]
    half_counts = counts[..., all_sizes.index(dataset.half_train_size), :]
    counts = counts[..., [all_sizes.index(size) for size in sizes], :]
    by_size = [grid.baselines(size) for size in sizes]
    baselines = {name: np.stack([counts[name] for counts in by_size], 2) for name in by_size[0]}
    names = tuple(extractor.name for extractor in extractors)
    return LearningCurves(dataset, names, tuple(sizes), counts, half_counts, baselines)


class CurveComparison(NamedTuple):
    """Comparison of two features, the stronger one first; `p_crossing` is the proportion of resamples that cross."""

    final_difference: Estimate
    data_ratio: Estimate
    crossing_size: Estimate
    p_crossing: float
    ratio_is_bound: bool


class CurveComparisons:
    """Comparisons of pairs of curves, with intervals from resampling examples and seeds together."""

    def __init__(self, curves: LearningCurves, seed: int) -> None:
        total, resampled = resampled_sums(curves.correct_total, seed=seed)
        self._scores: FloatArray = np.concatenate([score_from_counts(total)[None], score_from_counts(resampled)])
        self._isotonic_scores: FloatArray = isotonic_fit(self._scores)
        self._log_sizes = np.log(np.array(curves.sizes, np.float64))
        self._n_examples = curves.correct_total.shape[1]

    def stronger_first(self, left: int, right: int) -> tuple[int, int]:
        """The two features, the one with the higher score with full data first."""
        return (left, right) if self._scores[0, left, -1] >= self._scores[0, right, -1] else (right, left)

    def compare(self, left: int, right: int) -> CurveComparison:
        """Compare the curve of the first feature with that of the second."""
        first, second = self._scores[:, left], self._scores[:, right]
        data_ratio = self._data_ratio(self._isotonic_scores[:, left], self._isotonic_scores[:, right])
        crossing = np.exp(last_crossing(self._log_sizes, first - second))
        is_bound = bool(self._isotonic_scores[0, left, 0] >= self._isotonic_scores[0, right, -1])
        return CurveComparison(
            exact_where_unanimous(Estimates.stack([self._estimate(first[:, -1] - second[:, -1])]), lowest=-1.0)[0],
            self._estimate(data_ratio),
            self._estimate(crossing),
            float(np.isfinite(crossing[1:]).mean()),
            is_bound,
        )

    def _data_ratio(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The full training size over the size at which the first curve reaches the final score of the second.

        If the final score of the first is lower, the roles are exchanged and the ratio is inverted, below 1.
        """
        ahead = first[:, -1] >= second[:, -1]
        better, worse = (np.where(ahead[:, None], *pair) for pair in ((first, second), (second, first)))
        ratio = np.exp(self._log_sizes[-1] - first_x_reaching(self._log_sizes, better, worse[:, -1]))
        return np.where(ahead, ratio, 1 / ratio)

    def _estimate(self, values: FloatArray) -> Estimate:
        """The first value, with an interval from the finite ones of the others, which are resamples."""
        value = float(values[0])
        if not np.isfinite(value):
            return Estimate(np.nan, np.nan, np.nan, 0)
        low, high = percentile_interval(values[1:])
        return Estimate(value, float(np.fmin(low, value)), float(np.fmax(high, value)), self._n_examples)


def last_crossing(x: FloatArray, differences: FloatArray) -> FloatArray:
    """(...) where (..., point) differences last change sign, by linear interpolation; NaN if they never do."""
    before, after = differences[..., :-1], differences[..., 1:]
    crosses = before * after < 0
    # A point with difference 0 between different signs is a crossing as well.
    touches = (differences[..., 1:-1] == 0) & (differences[..., :-2] * differences[..., 2:] < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = x[:-1] + (x[1:] - x[:-1]) * before / (before - after)
    crossings = np.where(crosses, between, -np.inf)
    crossings[..., 1:] = np.where(touches, np.maximum(crossings[..., 1:], x[1:-1]), crossings[..., 1:])
    last = crossings.max(-1, initial=-np.inf)
    return np.where(np.isfinite(last), last, np.nan)


def isotonic_fit(curves: FloatArray) -> FloatArray:
    """The non-decreasing (..., point) curves nearest to these in squared error."""
    flat = curves.reshape(-1, curves.shape[-1])
    return np.stack([isotonic_regression(curve).x for curve in flat]).reshape(curves.shape)


def first_x_reaching(x: FloatArray, curves: FloatArray, levels: FloatArray) -> FloatArray:
    """(...) the smallest x at which each non-decreasing (..., point) curve reaches its level, linearly interpolated.

    The first point if a curve starts at or above its level; NaN if it never reaches it.
    """
    reached = curves >= levels[..., None]
    first = reached.argmax(-1)
    before = np.maximum(first - 1, 0)
    low, high = (np.take_along_axis(curves, index[..., None], -1)[..., 0] for index in (before, first))
    fraction = np.divide(levels - low, high - low, out=np.zeros_like(low), where=(high > low) & (first > 0))
    return np.where(reached.any(-1), x[before] + fraction * (x[first] - x[before]), np.nan)
