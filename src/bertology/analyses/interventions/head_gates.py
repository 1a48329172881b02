"""Heads that survive an L0 penalty on open heads (voita2019, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Interval

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.options import BatchSizeOption, HalvedEvaluationOptions, NSeedsOption
from bertology.analyses.evaluation.pruning_curves import curve_differences, curve_estimates, head_names
from bertology.analyses.evaluation.score_change import Scores, mean_scores
from bertology.analyses.head_selection.functions import (
    STRONGEST_WORD,
    FunctionKind,
    FunctionThresholds,
    assign_functions,
    count_function_links,
    function_kind,
    function_links,
)
from bertology.arrays import BoolArray, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.corpus.word_frequencies import english_frequencies
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.errors import Refusal, count_noun
from bertology.estimates.estimate import Estimates
from bertology.estimates.metrics import bootstrap_score
from bertology.estimates.resampling import range_over_seeds
from bertology.number_ranges import LEARNING_RATE, PENALTY, STEPS, shorten_value, to_range
from bertology.progress import ProgressCallback
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.results.shapes import Curve, RemovalOrder
from bertology.training.data_split import sort_by_content

if TYPE_CHECKING:
    from bertology.analyses.evaluation.evaluation import Evaluation
    from bertology.analyses.evaluation.gate_training import GateTrainingConfig
    from bertology.analyses.evaluation.head_ranking import SplitEvaluation

SCORE, KEPT_HEADS = "score", "heads kept"
DIFFERENCE, RANK = "score - score (random)", "rank among random sets"
RANDOM_HEADS = "random heads (same number)"
KEPT_BY_FUNCTION: dict[FunctionKind, str] = {
    "positional": "positional heads kept",
    "syntactic": "syntactic heads kept",
    "rarest word": "rare-word heads kept",
}
MIN_RANDOM_SETS, MAX_RANDOM_SETS, SETS_PER_ROUND = 20, 60, 10
"""Random sets of the same size: with 20, a set better than all of them has p < 0.05."""
PENALTY_RANGE, MAX_PENALTIES = to_range(PENALTY), 100
MAX_STANDARD_ERROR = 0.01
"""Random sets are drawn until the standard error of their mean score is at most this, for every penalty."""
N_FREQUENT_WORDS, MIN_EXAMPLES = 500, 20
MAX_SENTENCES = 200
"""Sentences that head functions are found on: enough for positions and frequent relations."""
DEFAULT_CORPUS = "english"


@dataclass(frozen=True, eq=False)
class _GateRun:
    """Gates trained on one half of the examples, and the test scores of the other half with the kept heads."""

    open_probability: FloatArray
    kept_heads: BoolArray
    test_scores: Scores


@analysis(
    question="Which heads survive an L0 penalty on open heads, and how well does the model do with them alone?",
    special_tokens="Special tokens: included. The output of a closed head is zero at every token.",
    citations=("voita2019", "louizos2018"),
    version=5,
    cost=Cost(700.0),
)
def head_gates(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    l0_penalties: Annotated[
        str, "L0 penalties per open head in nats, comma-separated; each is one run."
    ] = "0.01,0.05,0.2",
    model_weights: Annotated[
        Literal["frozen", "trained"], "`frozen`, or `trained` together with the gates."
    ] = "frozen",
    steps: Annotated[int, STEPS, "Training steps of the gates."] = 60,
    batch_size: BatchSizeOption = 8,
    initial_log_alpha: Annotated[
        float,
        Interval(ge=-100, le=100),
        "Initial log alpha of the Hard Concrete gates; at 2 a gate is open 95 % of the time.",
    ] = 2.0,
    learning_rate: Annotated[float, LEARNING_RATE, "Peak learning rate of the gates."] = 0.2,
    function_corpus: Annotated[
        str,
        "Treebank for finding head functions; empty: this corpus, or `english` if it has no trees; `none`: skip "
        "functions.",
    ] = "",
    n_seeds: NSeedsOption = 2,
    options: HalvedEvaluationOptions = HalvedEvaluationOptions(),
) -> Curve:
    """Score (0 to 1) of a model with the heads that survive an L0 penalty, and their number, by penalty.

    Each head's output is multiplied by a gate from the Hard Concrete distribution, beta 0.33, stretched from gamma
    -0.1 to zeta 1.1, sampled at each step and shared by all examples of a batch. The objective is the mean loss of an
    example plus the penalty times the expected number of non-zero gates. The paper sums that number over all heads, as
    here; its code averages over layers. After training a head is kept, with a gate of 1, if its gate is more likely 1
    than 0. Gates start open; in the paper's code they start about half open. Each penalty is a separate run from the
    given model and rises from 0 over the first two thirds of the steps: the full penalty would close all heads before
    the loss could distinguish them. The default number of steps ends before the gates converge; with a high penalty,
    more steps find smaller and better sets.

    Scores are cross-fitted: each of `--n-seeds` repetitions splits the examples into random halves and trains gates on
    each half, whose score is that of the other. This takes twice as many trainings as one direction, and is worth it:
    every example is tested, and neither the score nor the heads rest on one split. The heads to keep are those kept in
    most trainings, as many as a training keeps on average; they are listed with how often they were kept and with the
    mean probability that the gate is not 0 (`removal_orders`).

    The baseline is the mean score with random sets of as many heads (of the given model, if its weights are trained):
    the kept heads of all trainings exchanged by one random permutation of all heads. 20 to 60 such sets are drawn,
    until the standard error of their mean is at most 0.01 for every penalty. `rank among random sets` is 1 if the kept
    heads score higher than all of them; a random set that scores as high counts as better. If all heads are kept, or
    none, there is no other set of this size, and neither is measured.

    `positional heads kept`, `syntactic heads kept` and `rare-word heads kept` are the proportions kept of the heads
    with such a function (see heads/functions); the baseline is the proportion kept of all heads. The baseline's
    interval holds 95 % of the proportions that a random set of as many heads would keep: a few heads may all be kept
    by chance. Intervals of scores resample examples, splits and random sets; those of the other measures are ranges
    over trainings.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation import head_ranking
    from bertology.analyses.evaluation.gate_training import GateTrainingConfig

    seed = options.seed
    penalties = _parse_penalties(l0_penalties)
    model, evaluation = head_ranking.prepare_ranking(encoder, corpus, options)
    splits = [
        head_ranking.split_halves(model, evaluation, seed=seed + index, mask_seed=seed) for index in range(n_seeds)
    ]
    functions = {} if function_corpus == "none" else heads_by_function(model, corpus, function_corpus, seed=seed)
    train_weights = model_weights == "trained"
    configs = [
        [
            GateTrainingConfig(
                penalty, steps, batch_size, initial_log_alpha, learning_rate, train_weights, seed + index
            )
            for penalty in penalties
        ]
        for index in range(n_seeds)
    ]
    # [split][direction][penalty]
    runs = _train_all(model, splits, configs, cache)
    # (split and direction, penalty, layer, head)
    masks, open_probability = (
        np.array([[getattr(run, name) for run in of_half] for of_split in runs for of_half in of_split])
        for name in ("kept_heads", "open_probability")
    )
    scores = [
        [split.join([run.test_scores for run in pair]) for pair in zip(*of_split, strict=True)]
        for split, of_split in zip(splits, runs, strict=True)
    ]
    intact, random_scores = _evaluate_random_sets(model, splits, masks, cache, seed)
    n_heads, shape = model.layers * model.heads, (len(penalties),)
    # With all heads or none there is no other set of the same size.
    has_random_sets = ((masks.sum((2, 3)) % n_heads) > 0).any(0)
    measures = {
        SCORE: curve_estimates(scores, loss=False, seed=seed),
        DIFFERENCE: _only(curve_differences(scores, random_scores, loss=False, seed=seed), has_random_sets),
        RANK: _only(_ranks(scores, random_scores), has_random_sets),
        KEPT_HEADS: range_over_seeds(masks.sum((2, 3)).astype(np.float64)),
    }
    chance_rank = Estimates.exact(np.full(shape, (len(random_scores) + 2) / 2))
    baselines = {
        RANDOM_HEADS: {
            SCORE: _only(curve_estimates(random_scores, loss=False, seed=seed), has_random_sets),
            RANK: _only(chance_rank, has_random_sets),
        },
        "all heads": {
            SCORE: curve_estimates([[intact]], loss=False, seed=seed).broadcast_to(shape),
            KEPT_HEADS: Estimates.exact(np.full(shape, n_heads)),
        },
        "zero": {DIFFERENCE: Estimates.exact(np.zeros(shape))},
    }
    for kind, heads in functions.items():
        name = KEPT_BY_FUNCTION[kind]
        measures[name] = range_over_seeds(masks[:, :, heads].mean(-1))
        baselines.setdefault("all heads kept (proportion)", {})[name] = _expected_kept_proportion(masks, heads)
    if evaluation.majority is not None:
        baselines["majority class"] = {SCORE: Estimates.full(shape, bootstrap_score(evaluation.majority))}
    return Curve(
        x_name="L0 penalty",
        x=np.array(penalties),
        measures=measures,
        baselines=baselines,
        units={
            SCORE: f"{evaluation.metric}, 0 to 1",
            DIFFERENCE: f"change in {evaluation.metric}, -1 to 1",
            RANK: f"rank of the kept heads, 1 (best) to {len(random_scores) + 1}",
            KEPT_HEADS: f"heads, 0 to {n_heads}",
            **{KEPT_BY_FUNCTION[kind]: "proportion of heads, 0 to 1" for kind in functions},
        },
        sample=evaluation.sample()
        | {
            "random splits": n_seeds,
            "trainings per penalty": len(masks),
            "random sets": len(random_scores),
            "largest standard error of their mean score": round(float(_standard_errors(random_scores).max()), 6),
            **{f"{kind} heads": int(heads.sum()) for kind, heads in functions.items()},
        },
        not_measured=_missing_random_sets(penalties, masks, has_random_sets),
        reference=evaluation.reference(intact, seed=seed),
        removal_orders=tuple(
            _removal_order(penalty, masks[:, index], open_probability[:, index])
            for index, penalty in enumerate(penalties)
        ),
    )


