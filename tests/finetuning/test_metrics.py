"""Scores are scikit-learn's, their intervals what a bootstrap gives."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from bertology.finetuning.metrics import count_same, estimate, macro_f1_and_mcc


@pytest.mark.parametrize("labels", ["ab", "abcde"])
@pytest.mark.parametrize("length", [1, 7])
def test_they_equal_those_of_scikit_learn(labels: str, length: int) -> None:
    draw = random.Random(length)
    gold = [draw.choices(labels, k=length) for _ in range(60)]
    given = [[one if draw.random() < 0.6 else draw.choice("ab") for one in some] for some in gold]
    flat = [label for some in gold for label in some], [label for some in given for label in some]
    found = {"accuracy": estimate(count_same(gold, given)), **macro_f1_and_mcc(gold, given)}
    assert found["accuracy"].value == pytest.approx(accuracy_score(*flat))
    assert found["macro-F1"].value == pytest.approx(f1_score(*flat, average="macro"))
    assert found["MCC"].value == pytest.approx(matthews_corrcoef(*flat))
    for score in found.values():
        assert score.low < score.value < score.high and score.n == 60


def test_an_interval_holds_what_is_true() -> None:
    draw = random.Random(0)
    gold = [[draw.choice("ab")] for _ in range(400)]
    given = [some if place % 5 else ["b" if some == ["a"] else "a"] for place, some in enumerate(gold)]
    correlation = macro_f1_and_mcc(gold, given)["MCC"]
    assert correlation.low < 0.6 < correlation.high
    assert correlation.high - correlation.low == pytest.approx(2 * 1.96 * 2 * np.sqrt(0.16 / 400), rel=0.2)


def test_one_answer_for_all_is_no_correlation() -> None:
    scores = macro_f1_and_mcc([["a"], ["b"], ["a"]], [["a"], ["a"], ["a"]])
    assert scores["MCC"].value == 0
    assert scores["macro-F1"].value == pytest.approx(0.4)
    assert macro_f1_and_mcc([["a"]], [["a"]])["macro-F1"].value == 1
