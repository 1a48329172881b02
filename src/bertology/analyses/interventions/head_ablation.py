"""Change in score when single heads, whole layers or all heads of a layer but one are disabled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations, product
from math import comb, prod
from typing import Annotated, Literal

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.evaluation.options import EvaluationOptions
from bertology.analyses.evaluation.score_change import (
    LOSS,
    LOSS_P_VALUE,
    SCORE,
    SCORE_P_VALUE,
    ScoreChangeReport,
    Scores,
    mean_scores,
    score_answers,
    score_change,
)
from bertology.arrays import BoolArray, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder, Head, parse_head_mask
from bertology.errors import Refusal
from bertology.estimates.cross_fitting import CrossFit, cross_fit, random_halves
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import range_over_seeds
from bertology.results.shapes import HeadGrid, LayerCurve, Table
from bertology.training.data_split import content_hash

KEPT_HEAD, CHOSEN_IN = "kept head", "proportion of selections of the kept head"
LAYER_MEAN = "mean of the layer's heads"
MEAN_OVER_KEPT = "mean over heads that could be kept"
RANDOM_HEADS = "random heads (same layers)"
N_RANDOM_SETS = 20
NO_OTHER_SET = "No random baseline: no other set has as many heads of the same layers."


@analysis(
    question="How much does the task score change when a head, or all heads of a layer, is disabled?",
    special_tokens="Special tokens: included. Uniform attention and mean outputs are over all tokens.",
    citations=("kovaleva2019", "michel2019"),
    version=5,
    cost=Cost(45.0),
    answers=True,
)
def head_ablation(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    ablate: Annotated[
        Literal["head", "layer", "all-but-one"],
        "What is disabled at a time: one `head`, all heads of a `layer`, or `all-but-one` head of a layer.",
    ] = "head",
    ablation: Annotated[
        Literal["uniform", "zero", "mean"],
        "How a head is disabled: `uniform` attention (Kovaleva et al. 2019), output set to `zero` (Michel et al. 2019) "
        "or to its `mean` over the corpus.",
    ] = "uniform",
    head_sets: Annotated[
        str,
        "Disable these sets of heads instead: commas separate heads, semicolons sets, as in 1-3,2-4;8-11.",
    ] = "",
    options: EvaluationOptions = EvaluationOptions(),
) -> HeadGrid | LayerCurve | Table:
    """Change in score (-1 to 1) and loss (nats per example) when a head is disabled; 0: no effect.

    An increase in loss means that the head is useful, a decrease that the model is better without it; nothing is
    retrained. The score is the task's: accuracy, F1 of entities or answers, or accuracy on masked tokens (15 % of all).
    Intervals resample examples, the same before and after. p values are those of two-sided paired tests with Holm's
    correction for all heads or layers; a change in an example's loss below 0.0001 nats, which rounding errors reach,
    counts as none. `significantly useful` and `significantly harmful` are 1 if the p of the loss is below 0.05. The
    baseline `mean of the layer's heads` is the mean effect of disabling one head of the layer.

    With `--ablate all-but-one` the kept head is selected by the loss on one half of the examples, and the change is
    measured on the other half; each example's change is the mean over 100 random halves in both directions. `kept head`
    is the one selected most often, with the proportion of selections that chose it. The baseline is the mean over all
    heads that could be kept. Michel et al. select on the examples that they report.

    With `--head-sets` the baseline is the mean, and the range, of 20 different random sets with as many heads of the
    same layers, or of all other sets if there are fewer; `n_costlier_random_sets` counts those whose removal raises the
    loss at least as much. All heads of a layer have no other set: their row has no such baseline, and a note.

    If a score is the same in all n examples, it may still change in others: intervals of the change in score reach at
    least 3/n to either side.

    Kovaleva et al. report one model each without intervals, on test sets in which one example may be 0.4 points.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation.ablation import HeadAblation, prepare_ablation
    from bertology.analyses.evaluation.evaluation import prepare_evaluation

    seed = options.seed
    named_sets, shape = _parse_head_sets(head_sets, encoder), (encoder.layers, encoder.heads)
    evaluation = prepare_evaluation(encoder, corpus, **asdict(options))
    random_sets = [random_head_sets(heads, seed) for heads in named_sets]
    masks = np.concatenate([named_sets, *random_sets]) if len(named_sets) else _ablation_masks(ablate, *shape)
    runner = prepare_ablation(encoder, evaluation, ablation)
    intact, *ablated = runner.evaluate(evaluation, [HeadAblation(mask) for mask in masks], cache)
    report = ScoreChangeReport(evaluation, intact)
    conditions = {"intact model": intact} | dict(zip(_condition_names(masks), ablated, strict=True))
    if len(named_sets):
        names = [heads.strip() for heads in head_sets.split(";")]
        data = _build_table(report, ablated, names, [len(sets) for sets in random_sets], seed)
    elif ablate == "all-but-one":
        data = _kept_head_curve(report, ablated, encoder.heads, seed)
    elif ablate == "layer":
        data = LayerCurve(
            measures=score_change(intact, ablated, seed=seed).measures(),
            baselines=report.baselines((len(ablated),)),
            units=report.units(),
            sample=report.sample(),
            costs=report.costs("layer"),
            first_layer=1,
        )
    else:
        data = _build_grid(report, ablated, shape, seed)
    data = data.model_copy(update={"reference": evaluation.reference(intact, seed=seed)})
    return data.with_answers(lambda: score_answers(evaluation, conditions))


