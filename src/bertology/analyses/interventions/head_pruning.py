"""Score of a model as heads are removed in order of importance (michel2019, section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Ge

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.options import HalvedEvaluationOptions, LegacyOption, NormaliseOption
from bertology.analyses.evaluation.pruning_curves import (
    curve_estimates,
    numerator_and_denominator,
    prune_at_random,
    prune_by_importance,
    pruning_steps,
)
from bertology.analyses.evaluation.score_change import Scores, score_answers
from bertology.analyses.run import AnalysisCache, ProgressCallback
from bertology.arrays import BoolArray, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.estimates.estimate import Estimates
from bertology.estimates.metrics import bootstrap_score
from bertology.estimates.resampling import bootstrap_sentences_and_seeds, ratio, widen_by_rule_of_three
from bertology.results.answers import Answer
from bertology.results.shapes import Curve
from bertology.training.data_split import content_hash

if TYPE_CHECKING:
    from bertology.analyses.evaluation.evaluation import Evaluation

RANDOM = "random"
BATCH_SIZE = 8
"""Examples per batch of retraining."""


@analysis(
    question="How many heads can be removed, and in which order, before the score falls?",
    special_tokens="Special tokens: included. The output of a removed head is zero at every token.",
    citations=("michel2019", "voita2019"),
    version=3,
    cost=Cost(90.0),
    answers=True,
)
def head_pruning(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    rank_by: Annotated[
        str,
        "Importance measures to order heads by, comma-separated: gradient, confidence, relevance, ablation, random.",
    ] = "gradient,confidence,relevance,ablation,random",
    prune_fraction: Annotated[float, "Fraction of all heads removed per step."] = 0.1,
    recompute_importance: Annotated[
        bool, "Recompute head importance after every pruning step instead of once."
    ] = False,
    metric: Annotated[Literal["score", "loss"], "`score` of the task, or `loss` in nats."] = "score",
    normalise: NormaliseOption = "layer",
    legacy: LegacyOption = False,
    ablation_criterion: Annotated[
        Literal["absolute-loss-change", "loss-increase", "score-drop"],
        "How the `ablation` order ranks heads: by `absolute-loss-change` per example, by `loss-increase`, or by "
        "`score-drop`.",
    ] = "absolute-loss-change",
    retrain_steps: Annotated[
        int, Ge(0), "Training steps after each pruning step, on the half that ranks heads (0: none)."
    ] = 0,
    n_random_orders: Annotated[int, Ge(1), "Number of random pruning orders."] = 3,
    options: HalvedEvaluationOptions = HalvedEvaluationOptions(),
) -> Curve:
    """Score (0 to 1) or loss (nats per example) of a model without its least important heads, by heads left.

    Heads are ranked by each measure of interventions/head_importance on one half of the examples, and at random, and
    removed from the least important; the score is that of the other half. The output of a removed head is zero.
    Importance is computed once, as in the paper, or at every step (`--recompute-importance`; by ablation this is
    greedy search). With `--retrain-steps` the model is trained further after each removal, always from its first
    weights; the point with all heads is trained as well. The `ablation` order is by how much removing a head alone
    changes an example's loss (`--ablation-criterion`). By loss increase, heads without which the loss is lower go
    first; in an overconfident model these are the most important ones, because anything that makes it less confident
    lowers its loss.

    The halves are one random split, since every further order would have to be evaluated: intervals do not include how
    the order depends on the split, which another --seed shows.

    Intervals resample the examples and, for the random orders, the orders. `change in score` is the score minus that
    of the model with all heads, `- score (random)` minus that of the random orders. Both are differences on the same
    examples, and their intervals resample pairs: compare orders by these differences, because the intervals of the
    scores include how hard the examples are. If none of n predictions changed, that of another example still may:
    intervals reach at least 3/n to either side.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation import head_ranking

    seed = options.seed
    methods = head_ranking.parse_methods(rank_by, (*head_ranking.METHODS, RANDOM))
    model, evaluation = head_ranking.prepare_ranking(encoder, corpus, options)
    ranking_half, test_half = head_ranking.split_halves(model, evaluation, seed=seed)
    shape = model.layers, model.heads
    n_removed = pruning_steps(shape[0] * shape[1], prune_fraction)
    removed_heads: dict[str, list[list[BoolArray]]] = {}
    for method in methods:

        def mean_importance(removed: BoolArray, method: str = method) -> FloatArray:
            return head_ranking.importance_by_method(
                method,
                model,
                ranking_half,
                cache,
                removed_heads=removed,
                legacy=legacy,
                normalise=normalise == "layer",
                criterion=ablation_criterion,
            ).mean

        if method == RANDOM:
            removed_heads[method] = [prune_at_random(shape, n_removed, seed + i) for i in range(n_random_orders)]
        else:
            removed_heads[method] = [
                prune_by_importance(mean_importance, shape, n_removed, recompute_importance=recompute_importance)
            ]
    flat = [heads for runs in removed_heads.values() for run in runs for heads in run]
    if retrain_steps:
        scores = _retrain_all(model, ranking_half, test_half, flat, cache, retrain_steps, seed)
        intact = scores[0]
    else:
        intact, *scores = head_ranking.evaluate_without(model, test_half, flat, cache)
    remaining = iter(scores)
    scores_by_order = {name: [[next(remaining) for _ in run] for run in runs] for name, runs in removed_heads.items()}
    loss = metric == "loss"
    measures = {
        f"{metric} ({name})": curve_estimates(runs, loss=loss, seed=seed) for name, runs in scores_by_order.items()
    }
    differences = paired_differences(scores_by_order, intact, loss=loss, seed=seed)
    zero = Estimates.exact(np.zeros(len(n_removed)))
    heads_left = [shape[0] * shape[1] - count for count in n_removed]

    def answers() -> Iterator[Answer]:
        """Loss and score of each test example with fewer and fewer heads, by order of removal."""
        for answer in score_answers(test_half, {"all heads": intact}):
            yield answer | {"run": None, "heads left": shape[0] * shape[1]}
        for name, runs in scores_by_order.items():
            for number, run in enumerate(runs):
                for left, step_scores in zip(heads_left, run, strict=True):
                    for answer in score_answers(test_half, {name: step_scores}):
                        yield answer | {"run": number + 1, "heads left": left}

    curve = Curve(
        x_name="heads left",
        x=shape[0] * shape[1] - np.array(n_removed, np.float64),
        measures=measures | differences,
        baselines=_baselines(intact, test_half, loss, measures, seed) | {"zero": dict.fromkeys(differences, zero)},
        units=dict.fromkeys(measures, "nats per example" if loss else f"{evaluation.metric}, 0 to 1")
        | dict.fromkeys(differences, "nats per example" if loss else f"change in {evaluation.metric}, -1 to 1"),
        sample={"ranking examples": len(ranking_half.examples), "test examples": len(test_half.examples)},
    )
    return curve.with_answers(answers)