def _removal_order(penalty: float, kept_heads: BoolArray, open_probability: FloatArray) -> RemovalOrder:
    """Heads by how many of the (training, layer, head) runs kept them, then by the probability of an open gate."""
    kept_in, probability = kept_heads.mean(0), open_probability.mean(0)
    order = np.lexsort((probability.ravel(), kept_in.ravel()))
    return RemovalOrder(
        name=f"L0 penalty {penalty:g}",
        heads=head_names(order, (kept_in.shape[0], kept_in.shape[1])),
        values={
            "kept in (proportion of trainings)": tuple(kept_in.ravel()[order].tolist()),
            "probability that the gate is not 0": tuple(probability.ravel()[order].tolist()),
        },
        n_removed=kept_in.size - round(float(kept_in.sum())),
        criterion=f"as many as on average over {count_noun(len(kept_heads), 'trainings')}",
    )


def _evaluate_random_sets(
    model: TaskEncoder, splits: Sequence[SplitEvaluation], kept_heads: BoolArray, cache: AnalysisCache, seed: int
) -> tuple[Scores, list[list[Scores]]]:
    """Scores of the intact model, and (random set, penalty) scores, the mean over splits.

    `kept_heads` is (split and direction, penalty, layer, head).
    """
    from bertology.analyses.evaluation.gate_training import permuted_head_sets
    from bertology.analyses.evaluation.head_ranking import evaluate_without

    generator = np.random.default_rng([seed, len(splits)])
    n_penalties = kept_heads.shape[1]
    intact: Scores | None = None
    random_scores: list[list[Scores]] = []
    while len(random_scores) < MAX_RANDOM_SETS:
        permutations = [generator.permutation(kept_heads[0, 0].size) for _ in range(SETS_PER_ROUND)]
        # [split][random set and penalty]
        by_split: list[list[Scores]] = []
        for index, split in enumerate(splits):
            by_direction: list[list[Scores]] = []
            for direction, (_, test_half) in enumerate(split.directions):
                of_run = list(kept_heads[2 * index + direction])
                removed = [~heads for order in permutations for heads in permuted_head_sets(of_run, order)]
                by_direction.append(evaluate_without(model, test_half, removed, cache))
            joined = [split.join(tested) for tested in zip(*by_direction, strict=True)]
            intact = intact or joined[0]
            by_split.append(joined[1:])
        means = [mean_scores(of_set) for of_set in zip(*by_split, strict=True)]
        random_scores += [means[start : start + n_penalties] for start in range(0, len(means), n_penalties)]
        is_precise = (_standard_errors(random_scores) <= MAX_STANDARD_ERROR).all()
        if len(random_scores) >= MIN_RANDOM_SETS and is_precise:
            break
    assert intact is not None, "at least one round was evaluated"
    return intact, random_scores


