"""Where heads are planted in an order, gradients foretell their removal wholly; correlations are scipy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

import planted_heads
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import read_text
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.measures.causes.head_orders import agreement
from bertology.results.shapes import Table

AGAINST = registry.get("causes/importance_against_ablation")


@pytest.fixture(scope="module")
def found() -> Table:
    encoder, corpus = planted_heads.ranked_heads()
    table = run(AGAINST, Subject(corpus, encoder), {"items": 0}).data
    assert isinstance(table, Table)
    return table


def test_gradients_foretell_the_planted_order(found: Table) -> None:
    """Eight of twelve heads do nothing, and share their ranks but for rounding; confidence knows nothing of it."""
    values = dict(zip(found.rows_named, found.measures["change"].value.tolist(), strict=True))
    assert values["gradient"] > 0.7 and values["ablation"] > 0.7
    assert values["gradient"] >= values["gradient, scaled by layer"]
    assert values["confidence"] < 0.5
    score = dict(zip(found.rows_named, found.measures["score"].value.tolist(), strict=True))
    assert score["gradient"] > 0.75


def test_every_correlation_has_chance_beside_it(found: Table) -> None:
    for name, estimates in found.measures.items():
        chance = found.baselines["shuffled"][name]
        assert (chance.value == 0).all() and (chance.low < -0.3).all() and (chance.high > 0.3).all()
        assert (estimates.low <= estimates.value).all() and (estimates.high >= estimates.value).all()


def test_correlations_are_those_of_scipy() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.normal(size=(2, 1, 3, 5))
    whole = agreement(first, second, within=False)
    assert whole[0] == pytest.approx(spearmanr(first.ravel(), second.ravel())[0], abs=1e-6)
    by_layer: list[Any] = [spearmanr(a, b)[0] for a, b in zip(first[0], second[0], strict=True)]
    assert agreement(first, second, within=True)[0] == pytest.approx(sum(by_layer) / 3, abs=1e-6)


def test_one_text_cannot_be_divided() -> None:
    with pytest.raises(Refusal, match="divided"):
        run(AGAINST, Subject(read_text("One text alone."), load("tiny")))
