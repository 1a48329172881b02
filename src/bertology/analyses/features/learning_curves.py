"""Learning curves of classifiers on frozen features (arora2020)."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.frozen_features.dataset import DatasetOptions
from bertology.analyses.frozen_features.score_grid import CorrectTotal, score_from_counts
from bertology.analyses.frozen_features.train_size_curves import CurveOptions, compute_learning_curves
from bertology.analyses.run import AnalysisCache
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_sentences_and_seeds
from bertology.results.shapes import Curve

NAME = "features/learning_curves"
ZERO = "zero"


@analysis(
    question="How does the advantage of contextual features change with the amount of training data?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("arora2020",),
    version=4,
    cost=Cost(15.0),
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
    features/data_efficiency derives crossing points and data ratios from the same cached scores.

    Baselines at each size: the majority class of the training examples; for token tasks also the most frequent label of
    the word; for differences, zero. Scores are micro-averaged over seeds; intervals resample examples and seeds
    together.
    """
    curves = compute_learning_curves(encoder, corpus, cache, dataset_options, curve_options, analysis_name=NAME)
    pairs = list(combinations(range(len(curves.features)), 2))

    def statistic(correct_total: CorrectTotal) -> CorrectTotal:
        scores = score_from_counts(correct_total)
        first, second = ([pair[side] for pair in pairs] for side in (0, 1))
        differences = scores[..., first, :] - scores[..., second, :]
        return np.concatenate([scores, differences, differences - differences[..., -1:]], -2)

    estimates = bootstrap_sentences_and_seeds(curves.correct_total, statistic, seed=dataset_options.seed)
    differences = [f"{curves.features[first]} - {curves.features[second]}" for first, second in pairs]
    differences += [f"reduction of ({difference}) with full data" for difference in differences]
    baselines = {
        name: dict.fromkeys(
            curves.features, bootstrap_sentences_and_seeds(counts, score_from_counts, seed=dataset_options.seed)
        )
        for name, counts in curves.baselines.items()
    }
    if differences:
        zeros = Estimates.exact(np.zeros(len(curves.sizes)), len(curves.dataset.test))
        baselines[ZERO] = dict.fromkeys(differences, zeros)
    metric = curves.dataset.task.metric
    return Curve(
        x_name="training examples",
        x=np.array(curves.sizes, np.float64),
        measures={name: estimates[index] for index, name in enumerate([*curves.features, *differences])},
        baselines=baselines,
        units=dict.fromkeys(curves.features, f"{metric}, 0 to 1")
        | dict.fromkeys(differences, f"difference of {metric}, -1 to 1"),
        sample=curves.dataset.sample,
    )