def _mean_scores(runs: Sequence[Sequence[Scores]]) -> FloatArray:
    """(run, penalty) scores over all examples."""
    return np.array([[scores.counts.score for scores in run] for run in runs])


def _standard_errors(random_scores: Sequence[Sequence[Scores]]) -> FloatArray:
    """(penalty,) standard errors of the mean score of random sets."""
    scores = _mean_scores(random_scores)
    return scores.std(0, ddof=1) / np.sqrt(len(scores))


def _ranks(scores: Sequence[Sequence[Scores]], random_scores: Sequence[Sequence[Scores]]) -> Estimates:
    """(penalty,) rank of the kept heads' mean score among the random sets; those that score as high come first."""
    n_better = (_mean_scores(random_scores) >= _mean_scores(scores).mean(0) - 1e-9).sum(0)
    return Estimates.exact(1.0 + n_better, np.full(len(n_better), len(random_scores) + 1))


def _only(estimates: Estimates, mask: BoolArray) -> Estimates:
    """The estimates where the mask is true; elsewhere nothing was measured."""
    ends = {name: np.where(mask, getattr(estimates, name), np.nan) for name in ("value", "low", "high")}
    return estimates.model_copy(update={**ends, "n": np.where(mask, estimates.n, 0)})


def _missing_random_sets(
    penalties: Sequence[float], kept_heads: BoolArray, has_random_sets: BoolArray
) -> dict[str, str]:
    """Why random sets were not measured, for the penalties at which all trainings keep all heads, or none."""
    if has_random_sets.all():
        return {}
    missing = [
        f"{'all heads' if of_penalty.any() else 'no head'} at {penalty:g}"
        for penalty, of_penalty, measured in zip(penalties, kept_heads.swapaxes(0, 1), has_random_sets, strict=True)
        if not measured
    ]
    reason = f"there is no other set of the same size: kept {', '.join(missing)}"
    return {f"{RANDOM_HEADS}, {RANK}": reason}


