"""Rank correlation of head importance measures with the effect of removing the head (michel2019, voita2019)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.options import HalvedEvaluationOptions
from bertology.arrays import BoolArray, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.jackknife import GroupIndices, assign_groups, correlation_interval
from bertology.estimates.resampling import percentile_interval, ratio
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
N_GROUPS = 20
"""Groups of examples that the jackknife leaves out in turn."""

Agreement = Callable[[FloatArray, FloatArray], FloatArray]
"""(n,) rank correlations of two (n, layer, head) arrays."""


@analysis(
    question="Which head importance measure best predicts the effect of removing the head?",
    special_tokens="Special tokens: included. Confidence excludes them as targets.",
    citations=("michel2019", "voita2019", "bach2015"),
    version=3,
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
    both directions. Intervals are those of the jackknife: examples are left out in turn, in 20 groups, and the standard
    error is computed on Fisher's scale, with Student's t distribution. (The bootstrap is biased here: a resample has
    fewer different examples in each half, which lowers every correlation.) The effect is the mean absolute change of an
    example's loss, which an absolute gradient estimates, the mean increase of the loss, or the drop of the score.
    Gradients are in nats, normalised per layer as in the paper, and per token as in the released code. The row
    `ablation` is the ablation itself on the half that ranks (in absolute values for the absolute loss change): the
    highest agreement that so few examples allow. If a model is confident, one example whose prediction a removal turns
    outweighs fifty others, so a hundred examples do not determine the order by loss increase; scores change by whole
    examples, and most heads change none, so their order is mostly ties. `shuffled heads` has the heads in random order,
    with the 95 % interval of chance.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation import head_ranking
    from bertology.analyses.evaluation.gradient_importance import head_gradients

    seed = options.seed
    model, evaluation = head_ranking.prepare_ranking(encoder, corpus, options)
    halves = head_ranking.example_halves(evaluation, seed=seed)
    texts = np.array(["\n".join(segment.text for segment in example.segments) for example in evaluation.examples])
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
    samples = without_groups(halves, assign_groups(texts, N_GROUPS, seed=seed))
    row_names = (*predictors, head_ranking.ABLATION)
    measures: dict[str, Estimates] = {}
    shuffled: dict[str, Estimates] = {}
    for name, effect in effects.items():
        within_layers = name == LOSS_CHANGE_WITHIN_LAYERS

        def agreement(first: FloatArray, second: FloatArray, within_layers: bool = within_layers) -> FloatArray:
            return head_ranking.rank_agreement(first, second, within_layers=within_layers)

        ablation = loss if name == SCORE_DROP else effect
        measures[name] = Estimates.stack(
            [
                mean_correlation(agreement, importance, effect, samples)
                for importance in (*predictors.values(), ablation)
            ]
        )
        shuffled[name] = Estimates.full((len(row_names),), _shuffled_correlation(agreement, no_heads.shape, seed))
    return Table(
        row_names=row_names,
        measures=measures,
        baselines={"shuffled heads": shuffled},
        units=UNITS,
        sample=evaluation.sample() | {"random halves": len(halves), "jackknife groups": samples.n_groups},
        reference=evaluation.reference(evaluation.scores(model.forward), seed=seed),
    )


@dataclass(frozen=True)
class JackknifeSamples:
    """(sample, example) whether each example is in the half that ranks heads, and in the other half.

    First come the halves of all examples, each in both directions, then those without each of `n_groups` groups.
    """

    ranking: BoolArray
    test: BoolArray
    n_groups: int


def without_groups(halves: BoolArray, groups: GroupIndices) -> JackknifeSamples:
    """The halves of all examples, and without each group of them."""
    ranking = np.concatenate([halves, ~halves])
    kept = np.stack([np.ones(len(groups), np.bool_), *(groups != group for group in np.unique(groups))])
    first, second = ((kept[:, None] & half).reshape(-1, len(groups)) for half in (ranking, ~ranking))
    return JackknifeSamples(first, second, len(kept) - 1)


def mean_correlation(
    agreement: Agreement, importance: HeadImportance, effect: HeadImportance, samples: JackknifeSamples
) -> Estimate:
    """The mean correlation over halves, with a jackknife interval over the groups of examples."""
    correlations = agreement(importance.means(samples.ranking), effect.means(samples.test))
    by_group = correlations.reshape(1 + samples.n_groups, -1)
    is_defined = np.isfinite(by_group)
    means = ratio(np.nan_to_num(by_group).sum(1), is_defined.sum(1), empty=np.nan)
    if np.isnan(means[0]):
        return Estimate(np.nan, np.nan, np.nan, 0, "t")
    value, low, high = correlation_interval(means)
    return Estimate(float(value), float(low), float(high), samples.ranking.shape[1], "t")


def _shuffled_correlation(agreement: Agreement, shape: tuple[int, ...], seed: int) -> Estimate:
    """The expected correlation of two random orders, 0, with the interval that holds 95 % of random orders."""
    generator = np.random.default_rng(seed)
    n_heads = int(np.prod(shape))
    ranks = np.broadcast_to(np.arange(n_heads, dtype=np.float64), (N_SHUFFLES, n_heads))
    first, second = (generator.permuted(ranks, axis=1).reshape(N_SHUFFLES, *shape) for _ in range(2))
    low, high = percentile_interval(agreement(first, second))
    return Estimate(0.0, min(float(low), 0.0), max(float(high), 0.0), N_SHUFFLES)