def paired_differences(
    scores_by_order: Mapping[str, Sequence[Sequence[Scores]]], intact: Scores, *, loss: bool, seed: int
) -> dict[str, Estimates]:
    """Each order's scores minus those of the intact model, and those of the other orders minus the random ones."""
    metric = "loss" if loss else "score"
    pairs = {
        f"change in {metric} ({name})": (runs, [[intact] * len(runs[0])]) for name, runs in scores_by_order.items()
    }
    if RANDOM in scores_by_order:
        pairs |= {
            f"{metric} ({name}) - {metric} ({RANDOM})": (runs, scores_by_order[RANDOM])
            for name, runs in scores_by_order.items()
            if name != RANDOM
        }
    return {name: _score_difference(*pair, loss=loss, seed=seed) for name, pair in pairs.items()}


def _score_difference(
    first: Sequence[Sequence[Scores]], second: Sequence[Sequence[Scores]], *, loss: bool, seed: int
) -> Estimates:
    """(step,) first minus second of (run, step) scores on the same examples; a single run is paired with all others."""

    def difference(sums: FloatArray) -> FloatArray:
        scores = ratio(sums[..., 0], sums[..., 1])
        return np.asarray(scores[..., 0] - scores[..., 1])

    estimates: list[Estimates] = []
    is_different: list[bool] = []
    for step in range(len(first[0])):
        n_pairs = max(len(first), len(second))
        pairs = [[runs[i % len(runs)][step] for runs in (first, second)] for i in range(n_pairs)]
        # (run, example, first and second, numerator and denominator)
        sums = np.moveaxis(
            np.array([[numerator_and_denominator(scores, loss=loss) for scores in pair] for pair in pairs]), 2, 1
        )
        is_different.append(any(not np.array_equal(left.losses, right.losses) for left, right in pairs))
        estimates.append(bootstrap_sentences_and_seeds(sums, difference, seed=seed))
    stacked = Estimates.stack(estimates)
    return stacked if loss else widen_by_rule_of_three(stacked, np.array(is_different))


def _baselines(
    intact: Scores, test_half: Evaluation, loss: bool, measures: Mapping[str, Estimates], seed: int
) -> dict[str, dict[str, Estimates]]:
    """The model with all heads, and the majority class."""
    all_heads = curve_estimates([[intact]], loss=loss, seed=seed)
    baselines = {"all heads": {name: all_heads.broadcast_to(curve.shape) for name, curve in measures.items()}}
    if test_half.majority is not None and not loss:
        majority = bootstrap_score(test_half.majority)
        baselines["majority class"] = {name: majority.broadcast_to(curve.shape) for name, curve in measures.items()}
    return baselines


def _retrain_all(
    model: TaskEncoder,
    ranking_half: Evaluation,
    test_half: Evaluation,
    removed_heads: list[BoolArray],
    cache: AnalysisCache,
    steps: int,
    seed: int,
) -> list[Scores]:
    """Scores after retraining without each set of heads; each finished run is cached."""
    from bertology.analyses.evaluation.finetuning_sweep import cached_runs
    from bertology.analyses.evaluation.gate_training import retrain_model

    distinct = {heads.tobytes(): heads for heads in removed_heads}
    head_sets = list(distinct.values())

    def retrain_one(step: int, progress: ProgressCallback) -> list[list[float]]:
        retrained = retrain_model(
            model, ranking_half, ~head_sets[step], steps=steps, batch_size=BATCH_SIZE, seed=seed, progress=progress
        )
        return test_half.scores(retrained.forward).to_lists()

    key = {
        "analysis": "interventions/head_pruning",
        "format": 2,
        "model": model.fingerprint,
        "task": ranking_half.task,
        "train": content_hash(ranking_half.examples),
        "test": content_hash(test_half.examples),
        "steps": steps,
        "seed": seed,
        "batch_size": BATCH_SIZE,
    }
    keys = [{**key, "removed_heads": np.flatnonzero(heads).tolist()} for heads in head_sets]
    stored = dict(zip(distinct, cached_runs(cache, "Retraining", keys, retrain_one), strict=True))
    return [Scores.from_arrays(*stored[heads.tobytes()]) for heads in removed_heads]