def _condition_names(masks: BoolArray) -> list[str]:
    """The disabled heads of each intervention; a number tells equal random sets apart."""
    names = [f"without {','.join(str(Head(*head)) for head in np.argwhere(mask).tolist())}" for mask in masks]
    earlier = [names[:index].count(name) for index, name in enumerate(names)]
    return [f"{name} ({count + 1})" if count else name for name, count in zip(names, earlier, strict=True)]


def _ablation_masks(ablate: str, n_layers: int, n_heads: int) -> BoolArray:
    """(intervention, layer, head) disabled heads."""
    single_heads = np.eye(n_layers * n_heads, dtype=np.bool_).reshape(-1, n_layers, n_heads)
    layers = np.eye(n_layers, dtype=np.bool_)[:, :, None].repeat(n_heads, 2)
    all_but_one = layers.repeat(n_heads, 0) & ~single_heads
    return {"head": single_heads, "layer": layers, "all-but-one": all_but_one}[ablate]


def _parse_head_sets(head_sets: str, encoder: Encoder) -> BoolArray:
    usage = "Write sets as 1-3,2-4;8-11: commas separate heads, semicolons sets"
    names = head_sets.split(";") if head_sets.strip() else []
    masks = [parse_head_mask(heads, encoder, "--head-sets", usage) for heads in names]
    return np.array(masks, np.bool_).reshape(-1, encoder.layers, encoder.heads)


def random_head_sets(mask: BoolArray, seed: int) -> BoolArray:
    """(set, layer, head) 20 different random sets with as many heads of the same layers; all sets if fewer exist."""
    n_heads, counts = mask.shape[1], mask.sum(1).tolist()
    sets: dict[bytes, BoolArray] = {}
    if prod(comb(n_heads, count) for count in counts) - 1 <= N_RANDOM_SETS:
        rows = [[np.isin(np.arange(n_heads), heads) for heads in combinations(range(n_heads), n)] for n in counts]
        sets = {(heads := np.stack(by_layer)).tobytes(): heads for by_layer in product(*rows)}
        del sets[mask.tobytes()]
    else:
        generator = np.random.default_rng(seed)
        while len(sets) < N_RANDOM_SETS:
            heads = generator.permuted(mask, axis=1)
            if not np.array_equal(heads, mask):
                sets[heads.tobytes()] = heads
    return np.array(list(sets.values()), np.bool_).reshape(-1, *mask.shape)


def _build_grid(report: ScoreChangeReport, ablated: Sequence[Scores], shape: tuple[int, int], seed: int) -> HeadGrid:
    measures = score_change(report.baseline_scores, ablated, seed=seed).measures()
    layer_means = score_change(
        report.baseline_scores, [mean_scores(layer) for layer in _split_by_layer(ablated, shape[1])], seed=seed
    )
    baselines = report.baselines(shape)
    baselines[LAYER_MEAN] = {
        SCORE: layer_means.score[:, None].broadcast_to(shape),
        LOSS: layer_means.loss[:, None].broadcast_to(shape),
    }
    index = np.arange(len(ablated)).reshape(shape)
    return HeadGrid(
        measures={name: estimates[index] for name, estimates in measures.items()},
        baselines=baselines,
        units=report.units(),
        sample=report.sample(),
        costs=report.costs("head"),
        lowest=(SCORE, SCORE_P_VALUE, LOSS_P_VALUE),
    )


