"""What arithmetic alone makes is no change of the loss; what is larger is, and is told as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bertology.corpus.builtin import corpus_named
from bertology.encoder.attend import Gates
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.finetuning.metrics import Counts
from bertology.measures.causes.examination import Marks, examine
from bertology.measures.causes.paired_change import NEGLIGIBLE, PairedChange, paired_change

ITEMS = 40


def changed_by(*differences: NDArray[Any] | float) -> PairedChange:
    """What is found where each item's loss changes so."""
    before = np.linspace(0.5, 9.0, ITEMS)
    counts = Counts(np.ones(ITEMS), np.ones(ITEMS))
    return paired_change(Marks(before, counts), [Marks(before + some, counts) for some in differences], seed=0)


@pytest.mark.parametrize(
    ("each", "p", "helps", "hurts"),
    [
        (0.0, 1.0, 0.0, 0.0),
        (0.9 * NEGLIGIBLE, 1.0, 0.0, 0.0),
        (-0.9 * NEGLIGIBLE, 1.0, 0.0, 0.0),
        (1.1 * NEGLIGIBLE, 0.0, 1.0, 0.0),
        (-1.1 * NEGLIGIBLE, 0.0, 0.0, 1.0),
    ],
)
def test_a_change_of_every_item_counts_from_what_arithmetic_makes(
    each: float, p: float, helps: float, hurts: float
) -> None:
    found = changed_by(each)
    assert found.loss_p.value[0] == pytest.approx(p, abs=1e-9)
    assert (found.helps.value[0], found.hurts.value[0]) == (helps, hurts)
    # The change itself is told as it was found, however small.
    np.testing.assert_allclose(found.loss.value[0], each, atol=1e-12)


def test_a_bias_of_rounding_would_be_sure_without_the_edge() -> None:
    """Every item a little above nothing: Student's t test alone is sure of it, and it means nothing."""
    rounding = np.random.default_rng(0).normal(0.2, 0.1, ITEMS) * NEGLIGIBLE
    assert changed_by(rounding).loss_p.value[0] == 1
    assert changed_by(1000 * rounding).loss_p.value[0] < 1e-6


def test_few_items_above_the_edge_are_no_sure_change() -> None:
    """One item of many moves, as arithmetic does where a model is very sure of a wrong answer."""
    one = np.where(np.arange(ITEMS) == 7, 5 * NEGLIGIBLE, 0.0)
    assert changed_by(one).loss_p.value[0] > 0.3


def test_gates_that_change_nothing_are_no_change() -> None:
    """Heads multiplied by 1 are computed in another way, and nothing more is said of them."""
    encoder = load("tiny")
    assert isinstance(encoder, HuggingFaceEncoder)
    asked = examine(encoder, corpus_named("english", limit=20), seed=0)
    gated = encoder.gated(Gates(scale=torch.ones(encoder.layers, encoder.heads)))
    found = paired_change(asked.marks(encoder.run), [asked.marks(gated.run)], seed=0)
    assert found.loss_p.value[0] == 1 and found.score_p.value[0] == 1
    assert found.helps.value[0] == found.hurts.value[0] == 0
