"""The heads that were planted are found, with their sizes; heads that nothing reads do nothing; chance on noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import planted_heads
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import Corpus
from bertology.encoder.attend import Gates
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.causes.examination import examine
from bertology.recording.recorder import Policy
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table
from planted_heads import DEAD, PLANTED, RANKED, SHARES

HEADS = registry.get("causes/heads")
ACCURACY, LOSS = "change of score", "change of loss"
HOWS = ("uniform", "zero", "mean")


def found(encoder: Encoder, corpus: Corpus, **options: Any) -> Any:
    return run(HEADS, Subject(corpus, encoder, policy=Policy()), {"items": 0} | options).data


@cache
def planted(ranked: bool, how: str) -> HeadGrid:
    grid = found(*(planted_heads.ranked_heads() if ranked else planted_heads.one_head()), how=how)
    assert isinstance(grid, HeadGrid)
    return grid


def only(*heads: Head) -> np.ndarray[Any, np.dtype[np.bool_]]:
    mask = np.zeros((planted_heads.LAYERS, planted_heads.HEADS), np.bool_)
    for head in heads:
        mask[head] = True
    return mask


@pytest.mark.parametrize("how", HOWS)
def test_one_head_is_needed_and_no_other(how: str) -> None:
    grid = planted(False, how)
    np.testing.assert_allclose(grid.measures[ACCURACY].value, np.where(only(PLANTED), -0.5, 0.0))
    loss = grid.measures[LOSS]
    assert loss.value[PLANTED] > 0.5 and np.abs(loss.value[~only(PLANTED)]).max() < 1e-5
    np.testing.assert_array_equal(grid.measures["helps"].value, only(PLANTED))
    np.testing.assert_array_equal(grid.measures["hurts"].value, np.zeros((3, 4)))
    np.testing.assert_array_equal(grid.measures["p of the loss"].value < 0.05, only(PLANTED))
    np.testing.assert_array_equal(grid.measures["p of the score"].value < 0.05, only(PLANTED))


@pytest.mark.parametrize("how", ["zero", "uniform"])
def test_a_head_that_is_multiplied_by_zero_does_nothing_at_all(how: str) -> None:
    for estimates in (planted(False, how).measures[name] for name in (ACCURACY, LOSS)):
        assert estimates.value[DEAD] == estimates.low[DEAD] == estimates.high[DEAD] == 0.0


@pytest.mark.parametrize("how", HOWS)
def test_each_head_costs_its_share(how: str) -> None:
    change = planted(True, how).measures[ACCURACY]
    expected = np.zeros((3, 4))
    for head, share in zip(RANKED, SHARES, strict=True):
        expected[head] = -share / 30
    np.testing.assert_allclose(change.value, expected, atol=1e-9)
    loss = planted(True, how).measures[LOSS].value
    assert [Head(*divmod(int(place), 4)) for place in np.argsort(-loss.ravel())[:4]] == list(RANKED)


def test_beside_a_head_stands_the_mean_of_its_layer() -> None:
    grid = planted(True, "zero")
    for name in (ACCURACY, LOSS):
        beside = grid.baselines["any head of the layer"][name]
        np.testing.assert_allclose(beside.value, np.repeat(grid.measures[name].value.mean(1, keepdims=True), 4, 1))
        assert (beside.low < beside.high).all()
    assert grid.baselines["always the commonest answer"][ACCURACY].value[0, 0] == -0.5


def test_intervals_are_paired() -> None:
    """Half of the items are lost for sure: the error is that of one share, not of a difference of two."""
    estimate = planted(False, "zero").measures[ACCURACY][PLANTED]
    assert estimate.n == 64
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 64), rel=0.15)
    still = planted(False, "zero").measures[ACCURACY][Head(2, 3)]
    assert still.low == still.high == 0.0


def test_a_head_that_lies_hurts() -> None:
    """Gold answers turned round: what brought the answer is better taken away."""
    encoder, corpus = planted_heads.one_head()
    turned = {"good": "bad", "bad": "good"}
    lied = replace(corpus, items=tuple(replace(item, label=turned[str(item.label)]) for item in corpus))
    grid = found(encoder, lied, how="zero")
    np.testing.assert_array_equal(grid.measures["hurts"].value, only(PLANTED))
    assert grid.measures[ACCURACY].value[PLANTED] == 0.5


def test_by_layer() -> None:
    curve = found(*planted_heads.ranked_heads(), by="layer", how="zero")
    assert isinstance(curve, LayerCurve) and curve.first == 1
    np.testing.assert_allclose(curve.measures[ACCURACY].value, [-4 / 30, -2 / 30, -9 / 30], atol=1e-9)


def test_all_but_one_keeps_the_head_that_matters() -> None:
    curve = found(*planted_heads.ranked_heads(), by="layer_except_one", how="zero")
    assert isinstance(curve, LayerCurve)
    np.testing.assert_array_equal(curve.measures["head kept"].value, [4, 3, 2])
    assert curve.measures[ACCURACY].value[:2].tolist() == [0.0, 0.0]  # one planted head, and it was kept
    assert curve.measures[ACCURACY].value[2] < 0.0  # two, of which one was kept
    anyone = curve.baselines["any head kept"][LOSS].value
    assert (anyone > curve.measures[LOSS].value + 0.01).all()
    assert curve.measures[LOSS].n.tolist() == [60, 60, 60]  # the half that did not choose
    assert "1.000 before, 60 items" in curve.units[ACCURACY]


def test_sets_of_heads() -> None:
    table = found(*planted_heads.ranked_heads(), sets="3-2, 1-4; 1-1,1-2", how="zero")
    assert isinstance(table, Table) and table.rows_named == ("3-2, 1-4", "1-1,1-2")
    np.testing.assert_allclose(table.measures[ACCURACY].value, [-12 / 30, 0.0], atol=1e-9)
    random = table.baselines["random heads of the same layers"][ACCURACY]
    assert random.n.tolist() == [20, 20]
    assert -12 / 30 < random.value[0] < 0 and random.low[0] >= -12 / 30
    encoder, corpus = planted_heads.ranked_heads()
    scale = torch.ones(3, 4)
    scale[2, 1] = scale[0, 3] = 0
    marks = examine(encoder, corpus).marks(encoder.gated(Gates(scale=scale)).run)
    before = examine(encoder, corpus).marks(encoder.run)
    np.testing.assert_allclose(table.measures[LOSS].value[0], (marks.losses - before.losses).mean(), atol=1e-6)


@pytest.mark.parametrize("sets", ["4-1", "1-5", "0-1", "first", "1-1;", "1-1,,2-2"])
def test_heads_that_are_not_there_are_refused(sets: str) -> None:
    with pytest.raises(Refusal, match="from 1-1 to 3-4"):
        found(*planted_heads.one_head(), sets=sets)


def test_chance_on_noise() -> None:
    """Labels that have nothing to do with the texts, and a model that learnt nothing: no head helps or hurts."""
    encoder, corpus = load("tiny"), planted_heads.one_head()[1]
    grid = found(encoder, corpus, task="mlm")
    assert grid.measures["helps"].value.sum() + grid.measures["hurts"].value.sum() <= 1
    assert np.abs(grid.measures[LOSS].value).max() < 0.2


def test_the_unit_tells_what_the_model_reached_and_what_was_left_out() -> None:
    assert "1.000 before, 64 items" in planted(False, "zero").units[ACCURACY]


def test_one_item_has_no_interval_and_no_p() -> None:
    encoder, corpus = planted_heads.one_head()
    grid = found(encoder, replace(corpus, items=corpus.items[:1]))
    assert np.isfinite(grid.measures[LOSS].value).all() and np.isnan(grid.measures[LOSS].low).all()
    assert np.isnan(grid.measures["p of the loss"].value).all() and not grid.measures["helps"].n.any()
    with pytest.raises(Refusal, match="items to choose by"):
        found(encoder, replace(corpus, items=corpus.items[:1]), by="layer_except_one")
