"""For heads planted in an order, gradients predict the effect of ablation; correlations agree with SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

import planted_heads
from bertology.analyses import registry
from bertology.analyses.evaluation.head_ranking import rank_agreement
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import corpus_from_texts
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.shapes import Table

IMPORTANCE_VS_ABLATION = registry.get("interventions/importance_vs_ablation")


@pytest.fixture(scope="module")
def table() -> Table:
    encoder, corpus = planted_heads.ranked_heads()
    result = run_analysis(IMPORTANCE_VS_ABLATION, RunInputs(corpus, encoder), {"sample_size": 0}).data
    assert isinstance(result, Table)
    return result


def test_gradients_predict_the_planted_order(table: Table) -> None:
    """Eight of twelve heads have no effect and tie except for rounding; confidence is unrelated."""
    columns = {
        name: dict(zip(table.row_names, estimates.value.tolist(), strict=True))
        for name, estimates in table.measures.items()
    }
    loss_change = columns["correlation with absolute loss change"]
    assert loss_change["gradient"] > 0.7 and loss_change["ablation"] > 0.7
    assert loss_change["gradient"] >= loss_change["gradient (normalised per layer)"]
    assert loss_change["confidence"] < 0.5
    assert columns["correlation with score drop"]["gradient"] > 0.75


def test_every_correlation_is_compared_with_chance(table: Table) -> None:
    for name, estimates in table.measures.items():
        chance = table.baselines["shuffled heads"][name]
        assert (chance.value == 0).all() and (chance.low < -0.3).all() and (chance.high > 0.3).all()
        assert (estimates.low <= estimates.value).all() and (estimates.high >= estimates.value).all()


def test_correlations_agree_with_scipy() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(2, 1, 3, 5))
    over_all_heads = rank_agreement(first, second, within_layers=False)
    assert over_all_heads[0] == pytest.approx(spearmanr(first.ravel(), second.ravel())[0], abs=1e-6)
    by_layer: list[Any] = [spearmanr(a, b)[0] for a, b in zip(first[0], second[0], strict=True)]
    assert rank_agreement(first, second, within_layers=True)[0] == pytest.approx(sum(by_layer) / 3, abs=1e-6)


def test_a_single_text_cannot_be_split() -> None:
    with pytest.raises(Refusal, match="cannot be split into halves"):
        run_analysis(IMPORTANCE_VS_ABLATION, RunInputs(corpus_from_texts("One text alone."), load("tiny")))
