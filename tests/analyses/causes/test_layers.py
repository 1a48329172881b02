"""A layer is worth the heads planted in it; order matters only where one layer reads what another wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import planted_heads
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.encoder.encoder import Encoder
from bertology.recording.recorder import Policy
from bertology.results.shapes import LayerCurve

LAYERS = registry.get("causes/layers")


def found(encoder: Encoder, corpus: Any, **options: Any) -> LayerCurve:
    curve = run(LAYERS, Subject(corpus, encoder, policy=Policy()), {"items": 0} | options).data
    assert isinstance(curve, LayerCurve)
    return curve


@pytest.fixture(scope="module")
def ranked() -> LayerCurve:
    return found(*planted_heads.ranked_heads())


def accuracy(curve: LayerCurve, way: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return curve.measures[f"{way}: change of score"].value


def test_a_layer_is_worth_its_heads(ranked: LayerCurve) -> None:
    np.testing.assert_allclose(accuracy(ranked, "skip"), [-4 / 30, -2 / 30, -9 / 30], atol=1e-9)
    np.testing.assert_allclose(accuracy(ranked, "drop"), [-15 / 30, -11 / 30, -9 / 30], atol=1e-9)


def test_planted_heads_do_not_read_each_other(ranked: LayerCurve) -> None:
    """Their layers can be exchanged, and run twice: the answer is only surer."""
    np.testing.assert_allclose(accuracy(ranked, "swap")[:2], 0.0)
    assert np.abs(ranked.measures["swap: change of loss"].value[:2]).max() < 1e-5
    np.testing.assert_allclose(accuracy(ranked, "repeat"), 0.0)
    assert (ranked.measures["repeat: change of loss"].value < 0).all()


def test_the_last_layer_has_none_to_be_exchanged_with(ranked: LayerCurve) -> None:
    for name in ("swap: change of score", "swap: change of loss"):
        assert np.isnan(ranked.measures[name].value[-1]) and ranked.measures[name].n.tolist() == [120, 120, 0]
    assert ranked.first == 1


def test_one_way_alone(ranked: LayerCurve) -> None:
    alone = found(*planted_heads.ranked_heads(), way="skip")
    assert set(alone.measures) == {"skip: change of score", "skip: change of loss"}
    for name, estimates in alone.measures.items():
        assert estimates == ranked.measures[name]
    assert set(alone.baselines) == {"no change", "always the commonest answer"}


def test_order_matters_where_one_layer_reads_what_another_wrote() -> None:
    """The cue is brought to [CLS] through a place that only layer 2 writes and only layer 3 reads."""
    encoder, corpus = planted_heads.one_head()
    heads = encoder.model.bert.encoder.layer
    answer, relay = planted_heads.ANSWER, planted_heads.IS_CUE[3]
    own = planted_heads.PLANTED[1] * planted_heads.SIZE
    # What head 2-3 writes is kept where nothing reads it, and a head of layer 3 that looks only at [CLS] brings it on.
    with torch.no_grad():
        lower, upper = heads[1].attention, heads[2].attention
        for place in (0, planted_heads.WIDTH // 2):
            lower.output.dense.weight[relay + place, own] = lower.output.dense.weight[answer + place, own]
            lower.output.dense.weight[answer + place, own] = 0
        for part in (upper.self.query, upper.self.key, upper.self.value):
            part.weight[:8] = 0
            part.bias[:8] = 0
        upper.output.dense.weight[:, :8] = 0
        upper.self.value.weight[0, relay] = 1
        for place, sign in ((0, 1.0), (planted_heads.WIDTH // 2, -1.0)):
            upper.output.dense.weight[answer + place, 0] = sign
    curve = found(encoder, corpus)
    np.testing.assert_allclose(accuracy(curve, "skip"), [0.0, -0.5, -0.5])
    np.testing.assert_allclose(accuracy(curve, "swap")[:2], [0.0, -0.5])
    np.testing.assert_allclose(accuracy(curve, "repeat"), 0.0)