def heads_by_function(
    encoder: Encoder, corpus: Corpus, function_corpus: str, *, seed: int
) -> dict[FunctionKind, BoolArray]:
    """(layer, head) masks of the heads with each kind of function; kinds without a head are left out.

    Functions are found on the corpus named `function_corpus`, else on the given corpus, or the built-in treebank if it
    has no trees.
    """
    has_trees = corpus.annotations["governors"] and corpus.annotations["relations"]
    treebank = load_corpus(function_corpus or DEFAULT_CORPUS) if function_corpus or not has_trees else corpus
    treebank.require_annotations("governors", "relations", analysis_name="--function-corpus")
    sample = replace(treebank, examples=tuple(sort_by_content(treebank.examples)[:MAX_SENTENCES]))
    recording = record(encoder, sample, [STRONGEST_WORD], config=RecordingConfig(overflow="truncate"), max_hours=None)
    frequencies = english_frequencies()
    frequent_words = frequencies.most_frequent(N_FREQUENT_WORDS)
    counts = count_function_links(
        recording, lambda recorded_input: function_links(recorded_input, frequencies, frequent_words)
    )
    masks: dict[FunctionKind, BoolArray] = {}
    for function in assign_functions(counts, FunctionThresholds(), min_examples=MIN_EXAMPLES, seed=seed):
        if function.is_confirmed:
            empty = np.zeros((encoder.layers, encoder.heads), np.bool_)
            masks.setdefault(function_kind(function.label), empty)[function.head] = True
    return dict(sorted(masks.items()))


