"""A layer matters as much as its planted heads; order matters if one layer reads what another wrote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import planted_heads
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.results.headline import headline
from bertology.results.shapes import LayerCurve

LAYER_ABLATION = registry.get("interventions/layer_ablation")


def run(encoder: Encoder, corpus: Corpus, **options: Any) -> LayerCurve:
    curve = run_analysis(LAYER_ABLATION, RunInputs(corpus, encoder), {"sample_size": 0} | options).data
    assert isinstance(curve, LayerCurve)
    return curve


@pytest.fixture(scope="module")
def ranked() -> LayerCurve:
    return run(*planted_heads.ranked_heads())


def score_change(curve: LayerCurve, operation: str) -> FloatArray:
    return curve.measures[f"change in score ({operation})"].value


def test_a_layer_matters_as_much_as_its_heads(ranked: LayerCurve) -> None:
    np.testing.assert_allclose(score_change(ranked, "skip"), [-4 / 30, -2 / 30, -9 / 30], atol=1e-9)
    np.testing.assert_allclose(score_change(ranked, "drop"), [-15 / 30, -11 / 30, -9 / 30], atol=1e-9)


def test_layers_with_independent_heads_can_be_swapped_and_repeated(ranked: LayerCurve) -> None:
    np.testing.assert_allclose(score_change(ranked, "swap")[:2], 0.0)
    assert np.abs(ranked.measures["change in loss (swap)"].value[:2]).max() < 1e-5
    np.testing.assert_allclose(score_change(ranked, "repeat"), 0.0)
    assert (ranked.measures["change in loss (repeat)"].value < 0).all()


def test_the_last_layer_cannot_be_swapped(ranked: LayerCurve) -> None:
    for name in ("change in score (swap)", "change in loss (swap)"):
        assert np.isnan(ranked.measures[name].value[-1]) and ranked.measures[name].n.tolist() == [120, 120, 0]
    assert ranked.first_layer == 1


def test_a_single_operation_can_be_run(ranked: LayerCurve) -> None:
    skip = run(*planted_heads.ranked_heads(), operation="skip")
    changes = {"change in score (skip)", "change in loss (skip)"}
    p_values = {"p of change in score (Holm) (skip)", "p of change in loss (Holm) (skip)"}
    assert set(skip.measures) == changes | p_values
    for name in changes:
        assert skip.measures[name] == ranked.measures[name]
    for name in p_values:  # corrected for 3 comparisons instead of 11
        assert (skip.measures[name].value <= ranked.measures[name].value).all()
    assert set(skip.baselines) == {"zero", "majority class", "significance level"}


def test_the_headline_names_operation_and_layer(ranked: LayerCurve) -> None:
    score, highest, lowest, outstanding = headline(ranked)
    assert score.startswith("Accuracy of the intact model: 1 ") and "n = 120" in score
    assert "drop layer 1 (+" in highest and "repeat layer" in lowest
    assert "11 comparisons" in outstanding and "drop layer 1" in outstanding


def test_order_matters_if_one_layer_reads_what_another_wrote() -> None:
    """The cue reaches [CLS] through a dimension that only layer 2 writes and only layer 3 reads."""
    encoder, corpus = planted_heads.single_head()
    layers = encoder.model.bert.encoder.layer
    answer, relay = planted_heads.ANSWER, planted_heads.IS_CUE[3]
    head = planted_heads.PLANTED[1] * planted_heads.SIZE
    # The output of head 2-3 goes to a dimension that nothing reads, and a head of layer 3 that attends only to [CLS]
    # copies it to the answer.
    with torch.no_grad():
        lower, upper = layers[1].attention, layers[2].attention
        for offset in (0, planted_heads.WIDTH // 2):
            lower.output.dense.weight[relay + offset, head] = lower.output.dense.weight[answer + offset, head]
            lower.output.dense.weight[answer + offset, head] = 0
        for projection in (upper.self.query, upper.self.key, upper.self.value):
            projection.weight[:8] = 0
            projection.bias[:8] = 0
        upper.output.dense.weight[:, :8] = 0
        upper.self.value.weight[0, relay] = 1
        for offset, sign in ((0, 1.0), (planted_heads.WIDTH // 2, -1.0)):
            upper.output.dense.weight[answer + offset, 0] = sign
    curve = run(encoder, corpus)
    np.testing.assert_allclose(score_change(curve, "skip"), [0.0, -0.5, -0.5])
    np.testing.assert_allclose(score_change(curve, "swap")[:2], [0.0, -0.5])
    np.testing.assert_allclose(score_change(curve, "repeat"), 0.0)
