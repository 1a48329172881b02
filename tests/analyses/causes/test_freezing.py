"""Where one block must learn, freezing it costs the score; a sweep that was stopped goes on; chance on noise."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from bertology.analyses import registry
from bertology.analyses.causes.freezing import changed
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import sentence
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.finetuning import loop
from bertology.finetuning.metrics import Counts
from bertology.measures.variant_sweep import over_seeds
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
    assert set(found.measures) == {"frozen", "truncated", "frozen, change", "truncated, change"}
    assert set(found.baselines) == {"all blocks learn", "majority", "random weights", "no change"}


def test_what_needs_blocks_is_lost_when_none_learns(found: Curve) -> None:
    frozen, truncated = found.measures["frozen"], found.measures["truncated"]
    assert frozen.value[0] > 0.9 and frozen.value[2] < 0.8
    assert truncated.value[2] > 0.9 and truncated.value[0] < 0.8
    assert found.baselines["all blocks learn"]["frozen"].value[0] == truncated.value[2]
    assert found.baselines["majority"]["frozen"].value[0] < 0.6


def test_changes_are_of_the_same_items(found: Curve) -> None:
    whole = found.baselines["all blocks learn"]["frozen"].value[0]
    for name in ("frozen", "truncated"):
        change = found.measures[f"{name}, change"]
        np.testing.assert_allclose(change.value, found.measures[name].value - whole, atol=1e-12)
    assert found.measures["frozen, change"].high[2] < 0 and found.measures["truncated, change"].high[0] < 0
    # With no block dropped it is the whole model itself.
    itself = found.measures["truncated, change"]
    assert itself.value[2] == itself.low[2] == itself.high[2] == 0
    # Embeddings that stay as they were are another model: where none of 30 answers turned, another may.
    level = found.measures["frozen, change"]
    assert (level.value[0], level.low[0], level.high[0]) == pytest.approx((0, -0.1, 0.1))


def test_noise_is_not_learnt() -> None:
    noise = curve(order_matters(120, shuffled=True), every=2, epochs=2)
    for name, estimates in noise.measures.items():
        chance = 0.0 if name.endswith("change") else 0.5
        assert (estimates.low < chance + 0.05).all() and (estimates.high > chance - 0.05).all()


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
    ones, right = np.ones(200), np.repeat([1.0, 0.0], 100)
    one, two = (over_seeds([Counts(r, ones) for r in some], 0) for some in ([right], [right, np.zeros(200)]))
    assert one.value == 0.5 and one.high - one.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 200), rel=0.15)
    assert two.value == 0.25 and two.low == 0.0 and two.high > 0.4


def runs(*shares: float, items: int = 200) -> list[Counts]:
    """Answers of several runs to items of which the first share is right: the same items are hard for all."""
    return [Counts((np.arange(items) < share * items).astype(float), np.ones(items)) for share in shares]


def test_pairs_are_surer_than_two_intervals() -> None:
    """Of 200 items 4 are lost: their own scores cannot tell that from a loss of 5 points, the pairs can."""
    whole, less = runs(0.7, 0.7), runs(0.68, 0.68)
    change = changed([less, whole], whole, 0)
    one, other = (over_seeds(counts, 0) for counts in (less, whole))
    assert change.value[0] == pytest.approx(-0.02) == one.value - other.value
    assert one.low < other.high - 0.05 < one.high
    # What is lost of 200 drawn again is binomial.
    most, fewest = binom(200, 0.02).ppf([0.975, 0.025]) / 200
    assert (change.low[0], change.high[0]) == pytest.approx((-most, -fewest), abs=1 / 200)
    assert change.low[0] > -0.05 and change.high[0] < 0
    assert change.low[1] == change.high[1] == 0


def test_pairs_that_are_strangers_are_no_surer() -> None:
    """Right by chance and by another chance: the difference is as unsure as two scores are."""
    draw = np.random.default_rng(0)
    one, other = ([Counts((draw.random(400) < 0.7).astype(float), np.ones(400))] for _ in range(2))
    change = changed([one], other, 0)
    assert change.high[0] - change.low[0] == pytest.approx(2 * 1.96 * np.sqrt(2 * 0.21 / 400), rel=0.15)
    assert change.low[0] < 0 < change.high[0]


def test_seeds_that_differ_widen_a_change() -> None:
    """One seed gains what the other loses: nothing is sure, however many items there are."""
    whole = runs(0.5, 0.5, items=2000)
    alike, unlike = (changed([runs(*some, items=2000)], whole, 0) for some in ((0.5, 0.5), (0.3, 0.7)))
    assert alike.high[0] - alike.low[0] < 0.01
    assert unlike.value[0] == pytest.approx(0) and unlike.low[0] < -0.15 and unlike.high[0] > 0.15


def test_what_cannot_be_frozen_is_refused() -> None:
    with pytest.raises(Refusal, match="no blocks"):
        curve(order_matters(24), model="random-vectors:8")
    unlabelled = order_matters(24)
    with pytest.raises(Refusal, match="token needs"):
        curve(replace(unlabelled, items=tuple(replace(item, label=None) for item in unlabelled)))
