"""Gates keep exactly the planted head when heads have a price, all when they have none, and nothing when it is high."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import planted_heads
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.errors import Refusal
from bertology.measures.causes import gate_learning
from bertology.measures.causes.gate_learning import Lesson, drawn_alike, learn_gates
from bertology.measures.causes.head_orders import examined
from bertology.measures.work import FOLDER
from bertology.results.shapes import Curve
from planted_heads import HEADS, LAYERS, PLANTED, RANKED

GATES = registry.get("causes/gates")


def quiet(done: int, total: int) -> None:
    """Tell nobody."""


def curve(subject: Subject, **options: Any) -> Curve:
    found = run(GATES, subject, options).data
    assert isinstance(found, Curve)
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_exactly_the_planted_head_is_kept(seed: int) -> None:
    encoder, corpus = planted_heads.one_head()
    model, asked = examined(encoder, corpus, task="auto", layer="", items=0, seed=0)
    before = encoder.fingerprint
    learnt = learn_gates(model, asked, Lesson(0.03, 60, 8, 2.0, 0.2, False, seed), quiet)
    assert np.argwhere(learnt.kept).tolist() == [list(PLANTED)]
    assert asked.marks(learnt.encoder.run).counts.value == 1
    assert encoder.fingerprint == before


def test_the_heads_that_matter_most_are_kept_at_a_higher_price() -> None:
    encoder, corpus = planted_heads.ranked_heads()
    model, asked = examined(encoder, corpus, task="auto", layer="", items=0, seed=0)
    lessons = [Lesson(price, 80, 24, 2.0, 0.2, False, 0) for price in (0.01, 0.15)]
    cheap, dear = (learn_gates(model, asked, lesson, quiet) for lesson in lessons)
    assert {(int(layer), int(head)) for layer, head in np.argwhere(cheap.kept)} == set(RANKED)
    assert not (dear.kept & ~cheap.kept).any()
    assert dear.kept[RANKED[0]] and not dear.kept[RANKED[-1]]
    assert dear.locations[RANKED[0]] > dear.locations[RANKED[2]] > dear.locations[RANKED[3]]


def test_the_curve_of_prices(tmp_path: Path) -> None:
    encoder, corpus = planted_heads.one_head()
    subject = Subject(corpus, encoder, store=tmp_path)
    found = curve(subject, items=0, penalties="0.03,5", seeds=2, steps=50, typed_on="none")
    assert found.along == "price of a head" and found.points.tolist() == [0.03, 5]
    assert found.measures["score"].value[0] == 1
    assert found.measures["score"].value[1] == pytest.approx(0.5, abs=0.1)
    assert found.measures["heads kept"].value.tolist() == [1, 0]
    # One head of twelve drawn at random is hardly ever the planted one.
    assert found.baselines["as many random heads"]["score"].value[0] < 0.8
    assert found.baselines["whole model"]["score"].value[0] == 1
    assert found.baselines["whole model"]["heads kept"].value[0] == LAYERS * HEADS
    assert found.baselines["majority"]["score"].value[0] < 0.7


def test_functions_are_counted_beside_what_is_kept_of_all_heads() -> None:
    from bertology.corpus.builtin import corpus_named
    from bertology.encoder.load import load

    subject = Subject(corpus_named("english", limit=12), load("tiny"))
    found = curve(subject, penalties="0", steps=2, seeds=1)
    assert found.measures["heads kept"].value.tolist() == [8]
    for name in set(found.measures) - {"score", "heads kept"}:
        assert found.measures[name].value.tolist() == [1]
        assert found.baselines["share kept of all heads"][name].value.tolist() == [1]


def test_weights_may_learn_beside_the_gates() -> None:
    encoder, corpus = planted_heads.one_head()
    model, asked = examined(encoder, corpus, task="auto", layer="", items=0, seed=0)
    before = encoder.fingerprint
    learnt = learn_gates(model, asked, Lesson(0.03, 60, 8, 2.0, 0.2, True, 0), quiet)
    assert learnt.kept[PLANTED] and not learnt.kept.all()
    assert asked.marks(learnt.encoder.run).counts.value == 1
    weights = (one.model.classifier.weight for one in (encoder, learnt.encoder))
    assert not torch.equal(next(weights), next(weights))
    assert encoder.fingerprint == before


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, corpus = planted_heads.one_head()
    options: dict[str, Any] = {"items": 16, "penalties": "0.01,0.1", "seeds": 1, "steps": 4, "typed_on": "none"}
    whole = curve(Subject(corpus, encoder), **options)
    learn, times = gate_learning.learn_gates, list[int]()

    def stopped(*given: Any) -> Any:
        times.append(1)
        if len(times) == 2:
            raise KeyboardInterrupt
        return learn(*given)

    monkeypatch.setattr(gate_learning, "learn_gates", stopped)
    with pytest.raises(KeyboardInterrupt):
        curve(Subject(corpus, encoder, store=tmp_path), **options)
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 1
    again = curve(Subject(corpus, encoder, store=tmp_path), **options)
    assert again.measures["score"] == whole.measures["score"]
    assert len(times) == 3


def test_random_sets_are_as_large() -> None:
    kept = [np.array([[True, False], [False, False]]), np.ones((2, 2), np.bool_)]
    assert [int(heads.sum()) for heads in drawn_alike(kept, 2, 0)] == [1, 1, 4, 4]


@pytest.mark.parametrize("penalties", ["", "a", "-1", "nan"])
def test_prices_that_are_none_are_refused(penalties: str) -> None:
    encoder, corpus = planted_heads.one_head()
    with pytest.raises(Refusal, match="penalties"):
        curve(Subject(corpus, encoder), penalties=penalties)


def test_a_few_heads_may_all_be_kept_by_luck_and_many_may_not() -> None:
    from bertology.analyses.causes.gates import _by_luck  # pyright: ignore[reportPrivateUsage]

    kept = np.zeros((2, 1, 8, 8), np.bool_)
    kept[..., :6] = True
    few, many = np.zeros((2, 8, 8), np.bool_)
    few[0, :2] = True
    many[:4] = True
    assert (_by_luck(kept, few).value, _by_luck(kept, few).high) == (0.75, 1.0)
    drawn = np.random.default_rng(0).permuted(np.tile(kept[0, 0].ravel(), (4000, 1)), axis=1)[:, :32].mean(1)
    found = _by_luck(kept, many)
    np.testing.assert_allclose([found.low[0], found.high[0]], np.quantile(drawn, [0.025, 0.975]), atol=1 / 32)
