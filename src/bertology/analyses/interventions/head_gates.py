"""Heads that survive an L0 penalty on open heads (voita2019, section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from annotated_types import Ge

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.options import BatchSizeOption, HalvedEvaluationOptions, NSeedsOption
from bertology.analyses.evaluation.pruning_curves import curve_estimates
from bertology.analyses.evaluation.score_change import Scores
from bertology.analyses.head_selection.functions import (
    STRONGEST_WORD,
    FunctionKind,
    FunctionThresholds,
    assign_functions,
    count_function_links,
    function_kind,
    function_links,
)
from bertology.analyses.run import AnalysisCache, ProgressCallback
from bertology.arrays import BoolArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.corpus.word_frequencies import english_frequencies
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.metrics import bootstrap_score
from bertology.estimates.resampling import range_over_seeds
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import record
from bertology.results.shapes import Curve
from bertology.training.data_split import content_hash, sort_by_content

if TYPE_CHECKING:
    from bertology.analyses.evaluation.evaluation import Evaluation
    from bertology.analyses.evaluation.gate_training import GateTrainingConfig

SCORE, KEPT_HEADS = "score", "heads kept"
KEPT_BY_FUNCTION: dict[FunctionKind, str] = {
    "positional": "positional heads kept",
    "syntactic": "syntactic heads kept",
    "rarest word": "rare-word heads kept",
}
N_RANDOM_SETS = 3
"""Random sets of the same size, for each set of kept heads."""
N_FREQUENT_WORDS, MIN_EXAMPLES = 500, 20
MAX_SENTENCES = 200
"""Sentences that head functions are found on: enough for positions and frequent relations."""
DEFAULT_CORPUS = "english"

GateRun = tuple[BoolArray, Scores]
"""(layer, head) kept heads, and the scores of the model with them."""


@analysis(
    question="Which heads survive an L0 penalty on open heads, and how well does the model do with them alone?",
    special_tokens="Special tokens: included. The output of a closed head is zero at every token.",
    citations=("voita2019", "louizos2018"),
    version=4,
    cost=Cost(300.0),
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
    steps: Annotated[int, Ge(1), "Training steps of the gates."] = 60,
    batch_size: BatchSizeOption = 8,
    initial_log_alpha: Annotated[
        float, "Initial log alpha of the Hard Concrete gates; at 2 a gate is open 95 % of the time."
    ] = 2.0,
    learning_rate: Annotated[float, "Peak learning rate of the gates."] = 0.2,
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
    more steps find smaller and better sets. The score is that of the other half of the examples. The baseline is the
    score with a random set of as many heads (of the given model, if its weights are trained).

    `positional heads kept`, `syntactic heads kept` and `rare-word heads kept` are the proportions kept of the heads
    with such a function (see heads/functions); the baseline is the proportion kept of all heads. The baseline's
    interval holds 95 % of the proportions that a random set of as many heads would keep: a few heads may all be kept
    by chance. Intervals of scores resample examples and runs; those of the other measures are ranges over runs.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation import head_ranking
    from bertology.analyses.evaluation.gate_training import GateTrainingConfig, random_head_sets

    seed = options.seed
    penalties = _parse_penalties(l0_penalties)
    model, evaluation = head_ranking.prepare_ranking(encoder, corpus, options)
    train_half, test_half = head_ranking.split_halves(model, evaluation, seed=seed)
    functions = {} if function_corpus == "none" else heads_by_function(model, corpus, function_corpus, seed=seed)
    train_weights = model_weights == "trained"
    configs = [
        GateTrainingConfig(penalty, steps, batch_size, initial_log_alpha, learning_rate, train_weights, seed + offset)
        for offset in range(n_seeds)
        for penalty in penalties
    ]
    runs = _train_all(model, train_half, test_half, configs, cache)
    random_sets = random_head_sets([kept_heads for kept_heads, _ in runs], N_RANDOM_SETS, seed)
    intact, *random_scores = head_ranking.evaluate_without(model, test_half, [~heads for heads in random_sets], cache)
    by_seed = [runs[start : start + len(penalties)] for start in range(0, len(runs), len(penalties))]
    # (seed, penalty, layer, head)
    masks = np.array([[kept_heads for kept_heads, _ in seed_runs] for seed_runs in by_seed])
    scores = [[run_scores for _, run_scores in seed_runs] for seed_runs in by_seed]
    scores_of_random = [
        [random_scores[(run * len(penalties) + i) * N_RANDOM_SETS + sample] for i in range(len(penalties))]
        for run in range(len(masks))
        for sample in range(N_RANDOM_SETS)
    ]
    n_heads, shape = model.layers * model.heads, (len(penalties),)
    measures = {
        SCORE: curve_estimates(scores, loss=False, seed=seed),
        KEPT_HEADS: range_over_seeds(masks.sum((2, 3)).astype(np.float64)),
    }
    baselines = {
        "random heads (same number)": {SCORE: curve_estimates(scores_of_random, loss=False, seed=seed)},
        "all heads": {
            SCORE: curve_estimates([[intact]], loss=False, seed=seed).broadcast_to(shape),
            KEPT_HEADS: Estimates.exact(np.full(shape, n_heads)),
        },
    }
    for kind, heads in functions.items():
        name = KEPT_BY_FUNCTION[kind]
        measures[name] = range_over_seeds(masks[:, :, heads].mean(-1))
        baselines.setdefault("all heads kept (proportion)", {})[name] = _expected_kept_proportion(masks, heads)
    if test_half.majority is not None:
        baselines["majority class"] = {SCORE: bootstrap_score(test_half.majority).broadcast_to(shape)}
    return Curve(
        x_name="L0 penalty",
        x=np.array(penalties),
        measures=measures,
        baselines=baselines,
        units={
            SCORE: f"{evaluation.metric}, 0 to 1",
            KEPT_HEADS: f"heads, 0 to {n_heads}",
            **{KEPT_BY_FUNCTION[kind]: "proportion of heads, 0 to 1" for kind in functions},
        },
        sample={
            "training examples": len(train_half.examples),
            "test examples": len(test_half.examples),
            **{f"{kind} heads": int(heads.sum()) for kind, heads in functions.items()},
        },
    )


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
    recording = record(encoder, sample, [STRONGEST_WORD], config=RecordingConfig(overflow="truncate"))
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
    if not penalties or penalties[0] < 0 or not np.isfinite(penalties).all():
        raise Refusal(
            f"--l0-penalties was given {l0_penalties!r}", "numbers of at least 0", "Write for example 0.01,0.1"
        )
    return penalties


def _train_all(
    model: TaskEncoder,
    train_half: Evaluation,
    test_half: Evaluation,
    configs: Sequence[GateTrainingConfig],
    cache: AnalysisCache,
) -> list[GateRun]:
    """Kept heads and test scores of each run; each finished run is cached."""
    from bertology.analyses.evaluation.finetuning_sweep import cached_runs
    from bertology.analyses.evaluation.gate_training import DISTRIBUTION, train_gates

    def train_one(step: int, progress: ProgressCallback) -> list[list[float]]:
        trained = train_gates(model, train_half, configs[step], progress)
        kept_heads = trained.kept_heads.ravel().astype(float).tolist()
        return [kept_heads, *test_half.scores(trained.encoder.forward).to_lists()]

    key = {
        "analysis": "interventions/head_gates",
        "format": 2,
        "model": model.fingerprint,
        "task": train_half.task,
        "train": content_hash(train_half.examples),
        "test": content_hash(test_half.examples),
        "distribution": asdict(DISTRIBUTION),
    }
    keys = [{**key, "config": asdict(config)} for config in configs]
    return [
        (np.array(kept_heads).reshape(model.layers, model.heads) > 0, Scores.from_arrays(*scores))
        for kept_heads, *scores in cached_runs(cache, "Training gates", keys, train_one)
    ]
