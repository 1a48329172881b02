"""Heads planted in an order of importance go in that order, and what is left scores as it must; chance on noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import planted_heads
from bertology.analyses import registry
from bertology.analyses.causes.pruning import paired
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.finetuning.metrics import Counts
from bertology.measures.causes import gate_learning
from bertology.measures.causes.examination import Marks
from bertology.measures.causes.head_orders import examined, gated_to
from bertology.measures.causes.pruning_curves import estimated, removed_at_random, removed_by, steps_of
from bertology.measures.work import FOLDER
from bertology.results.shapes import Curve
from planted_heads import HEADS, LAYERS, RANKED, accuracy_without

PRUNING = registry.get("causes/pruning")
ALL = LAYERS * HEADS
ONE_BY_ONE = 1 / ALL


def curve(subject: Subject, **options: Any) -> Curve:
    found = run(PRUNING, subject, options).data
    assert isinstance(found, Curve)
    return found


@pytest.fixture(scope="module")
def planted() -> Subject:
    encoder, corpus = planted_heads.ranked_heads()
    return Subject(corpus, encoder)


def known(removed: int) -> float:
    """The accuracy when idle heads went first and planted ones from the least important."""
    lost = max(0, removed - (ALL - len(RANKED)))
    return accuracy_without(RANKED[len(RANKED) - lost :])


@pytest.mark.parametrize("options", [{"order": "ablation", "again": True}, {"order": "gradient", "scale": "none"}])
def test_the_planted_order_is_found(planted: Subject, options: dict[str, Any]) -> None:
    found = curve(planted, step=ONE_BY_ONE, items=0, **options)
    assert found.points.tolist() == list(range(ALL, -1, -1))
    scores = found.measures[options["order"]]
    expected = [known(ALL - int(left)) for left in found.points]
    # A half of the items has not just the share of each kind that all of them have.
    np.testing.assert_allclose(scores.value, expected, atol=0.05)
    assert (scores.value[:9] == 1).all() and scores.value[-1] < 0.6
    assert (scores.low <= scores.value).all() and (scores.high >= scores.value).all()


def test_every_order_ends_alike_and_a_true_one_is_above_chance(planted: Subject) -> None:
    found = curve(planted, step=0.25, items=0, scale="none", seeds=5)
    orders = ("gradient", "confidence", "relevance", "ablation", "random")
    assert {name for name in found.measures if name.isalpha()} == set(orders)
    for name in orders:
        scores = found.measures[name]
        assert scores.value[0] == found.baselines["whole model"][name].value[0] == 1
        assert scores.value[-1] == pytest.approx(0.5, abs=0.1)
    middle = {name: float(found.measures[name].value[2]) for name in orders}
    assert middle["gradient"] == middle["ablation"] == 1 > middle["random"]
    assert found.baselines["majority"]["random"].value[0] < 0.65


def test_scores_of_the_same_items_are_compared_by_pairs(planted: Subject) -> None:
    found = curve(planted, step=0.25, items=0, order="gradient,random", scale="none", seeds=5)
    assert set(found.measures) == {"gradient", "random", "gradient, change", "random, change", "gradient less random"}
    for name in ("gradient", "random"):
        change, scores = found.measures[f"{name}, change"], found.measures[name]
        np.testing.assert_allclose(change.value, scores.value - scores.value[0], atol=1e-12)
        assert change.low[0] == change.high[0] == 0
    less = found.measures["gradient less random"]
    np.testing.assert_allclose(less.value, found.measures["gradient"].value - found.measures["random"].value)
    assert less.low[2] > 0 and less.low[-1] == less.high[-1] == 0
    assert (found.baselines["no change"]["gradient less random"].value == 0).all()


def marked(right: NDArray[Any]) -> Marks:
    return Marks(np.where(right > 0, 0.1, 2.0), Counts(right, np.ones_like(right)))


def test_an_interval_over_pairs_is_that_of_the_differences_and_does_not_widen_with_hard_items() -> None:
    """Of 200 items a half is hard for both; 12 that were right are wrong afterwards."""
    before = np.arange(200) % 2.0
    after = np.where(np.arange(200) < 24, 0.0, before)
    [found] = paired({"some": [[marked(after)]]}, marked(before), loss=False, seed=0).values()
    assert found.value[0] == pytest.approx(-12 / 200)
    drawn = np.random.default_rng(5).choice(after - before, (20000, 200)).mean(1)
    np.testing.assert_allclose([found.low[0], found.high[0]], np.percentile(drawn, [2.5, 97.5]), atol=0.006)
    own = estimated([[marked(before)], [marked(after)]], loss=False, seed=0)
    assert own.high[0] - own.low[0] > 1.5 * (found.high[0] - found.low[0])
    [loss] = paired({"some": [[marked(after)]]}, marked(before), loss=True, seed=0).values()
    assert loss.value[0] == pytest.approx(12 * 1.9 / 200) and loss.low[0] > 0


@pytest.mark.parametrize(("items", "reach"), [(5, 0.6), (150, 0.02), (2, 1.0)])
def test_where_no_answer_turned_it_is_not_sure_that_none_ever_does(items: int, reach: float) -> None:
    right = marked(np.ones(items))
    moved = Marks(right.losses + 1e-3, right.counts)
    [found] = paired({"some": [[moved, right]]}, right, loss=False, seed=0).values()
    assert found.value[0] == 0 and (found.low[0], found.high[0]) == (-reach, reach)
    assert found.low[1] == found.high[1] == 0  # nothing was changed here
    # Where so many turn among all items there are, a sample like this shows none of them in one case of twenty.
    assert (1 - min(1, 3 / items)) ** items <= 0.05


def test_the_order_that_was_drawn_counts_among_what_is_resampled() -> None:
    """Two random orders, one that costs nothing and one that costs all: one pair of runs cannot tell."""
    right, wrong = marked(np.ones(100)), marked(np.zeros(100))
    found = paired({"gradient": [[right]], "random": [[right], [wrong]]}, right, loss=False, seed=0)
    less = found["gradient less random"]
    assert less.value[0] == 0.5 and less.low[0] == 0 and less.high[0] == 1
    assert found["gradient, change"].low[0] == found["gradient, change"].high[0] == 0


def test_the_loss_rises_where_the_score_falls(planted: Subject) -> None:
    found = curve(planted, step=0.25, order="ablation", metric="loss")
    assert found.measures["ablation"].value[-1] > found.measures["ablation"].value[0]
    assert "majority" not in found.baselines


def test_heads_that_do_not_matter_go_first_and_measuring_again_sees_what_is_left() -> None:
    first = np.array([[3.0, 1.0], [2.0, np.nan]])
    second = np.array([[0.5, 9.0], [2.0, 9.0]])

    def importance(gone: np.ndarray[Any, np.dtype[np.bool_]]) -> Any:
        return second if gone.sum() >= 2 else first

    once = removed_by(importance, (2, 2), [0, 1, 2, 3, 4], again=False)
    assert [np.flatnonzero(gone).tolist() for gone in once] == [[], [3], [1, 3], [1, 2, 3], [0, 1, 2, 3]]
    again = removed_by(importance, (2, 2), [0, 1, 2, 3, 4], again=True)
    assert np.flatnonzero(again[3]).tolist() == [0, 1, 3]


def test_points_and_random_orders() -> None:
    assert steps_of(64, 0.1) == [0, 6, 13, 19, 26, 32, 38, 45, 51, 58, 64]
    assert steps_of(8, 0.0) == list(range(9))
    first, second = (removed_at_random((4, 4), [0, 8, 16], seed) for seed in (0, 1))
    assert [int(gone.sum()) for gone in first] == [0, 8, 16]
    assert (first[1] != second[1]).any()


def test_learning_on_lowers_the_loss_of_what_is_left() -> None:
    encoder, asked = examined(load("tiny"), corpus_named("english", limit=12), task="mlm", layer="", items=12, seed=0)
    kept = np.array([[True, False] * 2, [False, True] * 2])
    before = asked.marks(gated_to(encoder, kept).run).losses.mean()
    learnt = gate_learning.retrained(encoder, asked, kept, steps=24, size=4, seed=0, tell=lambda done, total: None)
    assert asked.marks(learnt.run).losses.mean() < before - 0.3
    assert asked.marks(gated_to(encoder, kept).run).losses.mean() == before


def test_learning_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, corpus = planted_heads.one_head()
    options: dict[str, Any] = {"order": "random", "seeds": 1, "step": 1.0, "retrain": 4, "metric": "loss"}
    before = encoder.fingerprint
    plain, learnt = (curve(Subject(corpus, encoder), **(options | {"retrain": steps})) for steps in (0, 4))
    assert encoder.fingerprint == before
    assert learnt.measures["random"].value[0] != plain.measures["random"].value[0]
    assert learnt.baselines["whole model"]["random"].value[0] == learnt.measures["random"].value[0]

    retrained, times = gate_learning.retrained, list[int]()

    def stopped(*given: Any, **named: Any) -> Any:
        times.append(1)
        if len(times) == 2:
            raise KeyboardInterrupt
        return retrained(*given, **named)

    monkeypatch.setattr(gate_learning, "retrained", stopped)
    with pytest.raises(KeyboardInterrupt):
        curve(Subject(corpus, encoder, store=tmp_path), **options)
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 1
    resumed = curve(Subject(corpus, encoder, store=tmp_path), **options)
    assert resumed.measures["random"] == learnt.measures["random"]
    assert len(times) == 3


def test_unknown_orders_and_models_without_heads_are_refused(planted: Subject) -> None:
    with pytest.raises(Refusal, match="order of heads"):
        curve(planted, order="gradients")
    with pytest.raises(Refusal, match="no heads"):
        curve(Subject(corpus_named("english", limit=10), load("random-vectors:8")))
