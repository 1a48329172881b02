"""The runs of a model without positions never part when words move; those of one with positions do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attackable import bag_of_words, order_matters, reader_of_order
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import Corpus, Input, Item
from bertology.corpus.sentence import sentence
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.causes.divergence import divergence, shared
from bertology.results.shapes import LayerCurve, Trajectory
from finetuning.planted_tasks import planted

REPLAY = registry.get("causes/replay")
STATES, FIRST, ATTENTION, LOSS, LOST = (
    "distance of states", "distance of the first piece", "change of attention", "rise of loss", "answers lost",
)  # fmt: skip


def replayed(encoder: Encoder, corpus: Corpus, **options: Any) -> Any:
    return run(REPLAY, Subject(corpus, encoder), {"among": 30, "items": 8} | options).data


def item(text: str) -> Item:
    return Item((sentence(text.split()),))


def test_without_positions_the_runs_never_part() -> None:
    curve = replayed(bag_of_words(), planted("sentence", 30, seed=1))
    assert isinstance(curve, LayerCurve)
    for name in (STATES, FIRST, LOSS, LOST):
        np.testing.assert_allclose(curve.measures[name].value, 0.0, atol=2e-5, err_msg=name)
    np.testing.assert_allclose(curve.measures[ATTENTION].value[1:], 0.0, atol=2e-5)
    assert np.isnan(curve.measures[ATTENTION].value[0]) and curve.measures[ATTENTION].n[0] == 0
    assert (curve.baselines["random edit"][FIRST].value[1:] > 1e-3).all()


def test_with_positions_they_part_and_the_answer_is_lost_at_the_end() -> None:
    curve = replayed(reader_of_order(), order_matters(30, seed=1))
    assert (curve.measures[STATES].value > 0.01).all()
    assert curve.measures[FIRST].value[0] == pytest.approx(0.0, abs=1e-9)
    assert (np.diff(curve.measures[FIRST].value) > 0).all()
    assert curve.measures[LOST].value[-1] == 1.0  # the pairs were chosen for it
    assert curve.measures[LOSS].value[-1] > 1.0 > abs(curve.measures[LOSS].value[0])
    assert "turned ones" in curve.units[STATES]
    every = replayed(reader_of_order(), order_matters(30, seed=1), which="changed")
    assert every.measures[LOST].value[-1] < 1.0 and "changed ones" in every.units[STATES]


def test_the_picture_has_both_forms_in_one_plane() -> None:
    picture = replayed(reader_of_order(), order_matters(30, seed=1), show="picture", pair=1)
    assert isinstance(picture, Trajectory)
    assert picture.points.shape == (3, 14, 2) and picture.groups == ("original",) * 7 + ("attacked",) * 7
    assert sorted(picture.labels[:7]) == sorted(picture.labels[7:])
    np.testing.assert_allclose(picture.points.mean((0, 1)), 0.0, atol=1e-9)
    with pytest.raises(Refusal, match="no pair"):
        replayed(reader_of_order(), order_matters(30, seed=1), show="picture", pair=99)


def test_pieces_are_matched_in_place_first_and_moved_ones_after() -> None:
    encoder = bag_of_words()

    def pieces(text: str) -> Any:
        return encoder.tokenise([Input((sentence(text.split()),))])[0]

    one, other = pieces("the cat was the dog"), pieces("the dog was the cat")
    assert shared(one, other) == [(0, 0), (1, 1), (2, 5), (3, 3), (4, 4), (5, 2), (6, 6)]
    assert shared(pieces("the cat"), pieces("a dog")) == [(0, 0), (3, 3)]


def test_equal_forms_are_not_compared_and_attention_is_total_variation() -> None:
    encoder = reader_of_order()
    assert divergence(encoder, item("the cat"), item("the cat")) is None
    found = divergence(encoder, item("the cat saw"), item("the dog saw"))
    assert found is not None and ((found.attention[1:] >= 0) & (found.attention[1:] <= 1)).all()
    assert found.states[0] == pytest.approx(0.0, abs=1e-9)  # the shared words are the same before any layer
