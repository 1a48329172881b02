"""Planted heads are important and idle ones are not; gradients match finite differences; released and paper's ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import planted_heads
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.encoder.attend import Gates
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.measures.causes.examination import examine
from bertology.measures.causes.head_orders import Importance
from bertology.measures.causes.importance import by_layer, sums
from bertology.results.shapes import HeadGrid
from planted_heads import DEAD, PLANTED, RANKED

IMPORTANCE = registry.get("causes/importance")


def grid(**options: Any) -> HeadGrid:
    encoder, corpus = planted_heads.one_head()
    found = run(IMPORTANCE, Subject(corpus, encoder), options).data
    assert isinstance(found, HeadGrid)
    return found


@pytest.fixture(scope="module")
def planted() -> HeadGrid:
    return grid(scale="none")


@pytest.mark.parametrize("measure", ["gradient", "ablation"])
def test_only_the_planted_head_matters(planted: HeadGrid, measure: str) -> None:
    values = planted.measures[measure].value
    others = np.ones(values.shape, np.bool_)
    others[PLANTED] = False
    assert values[PLANTED] > 0.02
    np.testing.assert_allclose(values[others], 0, atol=1e-5)
    assert planted.measures[measure].low[PLANTED] > 0


def test_removal_and_baselines(planted: HeadGrid) -> None:
    assert planted.measures["relevance"].value[PLANTED] == pytest.approx(1, abs=1e-4)
    assert planted.measures["ablation"].value[DEAD] == 0
    assert planted.baselines["no effect"]["ablation"].value[PLANTED] == 0
    assert set(planted.baselines["random weights"]) == {"gradient", "confidence", "relevance"}
    assert planted.baselines["all heads alike"]["relevance"].value[PLANTED] == 1 / 4


@pytest.mark.parametrize("legacy", [False, True])
def test_scaled_by_layer_each_layer_has_the_length_one(legacy: bool) -> None:
    found = grid(legacy=legacy).measures["gradient"].value
    assert found[PLANTED] == pytest.approx(1, abs=1e-3)
    assert np.linalg.norm(found[1]) == pytest.approx(1)


def test_gradients_are_those_of_the_gates() -> None:
    """Each item's loss, with its gates moved a little up and down."""
    encoder, corpus = planted_heads.ranked_heads()
    asked = examine(encoder, corpus)
    found = sums(encoder, asked)
    for place in (RANKED[0], RANKED[3]):
        losses: list[Any] = []
        for move in (1e-2, -1e-2):
            scale = torch.ones(encoder.layers, encoder.heads)
            scale[place] += move
            losses.append(asked.marks(encoder.gated(Gates(scale=scale)).run).losses)
        slopes = np.abs((losses[0] - losses[1]) / 2e-2)
        assert slopes.max() > 0.02
        np.testing.assert_allclose(found.gradient[:, place[0], place[1]], slopes, rtol=1e-2, atol=1e-4)


def test_sizes_by_piece_are_no_smaller_and_add_up_without_cancelling() -> None:
    encoder = load("tiny")
    assert isinstance(encoder, HuggingFaceEncoder)
    found = sums(encoder, examine(encoder, corpus_named("english", limit=5)))
    assert (found.by_piece >= found.gradient - 1e-12).all()
    assert (found.by_piece > found.gradient + 1e-9).any()


def test_confidence_is_that_of_the_analysis_of_its_name() -> None:
    """On inputs with nothing hidden: those of a classifier."""
    encoder, corpus = planted_heads.one_head()
    found = sums(encoder, examine(encoder, corpus))
    beside = run(registry.get("attention/confidence"), Subject(corpus, encoder, randomise=False)).data
    assert isinstance(beside, HeadGrid)
    values = found.highest.sum(0) / found.pieces.sum()
    np.testing.assert_allclose(values, beside.measures["to ordinary"].value, atol=1e-5)


def test_means_leave_out_what_is_no_number() -> None:
    values = np.array([[[1.0, np.nan]], [[3.0, np.nan]], [[np.nan, np.nan]]])
    found = Importance(values, np.array([1.0, 3.0, 1.0])).estimates(0)
    np.testing.assert_allclose(found.value, [[2.5, np.nan]])
    assert found.n.tolist() == [[2, 0]]
    assert np.isnan(found.low[0, 1])


def test_a_layer_of_zeros_stays_zero() -> None:
    np.testing.assert_allclose(by_layer(np.array([[0.0, 0.0], [3.0, 4.0]])), [[0, 0], [0.6, 0.8]])
