"""Compare frozen features: the same simple classifiers on contextual, static and random ones (arora2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.answers import run_answers
from bertology.analyses.frozen_features.dataset import DatasetOptions, build_dataset
from bertology.analyses.frozen_features.downstream_models import parse_classifiers
from bertology.analyses.frozen_features.extractors import (
    DEFAULT_FEATURES,
    FeaturesOption,
    feature_extractor,
    parse_features,
)
from bertology.analyses.frozen_features.predictions import extract_all
from bertology.analyses.frozen_features.score_grid import (
    CorrectTotal,
    ScoreGrid,
    counts_by_seed,
    score_from_counts,
    score_with_interval,
)
from bertology.analyses.frozen_features.word_features import WordFeatures
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_sentences_and_seeds, exact_where_unanimous
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES, change_measure, gain_measure
from bertology.results.shapes import Table

NAME = "features/comparison"
UNTRAINED, ZERO = "untrained model", "zero"


@analysis(
    question="How much better do simple classifiers do on frozen contextual features than on static or random ones?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("arora2020",),
    version=6,
    cost=Cost(30.0),
    answers=True,
)
def comparison(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    features: FeaturesOption = DEFAULT_FEATURES,
    classifiers: Annotated[
        str,
        "Classifiers on the frozen features, comma-separated: linear; bilstm-crf for token tasks; cnn for text tasks.",
    ] = "linear",
    options: DatasetOptions = DatasetOptions(),
) -> Table:
    """Test score of classifiers on frozen features, 0 to 1: span F1 for entities, else accuracy. One row per feature.

    Features are not trained. Every feature gets the same classifiers, the same examples and the same hyper-parameter
    grid, chosen on a validation set that differs by seed: four L2 penalties for linear classifiers, two learning rates
    and ten checkpoints for networks. The two texts of a pair are encoded separately and represented as u, v, |u - v|
    and u * v of their means. Arora et al. train their own BiLSTMs and CNNs on BERT's last layer, GloVe and random
    circulant vectors; the feature `random` is such a circulant vector of the model's width.

    `model - feature` is the score of the first feature minus that of the row's feature, on the same examples and seeds.
    A score that still rises with more training data says little about the features: `score - score (half the training
    data)` and `change of (model - feature) from half the training data` are what the second half of the training
    examples of each seed adds.
    Baselines: the majority class; for token tasks also the most frequent label of the word; the untrained model. Scores
    are micro-averaged over seeds; intervals resample examples and seeds together. The attributes of a row are the width
    of its vectors and the number of words, with and without a vector.
    """
    dataset = build_dataset(corpus, options, analysis_name=NAME)
    extractors = parse_features(features, encoder)
    classifier_names = parse_classifiers(classifiers, dataset.task.name)
    untrained = [feature_extractor("untrained", encoder)] if isinstance(encoder, TaskEncoder) else []
    grid = ScoreGrid(dataset, cache)
    vectors = extract_all(dataset, [*extractors, *untrained], cache)
    counts_by_size = grid.run(vectors, classifier_names, [dataset.half_train_size, dataset.max_train_size])
    counts = counts_by_size[..., -1, :]
    baseline_counts = grid.baselines(dataset.max_train_size)
    rows = tuple(extractor.name for extractor in extractors)
    measures: dict[str, Estimates] = {}
    baselines: dict[str, dict[str, Estimates]] = {name: {} for name in (*baseline_counts, ZERO)}
    units: dict[str, str] = {}
    for index, classifier in enumerate(classifier_names):
        score, difference = f"score ({classifier})", f"{rows[0]} - feature ({classifier})"
        scores = score_with_interval(counts[:, :, :, index], seed=options.seed)
        measures[score] = scores[: len(rows)]
        units[score] = f"{dataset.task.metric}, 0 to 1"
        for name, sums in baseline_counts.items():
            baseline = score_with_interval(sums, seed=options.seed)
            baselines[name][score] = baseline.broadcast_to((len(rows),))
        if untrained:
            baselines.setdefault(UNTRAINED, {})[score] = scores[len(rows) :].broadcast_to((len(rows),))
        differences = bootstrap_sentences_and_seeds(
            counts[:, :, : len(rows), index], _difference_from_first, seed=options.seed
        )
        # The first feature minus itself is exactly 0.
        others = exact_where_unanimous(differences[1:], lowest=-1.0)
        measures[difference] = Estimates.concatenate([differences[:1], others])
        gain, change = gain_measure(score), change_measure(difference)
        gains = _estimate_changes(counts_by_size[:, :, :, index], score_from_counts, options.seed)
        measures[gain] = gains[: len(rows)]
        if untrained:
            baselines[UNTRAINED][gain] = gains[len(rows) :].broadcast_to((len(rows),))
        changes = _estimate_changes(
            counts_by_size[:, :, : len(rows), index], lambda sums: _difference_from_first(sums, axis=-2), options.seed
        )
        measures[change] = Estimates.concatenate([differences[:1], changes[1:]])
        for name in (difference, gain, change):
            baselines[ZERO][name] = Estimates.exact(np.zeros(len(rows)), len(dataset.test))
            units[name] = f"difference of {dataset.task.metric}, -1 to 1"
    table = Table(
        row_names=rows,
        measures=measures,
        baselines=baselines,
        units=units,
        sample=dataset.sample,
        attributes=_attributes(vectors[: len(rows)]),
    )

    def answers() -> Iterator[Answer]:
        """What the classifiers on each feature, and the baselines, have right of each test example."""
        for index, classifier in enumerate(classifier_names):
            for number in range(len(vectors)):
                series = {"series": MODEL_SERIES, "row": rows[number]} if number < len(rows) else {"series": UNTRAINED}
                condition: Answer = {"row": None, "classifier": classifier} | series
                yield from run_answers(dataset.test, counts_by_seed(counts[:, :, number, index]), condition)
        for name, sums in baseline_counts.items():
            condition = {"row": None, "classifier": None, "series": name}
            yield from run_answers(dataset.test, counts_by_seed(sums), condition)

    return table.with_answers(answers)


def _difference_from_first(correct_total: CorrectTotal, axis: int = -1) -> FloatArray:
    """The score of the first feature minus that of each feature; `axis` is that of the features."""
    scores = score_from_counts(correct_total)
    return scores.take([0], axis) - scores


def _estimate_changes(
    counts_by_size: CorrectTotal, statistic: Callable[[CorrectTotal], FloatArray], seed: int
) -> Estimates:
    """(feature,) what the second half of the training data adds to a statistic, (..., feature, size).

    The counts are (seed, example, feature, size, 2).
    """

    def changes(correct_total: CorrectTotal) -> FloatArray:
        values = statistic(correct_total)
        return values[..., -1] - values[..., 0]

    return exact_where_unanimous(bootstrap_sentences_and_seeds(counts_by_size, changes, seed=seed), lowest=-1.0)


def _attributes(features: Sequence[WordFeatures]) -> Mapping[str, tuple[int, ...]]:
    """Width and counts of each feature."""
    names = dict.fromkeys(name for feature in features for name in feature.counts)
    counts = {name: tuple(feature.counts.get(name, 0) for feature in features) for name in names}
    return {"width": tuple(feature.width for feature in features), **counts}