def _expected_kept_proportion(kept_heads: BoolArray, function_heads: BoolArray) -> Estimates:
    """(penalty,) the proportion kept of all heads, with 95 % of what a random set of as many heads would keep.

    `kept_heads` is (run, penalty, layer, head). The interval goes from the run that keeps the fewest heads to the one
    that keeps the most.
    """
    from scipy.stats import hypergeom

    set_size, n_heads, n_kept = int(function_heads.sum()), kept_heads[0, 0].size, kept_heads.sum((2, 3))
    low, high = (hypergeom.ppf(q, n_heads, n_kept, set_size) / max(1, set_size) for q in (0.025, 0.975))
    return Estimates(
        value=(n_kept / n_heads).mean(0), low=low.min(0), high=high.max(0), n=np.full(n_kept.shape[1], set_size)
    )


def _parse_penalties(l0_penalties: str) -> list[float]:
    try:
        penalties = sorted({float(penalty) for penalty in l0_penalties.split(",") if penalty.strip()})
    except ValueError:
        penalties = []
    if not 0 < len(penalties) <= MAX_PENALTIES or any(penalty not in PENALTY_RANGE for penalty in penalties):
        raise Refusal(
            f"--l0-penalties was given {shorten_value(l0_penalties)}",
            f"at most {MAX_PENALTIES} numbers {PENALTY_RANGE}",
            "Write for example 0.01,0.1",
        )
    return penalties


def _train_all(
    model: TaskEncoder,
    splits: Sequence[SplitEvaluation],
    configs: Sequence[Sequence[GateTrainingConfig]],
    cache: AnalysisCache,
) -> list[list[list[_GateRun]]]:
    """[split][direction][penalty] gates trained with the configurations of each split; each finished run is cached."""
    from bertology.analyses.evaluation.finetuning_sweep import cached_runs

    arguments = [
        {"model": model, "train_half": train_half, "test_half": test_half, "config": config}
        for split, of_split in zip(splits, configs, strict=True)
        for train_half, test_half in split.directions
        for config in of_split
    ]
    shape = model.layers, model.heads
    runs = iter(
        _GateRun(np.reshape(open_probability, shape), np.reshape(kept_heads, shape) > 0, Scores.from_arrays(*scores))
        for open_probability, kept_heads, *scores in cached_runs(cache, "Training gates", _train_and_test, arguments)
    )
    return [[[next(runs) for _ in of_split] for _ in range(2)] for of_split in configs]


def _train_and_test(
    model: TaskEncoder,
    train_half: Evaluation,
    test_half: Evaluation,
    config: GateTrainingConfig,
    progress: ProgressCallback,
) -> list[list[float]]:
    """Probabilities of open gates, kept heads, then the test scores of the model without the others."""
    from bertology.analyses.evaluation.gate_training import train_gates

    trained = train_gates(model, train_half, config, progress)
    heads = [trained.open_probability.ravel().tolist(), trained.kept_heads.ravel().astype(float).tolist()]
    return [*heads, *test_half.scores(trained.encoder.forward).to_lists()]
