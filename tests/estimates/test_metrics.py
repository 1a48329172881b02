"""Scores agree with scikit-learn, and their intervals with theory."""

from __future__ import annotations

import random

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from bertology.estimates.metrics import bootstrap_runs, bootstrap_score, count_correct_labels, macro_f1_and_mcc


@pytest.mark.parametrize("labels", ["ab", "abcde"])
@pytest.mark.parametrize("length", [1, 7])
def test_scores_agree_with_scikit_learn(labels: str, length: int) -> None:
    rng = random.Random(length)
    gold = [rng.choices(labels, k=length) for _ in range(60)]
    predicted = [[label if rng.random() < 0.6 else rng.choice("ab") for label in sequence] for sequence in gold]
    flat = [label for sequence in gold for label in sequence], [label for sequence in predicted for label in sequence]
    scores = {"accuracy": bootstrap_score(count_correct_labels(gold, predicted)), **macro_f1_and_mcc(gold, predicted)}
    assert scores["accuracy"].value == pytest.approx(accuracy_score(*flat))
    assert scores["macro-F1"].value == pytest.approx(f1_score(*flat, average="macro"))
    assert scores["MCC"].value == pytest.approx(matthews_corrcoef(*flat))
    for score in scores.values():
        assert score.low < score.value < score.high and score.n == 60


def test_an_interval_covers_the_planted_value() -> None:
    rng = random.Random(0)
    gold = [[rng.choice("ab")] for _ in range(400)]
    predicted = [labels if i % 5 else ["b" if labels == ["a"] else "a"] for i, labels in enumerate(gold)]
    correlation = macro_f1_and_mcc(gold, predicted)["MCC"]
    assert correlation.low < 0.6 < correlation.high
    assert correlation.high - correlation.low == pytest.approx(2 * 1.96 * 2 * np.sqrt(0.16 / 400), rel=0.2)


def test_a_constant_prediction_has_no_correlation() -> None:
    scores = macro_f1_and_mcc([["a"], ["b"], ["a"]], [["a"], ["a"], ["a"]])
    assert scores["MCC"].value == 0
    assert scores["macro-F1"].value == pytest.approx(0.4)
    assert macro_f1_and_mcc([["a"]], [["a"]])["macro-F1"].value == 1


def test_runs_without_a_mistake_still_have_an_interval() -> None:
    """Seven right answers of seven do not show that the eighth will be right."""
    perfect = count_correct_labels([["a"]] * 7, [["a"]] * 7)
    for estimate in (bootstrap_score(perfect), bootstrap_runs([perfect, perfect], seed=0)):
        assert (estimate.value, estimate.high) == (1.0, 1.0)
        assert estimate.low == pytest.approx(1 - 0.4096, abs=1e-3)
