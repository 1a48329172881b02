"""Where one block must learn, freezing it costs the score; a sweep that was stopped goes on; chance on noise."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import sentence
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.finetuning import loop
from bertology.measures.work import FOLDER
from bertology.recording.recorder import Policy
from bertology.results.shapes import Curve

FREEZING = registry.get("causes/freezing")
OPTIONS: dict[str, Any] = {"epochs": 12, "rate": 5e-3, "size": 8, "seeds": 1}
FILLER = ("the", "of", "and", "to", "in", "was", "with", "by", "on", "not", "he", "this")


def order_matters(count: int, *, shuffled: bool = False) -> Corpus:
    """Good where `red` stands before `blue`: what no bag of words shows, so that the head alone cannot see it."""
    draw = random.Random(0)
    items: list[Item] = []
    for number in range(count):
        words = draw.choices(FILLER, k=3)
        first, second = ("red", "blue") if number % 2 else ("blue", "red")
        label = draw.choice(("good", "bad")) if shuffled else ("bad", "good")[number % 2]
        items.append(Item((sentence([words[0], first, words[1], second, words[2]]),), label=label, id=str(number)))
    return Corpus(tuple(items), name="order")


def curve(corpus: Corpus, store: Path | None = None, model: str = "tiny", **options: Any) -> Curve:
    subject = Subject(corpus, load(model), policy=Policy(), store=store)
    found = run(FREEZING, subject, OPTIONS | options).data
    assert isinstance(found, Curve)
    return found


@pytest.fixture(scope="module")
def found() -> Curve:
    return curve(order_matters(120))


def test_the_points_are_the_blocks(found: Curve) -> None:
    assert found.along == "blocks" and found.points.tolist() == [0, 1, 2]
    assert set(found.measures) == {"frozen", "truncated"}
    assert set(found.baselines) == {"all blocks learn", "majority", "random weights"}


def test_what_needs_blocks_is_lost_when_none_learns(found: Curve) -> None:
    frozen, truncated = found.measures["frozen"], found.measures["truncated"]
    assert frozen.value[0] > 0.9 and frozen.value[2] < 0.8
    assert truncated.value[2] > 0.9 and truncated.value[0] < 0.8
    assert found.baselines["all blocks learn"]["frozen"].value[0] == truncated.value[2]
    assert found.baselines["majority"]["frozen"].value[0] < 0.6


def test_noise_is_not_learnt() -> None:
    noise = curve(order_matters(120, shuffled=True), every=2, epochs=2)
    for estimates in noise.measures.values():
        assert (estimates.low < 0.55).all() and (estimates.high > 0.45).all()


def test_only_every_so_many_blocks() -> None:
    assert curve(order_matters(24), every=2, epochs=1).points.tolist() == [0, 2]


def test_a_sweep_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, options = order_matters(40), dict[str, Any](epochs=1, seeds=2)
    whole = curve(corpus, **options)
    train, trained = loop.train, list[int]()

    def stopped(*given: Any, **named: Any) -> Any:
        trained.append(1)
        if len(trained) == 6:
            raise KeyboardInterrupt
        return train(*given, **named)

    monkeypatch.setattr("bertology.finetuning.learn.train", stopped)
    with pytest.raises(KeyboardInterrupt):
        curve(corpus, tmp_path, **options)
    kept = list((tmp_path / FOLDER).glob("*.json"))
    assert len(kept) == 5
    assert json.loads(kept[0].read_text("utf-8"))["about"]["analysis"] == "causes/freezing"
    assert curve(corpus, tmp_path, **options).model_dump_json() == whole.model_dump_json()
    runs = 2 * (2 + 3 + 2)
    assert len(trained) == 6 + runs - 5
    curve(corpus, tmp_path, **options)
    assert len(trained) == 6 + runs - 5


def test_intervals_hold_seeds_and_items() -> None:
    from bertology.finetuning.metrics import Counts
    from bertology.measures.variant_sweep import over_seeds

    ones, right = np.ones(200), np.repeat([1.0, 0.0], 100)
    one, two = (over_seeds([Counts(r, ones) for r in some], 0) for some in ([right], [right, np.zeros(200)]))
    assert one.value == 0.5 and one.high - one.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 200), rel=0.15)
    assert two.value == 0.25 and two.low == 0.0 and two.high > 0.4


def test_what_cannot_be_frozen_is_refused() -> None:
    with pytest.raises(Refusal, match="no blocks"):
        curve(order_matters(24), model="random-vectors:8")
    unlabelled = order_matters(24)
    with pytest.raises(Refusal, match="token needs"):
        curve(replace(unlabelled, items=tuple(replace(item, label=None) for item in unlabelled)))
