"""Rank correlation of head importance measures with the effect of removing the head (michel2019, voita2019)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.options import HalvedEvaluationOptions
from bertology.analyses.run import AnalysisCache
from bertology.arrays import Array, BoolArray, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.resampling import RESAMPLES, percentile_interval, ratio
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from bertology.analyses.evaluation.head_ranking import HeadImportance

LOSS_CHANGE = "correlation with absolute loss change"
LOSS_CHANGE_WITHIN_LAYERS = "correlation with absolute loss change within layers"
LOSS_INCREASE, SCORE_DROP = "correlation with loss increase", "correlation with score drop"
UNITS = {
    LOSS_CHANGE: "Spearman correlation over all heads, -1 to 1",
    LOSS_CHANGE_WITHIN_LAYERS: "Spearman correlation within a layer, mean over layers, -1 to 1",
    LOSS_INCREASE: "Spearman correlation over all heads, -1 to 1",
    SCORE_DROP: "Spearman correlation over all heads, -1 to 1",
}
N_SHUFFLES = 1000
N_RESAMPLED_SPLITS = 5
"""Random halves of each resample, over which its correlations are averaged."""

Agreement = Callable[[FloatArray, FloatArray], FloatArray]
"""(n,) rank correlations of two (n, layer, head) arrays."""


@analysis(
    question="Which head importance measure best predicts the effect of removing the head?",
    special_tokens="Special tokens: included. Confidence excludes them as targets.",
    citations=("michel2019", "voita2019", "bach2015"),
    version=2,
    cost=Cost(60.0),
)
def importance_vs_ablation(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    options: HalvedEvaluationOptions = HalvedEvaluationOptions(sample_size=100),
) -> Table:
    """Spearman correlation over heads of importance with the effect of ablation: 1 the same order, 0 no relation.

    Importance (see interventions/head_importance) is measured on one half of the examples and the effect of removing
    each head on the other, so that they share no sampling error; the correlation is the mean over 100 random halves in
    both directions. Intervals resample examples, each resample with five of the splits. The effect
    is the mean absolute change of an example's loss, which an absolute gradient estimates, the mean increase of the
    loss, or the drop of the score. Gradients are in nats, normalised per layer as in the paper, and per token as in
    the released code. The row `ablation` is the ablation itself on the half that ranks (in absolute values for the
    absolute loss change): the highest agreement that so few examples allow. If a model is confident, one example whose
    prediction a removal turns outweighs fifty others, so a hundred examples do not determine the order by loss
    increase; scores change by whole examples, and most heads change none, so their order is mostly ties. `shuffled
    heads` has the heads in random order, with the 95 % interval of chance.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation import head_ranking
    from bertology.analyses.evaluation.gradient_importance import head_gradients

    seed = options.seed
    model, evaluation = head_ranking.prepare_ranking(encoder, corpus, options)
    halves = head_ranking.example_halves(evaluation, seed=seed)
    no_heads = np.zeros((model.layers, model.heads), np.bool_)
    gradients = head_gradients(model, evaluation)
    predictors = {
        "gradient": head_ranking.gradient_importance(gradients, legacy=False, normalise=False),
        "gradient (normalised per layer)": head_ranking.gradient_importance(gradients, legacy=False, normalise=True),
        "gradient (released code)": head_ranking.gradient_importance(gradients, legacy=True, normalise=True),
        "confidence": head_ranking.confidence_importance(gradients),
        "relevance": head_ranking.relevance_importance(model, evaluation),
    }
    loss = head_ranking.ablation_importance(model, evaluation, cache, removed_heads=no_heads)
    score = head_ranking.ablation_importance(model, evaluation, cache, removed_heads=no_heads, use_score=True)
    effects = {
        LOSS_CHANGE: loss.absolute,
        LOSS_CHANGE_WITHIN_LAYERS: loss.absolute,
        LOSS_INCREASE: loss,
        SCORE_DROP: score,
    }
    samples = _sample_halves(halves, seed)
    row_names = (*predictors, head_ranking.ABLATION)
    measures: dict[str, Estimates] = {}
    shuffled: dict[str, Estimates] = {}
    for name, effect in effects.items():
        within_layers = name == LOSS_CHANGE_WITHIN_LAYERS

        def agreement(first: FloatArray, second: FloatArray, within_layers: bool = within_layers) -> FloatArray:
            return head_ranking.rank_agreement(first, second, within_layers=within_layers)

        ablation = loss if name == SCORE_DROP else effect
        measures[name] = Estimates.stack(
            [_correlation(agreement, importance, effect, samples) for importance in (*predictors.values(), ablation)]
        )
        shuffled[name] = _shuffled_correlation(agreement, no_heads.shape, seed).broadcast_to((len(row_names),))
    return Table(
        row_names=row_names,
        measures=measures,
        baselines={"shuffled heads": shuffled},
        units=UNITS,
        sample={"examples": len(evaluation.examples), "random halves": len(halves)},
    )


@dataclass(frozen=True)
class _Samples:
    """(sample, example) how often each example is in the half that ranks heads, and in the other half.

    The first ones are the halves themselves; then come resampled examples, `N_RESAMPLED_SPLITS` splits of each.
    """

    ranking: Array
    test: Array
    n_halves: int


def _sample_halves(halves: BoolArray, seed: int) -> _Samples:
    n_splits, n = halves.shape
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).repeat(N_RESAMPLED_SPLITS, 0)
    splits = halves[np.arange(len(counts)) % n_splits]
    ranking = np.concatenate([halves, ~halves, counts * splits]).astype(np.uint16)
    test = np.concatenate([~halves, halves, counts * ~splits]).astype(np.uint16)
    return _Samples(ranking, test, 2 * n_splits)


def _correlation(
    agreement: Agreement, importance: HeadImportance, effect: HeadImportance, samples: _Samples
) -> Estimate:
    """The mean correlation over halves, with the interval of means over splits of resampled examples."""
    correlations = agreement(importance.means(samples.ranking), effect.means(samples.test))
    of_halves, resampled = correlations[: samples.n_halves], correlations[samples.n_halves :]
    if not np.isfinite(of_halves).any():
        return Estimate(np.nan, np.nan, np.nan, 0)
    value = float(np.nanmean(of_halves))
    by_resample = resampled.reshape(-1, N_RESAMPLED_SPLITS)
    n_finite = np.isfinite(by_resample).sum(1)
    low, high = percentile_interval(ratio(np.nan_to_num(by_resample).sum(1), n_finite, empty=np.nan))
    return Estimate(value, min(float(low), value), max(float(high), value), samples.ranking.shape[1])


def _shuffled_correlation(agreement: Agreement, shape: tuple[int, ...], seed: int) -> Estimate:
    """The expected correlation of two random orders, 0, with the interval that holds 95 % of random orders."""
    generator = np.random.default_rng(seed)
    n_heads = int(np.prod(shape))
    ranks = np.broadcast_to(np.arange(n_heads, dtype=np.float64), (N_SHUFFLES, n_heads))
    first, second = (generator.permuted(ranks, axis=1).reshape(N_SHUFFLES, *shape) for _ in range(2))
    low, high = percentile_interval(agreement(first, second))
    return Estimate(0.0, min(float(low), 0.0), max(float(high), 0.0), N_SHUFFLES)