def _kept_head_curve(report: ScoreChangeReport, ablated: Sequence[Scores], n_heads: int, seed: int) -> LayerCurve:
    """Select each layer's kept head on one half of the examples and score it on the other, over many random halves."""
    halves = random_halves([content_hash([example]) for example in report.evaluation.examples], seed=seed)
    layers = _split_by_layer(ablated, n_heads)
    fits = [select_kept_head(halves, layer) for layer in layers]
    kept_scores = [held_out_scores(fit, layer) for fit, layer in zip(fits, layers, strict=True)]
    change, mean_change = (
        score_change(report.baseline_scores, scores, seed=seed)
        for scores in (kept_scores, [mean_scores(layer) for layer in layers])
    )
    kept_heads, proportions = np.array([fit.most_selected for fit in fits]).T
    baselines = report.baselines((len(layers),))
    baselines[MEAN_OVER_KEPT] = {SCORE: mean_change.score, LOSS: mean_change.loss}
    baselines["random heads"] = {CHOSEN_IN: Estimates.exact(np.full(len(layers), 1 / n_heads))}
    return LayerCurve(
        measures={
            **change.measures(),
            KEPT_HEAD: Estimates.exact(kept_heads + 1, halves.shape[1]),
            CHOSEN_IN: Estimates.exact(proportions, halves.shape[1]),
        },
        baselines=baselines,
        units={**report.units(), KEPT_HEAD: f"head, 1 to {n_heads}", CHOSEN_IN: "proportion of selections, 0 to 1"},
        sample=report.sample() | {"random halves": len(fits[0].halves)},
        costs=report.costs("layer", "all heads but one of"),
        first_layer=1,
    )


def select_kept_head(halves: BoolArray, layer: Sequence[Scores]) -> CrossFit:
    """The head with the lowest loss on each half, if it is the only one kept."""
    losses = np.stack([scores.losses for scores in layer], 1)
    fit = cross_fit(halves, np.ones(len(losses)), lambda half: -half @ losses)
    if fit is None:
        raise Refusal(
            "--ablate all-but-one has " + ("1 example" if len(losses) == 1 else f"{len(losses)} equal examples"),
            "at least 2 that differ: one half selects the head to keep, the other evaluates it",
            "Use a larger corpus or --sample-size",
        )
    return fit


def held_out_scores(fit: CrossFit, layer: Sequence[Scores]) -> Scores:
    """Each example's scores with the head selected on the other half, mean over the splits."""
    arrays = ([s.losses for s in layer], [s.counts.correct for s in layer], [s.counts.total for s in layer])
    return Scores.from_arrays(*(fit.scores(np.stack(values, 1)).mean(0) for values in arrays))


def _split_by_layer(ablated: Sequence[Scores], n_heads: int) -> list[Sequence[Scores]]:
    return [ablated[start : start + n_heads] for start in range(0, len(ablated), n_heads)]


def _build_table(
    report: ScoreChangeReport, ablated: Sequence[Scores], names: Sequence[str], n_random: Sequence[int], seed: int
) -> Table:
    """The named sets, which come first, and for each of them the range of its random sets."""
    change = score_change(report.baseline_scores, ablated[: len(names)], seed=seed)
    remaining = iter(ablated[len(names) :])
    by_set = [[next(remaining) for _ in range(count)] for count in n_random]
    random_changes = [score_change(report.baseline_scores, sets, seed=seed) if sets else None for sets in by_set]
    missing = Estimates.empty(())
    random_score, random_loss = (
        Estimates.stack([_range(values.value) if values is not None else missing for values in series])
        for series in (
            [random and random.score for random in random_changes],
            [random and random.loss for random in random_changes],
        )
    )
    n_costlier = [
        None if random is None else int((random.loss.value >= loss).sum())
        for random, loss in zip(random_changes, change.loss.value.tolist(), strict=True)
    ]
    baselines = report.baselines((len(names),))
    baselines[RANDOM_HEADS] = {SCORE: random_score, LOSS: random_loss}
    return Table(
        row_names=tuple(names),
        measures=change.measures(),
        baselines=baselines,
        units=report.units(),
        sample=report.sample(),
        costs=report.costs("set of heads", "heads"),
        attributes={
            "n_heads": tuple(len(heads.split(",")) for heads in names),
            "n_random_sets": tuple(n_random),
            "n_costlier_random_sets": tuple(n_costlier),
        },
        notes={name: NO_OTHER_SET for name, count in zip(names, n_random, strict=True) if not count},
    )


def _range(values: FloatArray) -> Estimates:
    """The mean and range of the random sets; one set alone has no range."""
    estimates = range_over_seeds(values)
    if len(values) > 1:
        return estimates
    return estimates.model_copy(update={"low": np.array(np.nan), "high": np.array(np.nan)})
