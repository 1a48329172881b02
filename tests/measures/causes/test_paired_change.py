"""What arithmetic alone makes is no change of the loss; what is larger is, and is told as it is."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import bertology.measures.causes.examination as examination_module
from bertology.corpus.builtin import corpus_named
from bertology.encoder.attend import Gates
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.finetuning.metrics import Counts
from bertology.measures.causes.examination import Examination, Marks, examine
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


@cache
def asked(name: str, corpus: str) -> tuple[HuggingFaceEncoder, Examination, Marks]:
    """A model, what it is asked, and how it answers."""
    encoder = load(name)
    assert isinstance(encoder, HuggingFaceEncoder)
    examination = examine(encoder, corpus_named(corpus, limit=ITEMS), seed=0)
    return encoder, examination, examination.marks(encoder.run)


def scaled(name: str, corpus: str, scale: Tensor) -> Marks:
    """How the model answers where what each head gives is multiplied so."""
    encoder, examination, _ = asked(name, corpus)
    return examination.marks(encoder.gated(Gates(scale=scale)).run)


MODELS = [("tiny", "english"), ("mini", "english"), ("mini-pairs", "diagnostic")]


@pytest.mark.parametrize(("name", "corpus"), MODELS)
def test_gates_that_change_nothing_are_no_change(name: str, corpus: str) -> None:
    """Heads multiplied by 1 are computed in another way, and nothing more is said of them."""
    encoder, _, whole = asked(name, corpus)
    same = scaled(name, corpus, torch.ones(encoder.layers, encoder.heads))
    assert 0 < np.abs(same.losses - whole.losses).max() < NEGLIGIBLE
    found = paired_change(whole, [same], seed=0)
    assert found.loss_p.value[0] == 1 and found.score_p.value[0] == 1
    assert found.helps.value[0] == found.hurts.value[0] == 0


@pytest.mark.parametrize(("name", "corpus"), MODELS)
def test_one_item_at_a_time_is_no_change(name: str, corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the others of its sheet an item is padded and multiplied in other blocks."""
    encoder, _, whole = asked(name, corpus)
    monkeypatch.setattr(examination_module, "AT_ONCE", 1)
    alone = examine(encoder, corpus_named(corpus, limit=ITEMS), seed=0).marks(encoder.run)
    assert np.abs(alone.losses - whole.losses).max() < NEGLIGIBLE


def test_a_head_a_little_weaker_is_a_change() -> None:
    """A hundredth less of one head moves most items by more than arithmetic does: the edge hides no head."""
    encoder, _, whole = asked("mini-pairs", "diagnostic")
    for layer in (0, encoder.layers - 1):
        scale = torch.ones(encoder.layers, encoder.heads)
        scale[layer, 0] = 0.99
        moved = np.abs(scaled("mini-pairs", "diagnostic", scale).losses - whole.losses)
        assert np.mean(moved > NEGLIGIBLE) > 0.5
