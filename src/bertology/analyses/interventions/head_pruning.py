"""Score of a model as heads are removed in order of importance (michel2019, section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Interval

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.options import (
    HalvedEvaluationOptions,
    LegacyOption,
    NormaliseOption,
    NSeedsOption,
)
from bertology.analyses.evaluation.pruning_curves import (
    curve_differences,
    curve_estimates,
    head_names,
    order_by_importance,
    pruning_steps,
    random_order,
    removed_heads,
)
from bertology.analyses.evaluation.score_change import Scores, score_answers
from bertology.arrays import BoolArray, FloatArray, IntArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.estimates.estimate import Estimates
from bertology.estimates.metrics import bootstrap_score
from bertology.number_ranges import REPETITIONS
from bertology.progress import ProgressCallback
from bertology.results.answers import Answer
from bertology.results.shapes import Curve, RemovalOrder

if TYPE_CHECKING:
    from bertology.analyses.evaluation.evaluation import Evaluation
    from bertology.analyses.evaluation.head_ranking import AblationCriterion, HeadImportance, SplitEvaluation

RANDOM = "random"
BATCH_SIZE = 8
"""Examples per batch of retraining."""
TOLERATED_DROP = 0.05
"""The drop of the score that a removal may cost: 5 points, as in the claim about it."""


@dataclass(frozen=True)
class _Run:
    """One order of removal for each direction of a split: heads as indices, the first to go first."""

    split: int
    orders: tuple[IntArray, IntArray]


@analysis(
    question="How many heads can be removed, and in which order, before the score falls?",
    special_tokens="Special tokens: included. The output of a removed head is zero at every token.",
    citations=("michel2019", "voita2019"),
    version=4,
    cost=Cost(300.0),
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
    prune_fraction: Annotated[float, Interval(gt=0, le=1), "Fraction of all heads removed per step, above 0."] = 0.1,
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
        int,
        Interval(ge=0, le=1_000_000),
        "Training steps after each pruning step, on the half that ranks heads (0: none).",
    ] = 0,
    n_random_orders: Annotated[int, REPETITIONS, "Number of random pruning orders."] = 10,
    n_seeds: NSeedsOption = 3,
    options: HalvedEvaluationOptions = HalvedEvaluationOptions(),
) -> Curve:
    """Score (0 to 1) or loss (nats per example) of a model without its least important heads, by heads left.

    Heads are ranked by each measure of interventions/head_importance, and at random, and removed from the least
    important. The output of a removed head is zero. Importance is computed once, as in the paper, or at every step
    (`--recompute-importance`; by ablation this is greedy search). With `--retrain-steps` the model is trained further
    after each removal, always from its first weights; the point with all heads is trained as well. The `ablation` order
    is by how much removing a head alone changes an example's loss (`--ablation-criterion`). By loss increase, heads
    without which the loss is lower go first; in an overconfident model these are the most important ones, because
    anything that makes it less confident lowers its loss.

    Scores are cross-fitted: the examples are split into random halves, each half is the test set of the order that the
    other half gives, and every example is tested once for each of `--n-seeds` splits. Every split costs one evaluation
    of all examples per measure and step; with `--recompute-importance` or `--retrain-steps` it also costs two rankings
    or trainings.

    The orders to use are those of all examples (`removal_orders`); the scores are those of orders from half as many.
    So many heads can go as cost at most 5 points of the score, by the lower end of the interval, at this step and all
    before.

    Intervals resample the examples, the splits and the random orders. `change in score` is the score minus that of the
    model with all heads, `- score (random)` minus that of the random orders. Both are differences on the same examples,
    and their intervals resample pairs: compare orders by these differences, because the intervals of the scores include
    how hard the examples are. If none of n predictions changed, that of another example still may: intervals reach at
    least 3/n to either side.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation import head_ranking

    seed = options.seed
    methods = head_ranking.parse_methods(rank_by, (*head_ranking.METHODS, RANDOM))
    model, evaluation = head_ranking.prepare_ranking(encoder, corpus, options)
    splits = [
        head_ranking.split_halves(model, evaluation, seed=seed + index, mask_seed=seed) for index in range(n_seeds)
    ]
    shape = model.layers, model.heads
    n_removed = pruning_steps(shape[0] * shape[1], prune_fraction)
    runs: dict[str, list[_Run]] = {}
    removal_orders: dict[str, tuple[IntArray, FloatArray]] = {}
    for method in methods:
        if method == RANDOM:
            random_orders = [random_order(shape, seed + index) for index in range(n_random_orders)]
            runs[method] = [_Run(index % n_seeds, (order, order)) for index, order in enumerate(random_orders)]
            continue
        ranking = _Ranking(
            method,
            model,
            evaluation,
            cache,
            tuple(n_removed),
            legacy=legacy,
            normalise=normalise == "layer",
            criterion=ablation_criterion,
            recompute_importance=recompute_importance,
        )
        runs[method] = [_Run(index, ranking.orders_of_halves(split)) for index, split in enumerate(splits)]
        removal_orders[method] = ranking.order_of_all
    flat = [run for method_runs in runs.values() for run in method_runs]
    intact, scores = _evaluate(model, splits, flat, n_removed, cache, retrain_steps, seed)
    remaining = iter(scores)
    scores_by_order = {name: [next(remaining) for _ in method_runs] for name, method_runs in runs.items()}
    loss = metric == "loss"
    measures = {
        f"{metric} ({name})": curve_estimates(of_order, loss=loss, seed=seed)
        for name, of_order in scores_by_order.items()
    }
    differences = paired_differences(scores_by_order, intact, loss=loss, seed=seed)
    score_changes = paired_differences(scores_by_order, intact, loss=False, seed=seed) if loss else differences
    zero = Estimates.exact(np.zeros(len(n_removed)))
    heads_left = [shape[0] * shape[1] - count for count in n_removed]

    def answers() -> Iterator[Answer]:
        """Loss and score of each example with fewer and fewer heads, by order of removal."""
        for answer in score_answers(evaluation, {"all heads": intact[0]}):
            yield answer | {"run": None, "heads left": shape[0] * shape[1]}
        for name, of_order in scores_by_order.items():
            for number, run in enumerate(of_order):
                for left, step_scores in zip(heads_left, run, strict=True):
                    for answer in score_answers(evaluation, {name: step_scores}):
                        yield answer | {"run": number + 1, "heads left": left}

    curve = Curve(
        x_name="heads left",
        x=np.array(heads_left, np.float64),
        measures=measures | differences,
        baselines=_baselines(intact, evaluation, loss, measures, seed) | {"zero": dict.fromkeys(differences, zero)},
        units=dict.fromkeys(measures, "nats per example" if loss else f"{evaluation.metric}, 0 to 1")
        | dict.fromkeys(differences, "nats per example" if loss else f"change in {evaluation.metric}, -1 to 1"),
        sample=evaluation.sample() | {"random splits": n_seeds, "random orders": len(runs.get(RANDOM, ()))},
        reference=evaluation.reference(intact[0], seed=seed),
        removal_orders=tuple(
            RemovalOrder(
                name=name,
                heads=head_names(order, shape),
                values={"importance": tuple(importance.tolist())},
                steps=tuple(n_removed),
                n_removed=_n_removable(score_changes[f"change in score ({name})"], n_removed),
                criterion=f"at most {100 * TOLERATED_DROP:g} points of {evaluation.metric}"
                + (" after retraining" if retrain_steps else ""),
            )
            for name, (order, importance) in removal_orders.items()
        ),
    )
    return curve.with_answers(answers)


