"""Planted heads have the planted effect; heads whose output is never read have none."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import planted_heads
from bertology.analyses import registry
from bertology.analyses.evaluation.evaluation import prepare_evaluation
from bertology.analyses.evaluation.score_change import Scores
from bertology.analyses.interventions.head_ablation import held_out_scores, random_head_sets, select_kept_head
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import BoolArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.estimates.cross_fitting import random_halves
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table
from planted_heads import DEAD, EXAMPLE_COUNTS, PLANTED, RANKED

HEAD_ABLATION = registry.get("interventions/head_ablation")
SCORE, LOSS = "change in score", "change in loss"
CHOSEN_IN = "proportion of selections of the kept head"
USEFUL, HARMFUL = "significantly useful", "significantly harmful"
SCORE_P, LOSS_P = "p of change in score (Holm)", "p of change in loss (Holm)"
METHODS = ("uniform", "zero", "mean")


def run(encoder: Encoder, corpus: Corpus, **options: Any) -> Any:
    return run_analysis(HEAD_ABLATION, RunInputs(corpus, encoder), {"sample_size": 0} | options).data


@cache
def planted_grid(ranked: bool, method: str) -> HeadGrid:
    grid = run(*(planted_heads.ranked_heads() if ranked else planted_heads.single_head()), ablation=method)
    assert isinstance(grid, HeadGrid)
    return grid


def mask_of(*heads: Head) -> BoolArray:
    mask = np.zeros((planted_heads.LAYERS, planted_heads.HEADS), np.bool_)
    for head in heads:
        mask[head] = True
    return mask


@pytest.mark.parametrize("method", METHODS)
def test_only_the_planted_head_is_useful(method: str) -> None:
    grid = planted_grid(False, method)
    np.testing.assert_allclose(grid.measures[SCORE].value, np.where(mask_of(PLANTED), -0.5, 0.0))
    loss = grid.measures[LOSS]
    assert loss.value[PLANTED] > 0.5 and np.abs(loss.value[~mask_of(PLANTED)]).max() < 1e-5
    np.testing.assert_array_equal(grid.measures[USEFUL].value, mask_of(PLANTED))
    np.testing.assert_array_equal(grid.measures[HARMFUL].value, np.zeros((3, 4)))
    np.testing.assert_array_equal(grid.measures[LOSS_P].value < 0.05, mask_of(PLANTED))
    np.testing.assert_array_equal(grid.measures[SCORE_P].value < 0.05, mask_of(PLANTED))


@pytest.mark.parametrize("method", ["zero", "uniform"])
def test_a_head_with_zero_output_weights_has_no_effect(method: str) -> None:
    for estimates in (planted_grid(False, method).measures[name] for name in (SCORE, LOSS)):
        assert estimates.value[DEAD] == estimates.low[DEAD] == estimates.high[DEAD] == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_each_planted_head_costs_its_proportion_of_the_examples(method: str) -> None:
    grid = planted_grid(True, method)
    expected = np.zeros((3, 4))
    for head, share in zip(RANKED, EXAMPLE_COUNTS, strict=True):
        expected[head] = -share / 30
    np.testing.assert_allclose(grid.measures[SCORE].value, expected, atol=1e-9)
    order = np.argsort(-grid.measures[LOSS].value.ravel())
    assert [Head(*divmod(int(index), 4)) for index in order[:4]] == list(RANKED)


def test_the_baseline_is_the_mean_of_the_layer() -> None:
    grid = planted_grid(True, "zero")
    for name in (SCORE, LOSS):
        baseline = grid.baselines["mean of the layer's heads"][name]
        np.testing.assert_allclose(baseline.value, np.repeat(grid.measures[name].value.mean(1, keepdims=True), 4, 1))
        assert (baseline.low < baseline.high).all()
    assert grid.baselines["majority class"][SCORE].value[0, 0] == -0.5


def test_intervals_are_paired() -> None:
    """Half of the examples are always lost: the error is that of one proportion, not of a difference of two."""
    estimate = planted_grid(False, "zero").measures[SCORE][PLANTED]
    assert estimate.n == 64
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 64), rel=0.15)
    unchanged = planted_grid(False, "zero").measures[SCORE][Head(2, 3)]
    assert unchanged.value == 0 and (unchanged.low, unchanged.high) == pytest.approx((-3 / 64, 3 / 64))


def test_a_head_that_predicts_the_opposite_is_harmful() -> None:
    encoder, corpus = planted_heads.single_head()
    opposite = {"good": "bad", "bad": "good"}
    examples = tuple(replace(example, label=opposite[str(example.label)]) for example in corpus)
    grid = run(encoder, replace(corpus, examples=examples), ablation="zero")
    np.testing.assert_array_equal(grid.measures[HARMFUL].value, mask_of(PLANTED))
    assert grid.measures[SCORE].value[PLANTED] == 0.5


def test_whole_layers_can_be_ablated() -> None:
    curve = run(*planted_heads.ranked_heads(), ablate="layer", ablation="zero")
    assert isinstance(curve, LayerCurve) and curve.first_layer == 1
    np.testing.assert_allclose(curve.measures[SCORE].value, [-4 / 30, -2 / 30, -9 / 30], atol=1e-9)


def test_all_but_one_keeps_the_most_useful_head() -> None:
    curve = run(*planted_heads.ranked_heads(), ablate="all-but-one", ablation="zero")
    assert isinstance(curve, LayerCurve)
    np.testing.assert_array_equal(curve.measures["kept head"].value, [4, 3, 2])
    assert curve.measures["kept head"].interval == "exact"
    assert curve.measures[SCORE].value[:2].tolist() == [0.0, 0.0]  # the only planted head was kept
    assert curve.measures[SCORE].value[2] < 0.0  # one of two was kept
    mean_loss = curve.baselines["mean over heads that could be kept"][LOSS].value
    assert (mean_loss > curve.measures[LOSS].value + 0.01).all()
    assert curve.measures[LOSS].n.tolist() == [120, 120, 120]  # each example is in the half that did not select
    assert curve.sample["examples"] == 120 and curve.sample["random halves"] == 100
    assert (curve.measures[CHOSEN_IN].value > 0.9).all()
    assert (curve.baselines["random heads"][CHOSEN_IN].value == 0.25).all()
    assert curve.sample["accuracy of the intact model"] == 1


def test_the_kept_head_does_not_depend_on_the_seed() -> None:
    curves = [run(*planted_heads.ranked_heads(), ablate="all-but-one", ablation="zero", seed=seed) for seed in range(4)]
    for curve in curves:
        np.testing.assert_array_equal(curve.measures["kept head"].value, [4, 3, 2])
        np.testing.assert_allclose(curve.measures[SCORE].value, curves[0].measures[SCORE].value, atol=0.01)


def test_kept_heads_are_scored_on_the_other_half() -> None:
    """Heads whose losses are noise: the best of twenty on all examples is lower than the mean, held out it is not."""
    kept, best = [], []
    for seed in range(50):
        losses = np.random.default_rng(seed).normal(size=(20, 60))
        scores = [Scores.from_arrays(head_losses, np.ones(60), np.ones(60)) for head_losses in losses]
        fit = select_kept_head(random_halves([f"{number:02d}" for number in range(60)], seed=seed), scores)
        kept.append(held_out_scores(fit, scores).losses.mean())
        best.append(losses.mean(1).min())
    assert np.mean(best) < -0.15
    assert abs(np.mean(kept)) < 3 * np.std(kept) / np.sqrt(50)


def test_sets_of_heads_are_compared_with_random_sets() -> None:
    table = run(*planted_heads.ranked_heads(), head_sets="3-2, 1-4; 1-1,1-2", ablation="zero")
    assert isinstance(table, Table) and table.row_names == ("3-2, 1-4", "1-1,1-2")
    np.testing.assert_allclose(table.measures[SCORE].value, [-12 / 30, 0.0], atol=1e-9)
    random = table.baselines["random heads (same layers)"][SCORE]
    assert random.n.tolist() == [15, 5] and random.interval == "range"  # all other sets of as many heads
    assert table.attributes["n_random_sets"] == (15, 5) and not table.notes
    first, second = table.attributes["n_costlier_random_sets"]
    assert first == 0 and isinstance(second, int) and second >= 3  # three other pairs have the head 1-4
    assert table.measures[SCORE].interval == "bootstrap"
    assert -12 / 30 < random.value[0] < 0 and random.low[0] >= -12 / 30
    encoder, corpus = planted_heads.ranked_heads()
    scale = torch.ones(3, 4)
    scale[2, 1] = scale[0, 3] = 0
    evaluation = prepare_evaluation(encoder, corpus)
    after = evaluation.scores(encoder.with_gates(Gates(scale=scale)).forward)
    before = evaluation.scores(encoder.forward)
    np.testing.assert_allclose(table.measures[LOSS].value[0], (after.losses - before.losses).mean(), atol=1e-6)


def test_a_whole_layer_has_no_random_baseline_and_says_why() -> None:
    table = run(*planted_heads.ranked_heads(), head_sets="1-1,1-2,1-3,1-4;3-2", ablation="zero")
    random = table.baselines["random heads (same layers)"][LOSS]
    assert np.isnan(random.value[0]) and random.n.tolist() == [0, 3]
    assert list(table.notes) == ["1-1,1-2,1-3,1-4"] and "no other set" in table.notes["1-1,1-2,1-3,1-4"]
    assert table.attributes["n_costlier_random_sets"][0] is None


@pytest.mark.parametrize(
    ("heads", "n_sets"), [([(0, 0)], 11), ([(0, 0), (1, 3)], 20), ([(2, h) for h in range(12)], 0)]
)
def test_random_sets_are_different_and_never_the_set_itself(heads: list[tuple[int, int]], n_sets: int) -> None:
    mask = np.zeros((4, 12), np.bool_)
    mask[tuple(np.transpose(heads))] = True
    sets = random_head_sets(mask, seed=0)
    assert len(sets) == n_sets == len({heads.tobytes() for heads in sets})
    assert all((other.sum(1) == mask.sum(1)).all() and (other != mask).any() for other in sets)


def test_the_headline_names_the_needed_head_first() -> None:
    encoder, corpus = planted_heads.ranked_heads()
    result = run_analysis(HEAD_ABLATION, RunInputs(corpus, encoder), {"sample_size": 0, "ablation": "zero"})
    score, highest, lowest, outstanding = result.headline()
    assert score.startswith("Accuracy of the intact model: 1 ") and f"n = {len(corpus)}" in score
    assert highest.startswith(f"Highest cost (change in loss, nats per example): {RANKED[0]} (+")
    assert [str(head) in highest for head in RANKED] == [True, True, True, False]
    assert ", p " in highest and lowest.startswith("Lowest cost: ")
    assert "12 comparisons" in outstanding
    assert repr(result).splitlines()[1] == score


@pytest.mark.parametrize("head_sets", ["4-1", "1-5", "0-1", "first", "1-1;", "1-1,,2-2"])
def test_heads_that_do_not_exist_are_refused(head_sets: str) -> None:
    with pytest.raises(Refusal, match="from 1-1 to 3-4"):
        run(*planted_heads.single_head(), head_sets=head_sets)


def test_no_head_of_an_untrained_model_is_significant() -> None:
    encoder, corpus = load("tiny"), planted_heads.single_head()[1]
    grid = run(encoder, corpus, task="mlm")
    assert grid.measures[USEFUL].value.sum() + grid.measures[HARMFUL].value.sum() <= 1
    assert np.abs(grid.measures[LOSS].value).max() < 0.2


def test_the_sample_includes_score_and_loss_of_the_intact_model() -> None:
    sample = planted_grid(False, "zero").sample
    assert sample["examples"] == 64 and sample["skipped examples"] == 0
    assert sample["accuracy of the intact model"] == 1
    assert 0 < sample["nats per example of the intact model"] < np.log(2)


def test_one_example_has_no_interval_and_no_p_value() -> None:
    encoder, corpus = planted_heads.single_head()
    single = replace(corpus, examples=corpus.examples[:1])
    grid = run(encoder, single)
    assert np.isfinite(grid.measures[LOSS].value).all() and np.isnan(grid.measures[LOSS].low).all()
    assert np.isnan(grid.measures[LOSS_P].value).all() and not grid.measures[USEFUL].n.any()
    with pytest.raises(Refusal, match="--ablate all-but-one has 1 example"):
        run(encoder, single, ablate="all-but-one")
