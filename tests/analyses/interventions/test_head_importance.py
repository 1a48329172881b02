"""Planted heads are important and others are not; gradients match finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import planted_heads
from bertology.analyses import registry
from bertology.analyses.evaluation.evaluation import prepare_evaluation
from bertology.analyses.evaluation.gradient_importance import head_gradients, normalise_layers
from bertology.analyses.evaluation.head_ranking import HeadImportance
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.load import load
from bertology.results.headline import headline
from bertology.results.shapes import HeadGrid
from planted_heads import DEAD, PLANTED, RANKED

HEAD_IMPORTANCE = registry.get("interventions/head_importance")
GRADIENT, CONFIDENCE = "gradient importance", "confidence"
RELEVANCE, ABLATION = "relevance (LRP)", "loss increase when ablated"


def run(**options: Any) -> HeadGrid:
    encoder, corpus = planted_heads.single_head()
    grid = run_analysis(HEAD_IMPORTANCE, RunInputs(corpus, encoder), options).data
    assert isinstance(grid, HeadGrid)
    return grid


@pytest.fixture(scope="module")
def grid() -> HeadGrid:
    return run(normalise="none")


@pytest.mark.parametrize("measure", [GRADIENT, ABLATION])
def test_only_the_planted_head_is_important(grid: HeadGrid, measure: str) -> None:
    values = grid.measures[measure].value
    others = np.ones(values.shape, np.bool_)
    others[PLANTED] = False
    assert values[PLANTED] > 0.02
    np.testing.assert_allclose(values[others], 0, atol=1e-5)
    assert grid.measures[measure].low[PLANTED] > 0


def test_relevance_ablation_and_baselines(grid: HeadGrid) -> None:
    assert grid.measures[RELEVANCE].value[PLANTED] == pytest.approx(1, abs=1e-4)
    assert grid.measures[ABLATION].value[DEAD] == 0
    assert grid.baselines["zero"][ABLATION].value[PLANTED] == 0
    assert set(grid.baselines["untrained model"]) == {GRADIENT, CONFIDENCE, RELEVANCE}
    assert grid.baselines["equal importance"][RELEVANCE].value[PLANTED] == 1 / 4


def test_the_planted_head_stands_out_after_correction(grid: HeadGrid) -> None:
    p = grid.measures["p of loss increase (Holm)"].value
    assert p[PLANTED] < 0.001 and p[DEAD] == 1
    lines = headline(grid)
    assert lines[0].startswith("Accuracy of the intact model: 1 ")
    assert lines[1].startswith(f"Highest cost (change in loss, nats per example): {PLANTED} (+")
    assert f"needed: {PLANTED};" in lines[-1]


def test_the_untrained_model_can_be_left_out() -> None:
    assert "untrained model" not in run(random_baseline=False).baselines


@pytest.mark.parametrize("legacy", [False, True])
def test_normalised_layers_have_unit_norm(legacy: bool) -> None:
    values = run(legacy=legacy).measures[GRADIENT].value
    assert values[PLANTED] == pytest.approx(1, abs=1e-3)
    assert np.linalg.norm(values[1]) == pytest.approx(1)


def test_gradients_agree_with_finite_differences_of_the_gates() -> None:
    encoder, corpus = planted_heads.ranked_heads()
    evaluation = prepare_evaluation(encoder, corpus)
    gradients = head_gradients(encoder, evaluation)
    for head in (RANKED[0], RANKED[3]):
        losses: list[Any] = []
        for step in (1e-2, -1e-2):
            scale = torch.ones(encoder.layers, encoder.heads)
            scale[head] += step
            losses.append(evaluation.scores(encoder.with_gates(Gates(scale=scale)).forward).losses)
        expected = np.abs((losses[0] - losses[1]) / 2e-2)
        assert expected.max() > 0.02
        np.testing.assert_allclose(gradients.gradient[:, head[0], head[1]], expected, rtol=1e-2, atol=1e-4)


def test_absolute_gradients_per_token_do_not_cancel() -> None:
    encoder = load("tiny")
    assert isinstance(encoder, TaskEncoder)
    gradients = head_gradients(encoder, prepare_evaluation(encoder, load_corpus("english", limit=5)))
    assert (gradients.absolute_by_token >= gradients.gradient - 1e-12).all()
    assert (gradients.absolute_by_token > gradients.gradient + 1e-9).any()


def test_confidence_agrees_with_the_analysis_of_that_name() -> None:
    """On inputs without masked tokens: those of a classifier."""
    encoder, corpus = planted_heads.single_head()
    gradients = head_gradients(encoder, prepare_evaluation(encoder, corpus))
    confidence = run_analysis(
        registry.get("attention/confidence"), RunInputs(corpus, encoder, random_baseline=False)
    ).data
    assert isinstance(confidence, HeadGrid)
    values = gradients.max_weights.sum(0) / gradients.n_tokens.sum()
    np.testing.assert_allclose(values, confidence.measures["confidence (no special targets)"].value, atol=1e-5)


def test_means_ignore_nan() -> None:
    values = np.array([[[1.0, np.nan]], [[3.0, np.nan]], [[np.nan, np.nan]]])
    estimates = HeadImportance(values, np.array([1.0, 3.0, 1.0])).estimates(0)
    np.testing.assert_allclose(estimates.value, [[2.5, np.nan]])
    assert estimates.n.tolist() == [[2, 0]]
    assert np.isnan(estimates.low[0, 1])


def test_a_layer_of_zeros_stays_zero_when_normalised() -> None:
    np.testing.assert_allclose(normalise_layers(np.array([[0.0, 0.0], [3.0, 4.0]])), [[0, 0], [0.6, 0.8]])