@dataclass(frozen=True)
class _Ranking:
    """Orders of removal by one importance measure, on all examples or on halves of them."""

    method: str
    model: TaskEncoder
    evaluation: Evaluation
    cache: AnalysisCache
    n_removed: tuple[int, ...]
    legacy: bool
    normalise: bool
    criterion: AblationCriterion
    recompute_importance: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and heads of the model."""
        return self.model.layers, self.model.heads

    @cached_property
    def importance_of_all(self) -> HeadImportance:
        """Importance by example in the intact model; its means on halves rank heads without further passes."""
        return self._importance(self.evaluation, np.zeros(self.shape, np.bool_))

    @property
    def order_of_all(self) -> tuple[IntArray, FloatArray]:
        """The order by all examples, and the importance of each head when it was removed."""
        return self._order(self.evaluation, np.ones(len(self.evaluation.examples), np.bool_))

    def orders_of_halves(self, split: SplitEvaluation) -> tuple[IntArray, IntArray]:
        """The order by each half."""
        first, second = (
            self._order(half, mask)[0] for half, mask in zip(split.halves, split.selection_masks, strict=True)
        )
        return first, second

    def _order(self, part: Evaluation, mask: BoolArray) -> tuple[IntArray, FloatArray]:
        def importance(removed: BoolArray) -> FloatArray:
            if removed.any():
                return self._importance(part, removed).mean
            return self.importance_of_all.means(mask[None])[0]

        return order_by_importance(
            importance, self.shape, self.n_removed, recompute_importance=self.recompute_importance
        )

    def _importance(self, part: Evaluation, removed: BoolArray) -> HeadImportance:
        from bertology.analyses.evaluation.head_ranking import importance_by_method

        return importance_by_method(
            self.method,
            self.model,
            part,
            self.cache,
            removed_heads=removed,
            legacy=self.legacy,
            normalise=self.normalise,
            criterion=self.criterion,
        )


def _evaluate(
    model: TaskEncoder,
    splits: Sequence[SplitEvaluation],
    runs: Sequence[_Run],
    n_removed: Sequence[int],
    cache: AnalysisCache,
    retrain_steps: int,
    seed: int,
) -> tuple[list[Scores], list[list[Scores]]]:
    """Scores of the model with all heads, for each split, and (run, step) scores; each for every example."""
    from bertology.analyses.evaluation.head_ranking import evaluate_without

    shape = model.layers, model.heads
    intact: list[Scores] = []
    scores: dict[int, list[Scores]] = {}
    for index, split in enumerate(splits):
        of_split = [number for number, run in enumerate(runs) if run.split == index]
        by_direction: list[list[Scores]] = []
        for direction, (ranking_half, test_half) in enumerate(split.directions):
            head_sets = [
                heads
                for number in of_split
                for heads in removed_heads(runs[number].orders[direction], shape, n_removed)
            ]
            if retrain_steps:
                none = np.zeros(shape, np.bool_)
                tested = _retrain_all(
                    model, ranking_half, test_half, [none, *head_sets], cache, retrain_steps, seed + index
                )
            else:
                tested = evaluate_without(model, test_half, head_sets, cache)
            by_direction.append(tested)
        joined = [split.join(tested) for tested in zip(*by_direction, strict=True)]
        intact.append(joined.pop(0))
        for position, number in enumerate(of_split):
            scores[number] = joined[position * len(n_removed) :][: len(n_removed)]
    return intact, [scores[number] for number in range(len(runs))]


def paired_differences(
    scores_by_order: Mapping[str, Sequence[Sequence[Scores]]], intact: Sequence[Scores], *, loss: bool, seed: int
) -> dict[str, Estimates]:
    """Each order's scores minus those of the intact model, and those of the other orders minus the random ones.

    `intact` has the scores of the intact model for each split.
    """
    metric = "loss" if loss else "score"
    pairs = {
        f"change in {metric} ({name})": (runs, [[scores] * len(runs[0]) for scores in intact])
        for name, runs in scores_by_order.items()
    }
    if RANDOM in scores_by_order:
        pairs |= {
            f"{metric} ({name}) - {metric} ({RANDOM})": (runs, scores_by_order[RANDOM])
            for name, runs in scores_by_order.items()
            if name != RANDOM
        }
    return {name: curve_differences(*pair, loss=loss, seed=seed) for name, pair in pairs.items()}


def _n_removable(change: Estimates, n_removed: Sequence[int]) -> int:
    """The largest number of heads that can be removed, like any fewer, at a tolerated drop of the score."""
    tolerated = np.logical_and.accumulate(change.low >= -TOLERATED_DROP)
    return n_removed[max(0, int(tolerated.sum()) - 1)]


def _baselines(
    intact: Sequence[Scores], evaluation: Evaluation, loss: bool, measures: Mapping[str, Estimates], seed: int
) -> dict[str, dict[str, Estimates]]:
    """The model with all heads, and the majority class."""
    all_heads = curve_estimates([[scores] for scores in intact], loss=loss, seed=seed)
    baselines = {"all heads": {name: all_heads.broadcast_to(curve.shape) for name, curve in measures.items()}}
    if evaluation.majority is not None and not loss:
        majority = bootstrap_score(evaluation.majority)
        baselines["majority class"] = {name: Estimates.full(curve.shape, majority) for name, curve in measures.items()}
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

    distinct = {heads.tobytes(): heads for heads in removed_heads}
    shared = {"model": model, "train_half": ranking_half, "test_half": test_half, "steps": steps, "seed": seed}
    arguments = [{**shared, "removed_heads": heads} for heads in distinct.values()]
    stored = dict(zip(distinct, cached_runs(cache, "Retraining", _retrain_and_test, arguments), strict=True))
    return [Scores.from_arrays(*stored[heads.tobytes()]) for heads in removed_heads]


def _retrain_and_test(
    model: TaskEncoder,
    train_half: Evaluation,
    test_half: Evaluation,
    steps: int,
    seed: int,
    removed_heads: BoolArray,
    progress: ProgressCallback,
) -> list[list[float]]:
    """Test scores after retraining without some heads."""
    from bertology.analyses.evaluation.gate_training import retrain_model

    retrained = retrain_model(
        model, train_half, ~removed_heads, steps=steps, batch_size=BATCH_SIZE, seed=seed, progress=progress
    )
    return test_half.scores(retrained.forward).to_lists()
