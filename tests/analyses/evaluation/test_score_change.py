"""Rounding errors are not counted as a change in loss; larger changes are, and are reported as measured."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import bertology.analyses.evaluation.evaluation as evaluation_module
from bertology.analyses.evaluation.evaluation import Evaluation, prepare_evaluation
from bertology.analyses.evaluation.score_change import (
    NEGLIGIBLE,
    ScoreChange,
    Scores,
    reference_score,
    score_change,
)
from bertology.corpus.read import load_corpus
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.load import load
from bertology.estimates.metrics import Counts

N_EXAMPLES = 40


def change_by(*differences: NDArray[Any] | float) -> ScoreChange:
    """The score change when each example's loss changes by this difference."""
    before = np.linspace(0.5, 9.0, N_EXAMPLES)
    counts = Counts(np.ones(N_EXAMPLES), np.ones(N_EXAMPLES))
    variants = [Scores(before + difference, counts) for difference in differences]
    return score_change(Scores(before, counts), variants, seed=0)


@pytest.mark.parametrize(
    ("difference", "p", "useful", "harmful"),
    [
        (0.0, 1.0, 0.0, 0.0),
        (0.9 * NEGLIGIBLE, 1.0, 0.0, 0.0),
        (-0.9 * NEGLIGIBLE, 1.0, 0.0, 0.0),
        (1.1 * NEGLIGIBLE, 0.0, 1.0, 0.0),
        (-1.1 * NEGLIGIBLE, 0.0, 0.0, 1.0),
    ],
)
def test_changes_are_tested_above_the_rounding_threshold(
    difference: float, p: float, useful: float, harmful: float
) -> None:
    change = change_by(difference)
    assert change.loss_p.value[0] == pytest.approx(p, abs=1e-9)
    assert (change.is_useful.value[0], change.is_harmful.value[0]) == (useful, harmful)
    # The change itself is reported as measured, however small.
    np.testing.assert_allclose(change.loss.value[0], difference, atol=1e-12)


def test_a_bias_of_rounding_errors_is_not_significant() -> None:
    """All examples are slightly above 0, which Student's t test alone would find significant."""
    rounding = np.random.default_rng(0).normal(0.2, 0.1, N_EXAMPLES) * NEGLIGIBLE
    assert change_by(rounding).loss_p.value[0] == 1
    assert change_by(1000 * rounding).loss_p.value[0] < 1e-6


def test_one_example_above_the_threshold_is_not_significant() -> None:
    """Rounding errors reach this size where a model is very confident of a wrong label."""
    single = np.where(np.arange(N_EXAMPLES) == 7, 5 * NEGLIGIBLE, 0.0)
    assert change_by(single).loss_p.value[0] > 0.3


def test_p_values_and_flags_are_exact_and_changes_have_bootstrap_intervals() -> None:
    change = change_by(0.5, -0.5)
    assert {name: estimates.interval for name, estimates in change.measures().items()} == {
        "change in score": "bootstrap",
        "change in loss": "bootstrap",
        "significantly useful": "exact",
        "significantly harmful": "exact",
        "p of change in score (Holm)": "exact",
        "p of change in loss (Holm)": "exact",
    }


@cache
def evaluated(name: str, corpus: str) -> tuple[TaskEncoder, Evaluation, Scores]:
    """A model, its evaluation and its scores."""
    encoder = load(name)
    assert isinstance(encoder, TaskEncoder)
    evaluation = prepare_evaluation(encoder, load_corpus(corpus, limit=N_EXAMPLES), seed=0)
    return encoder, evaluation, evaluation.scores(encoder.forward)


def scores_with_scaled_heads(name: str, corpus: str, scale: Tensor) -> Scores:
    encoder, evaluation, _ = evaluated(name, corpus)
    return evaluation.scores(encoder.with_gates(Gates(scale=scale)).forward)


MODELS = [("tiny", "english"), ("mini", "english"), ("mini-pairs", "diagnostic")]


@pytest.mark.parametrize(("name", "corpus"), MODELS)
def test_gates_of_one_change_nothing(name: str, corpus: str) -> None:
    """Heads multiplied by 1 are computed in another order of operations."""
    encoder, _, intact = evaluated(name, corpus)
    gated = scores_with_scaled_heads(name, corpus, torch.ones(encoder.layers, encoder.heads))
    assert 0 < np.abs(gated.losses - intact.losses).max() < NEGLIGIBLE
    change = score_change(intact, [gated], seed=0)
    assert change.loss_p.value[0] == 1 and change.score_p.value[0] == 1
    assert change.is_useful.value[0] == change.is_harmful.value[0] == 0


@pytest.mark.parametrize(("name", "corpus"), MODELS)
def test_the_batch_size_changes_nothing(name: str, corpus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone in its batch, an example has other padding and other matrix blocks."""
    encoder, _, intact = evaluated(name, corpus)
    monkeypatch.setattr(evaluation_module, "BATCH_SIZE", 1)
    single = prepare_evaluation(encoder, load_corpus(corpus, limit=N_EXAMPLES), seed=0).scores(encoder.forward)
    assert np.abs(single.losses - intact.losses).max() < NEGLIGIBLE


def test_a_slightly_weaker_head_is_a_change() -> None:
    """Scaling one head by 0.99 moves most examples by more than rounding does: the threshold hides no head."""
    encoder, _, intact = evaluated("mini-pairs", "diagnostic")
    for layer in (0, encoder.layers - 1):
        scale = torch.ones(encoder.layers, encoder.heads)
        scale[layer, 0] = 0.99
        differences = np.abs(scores_with_scaled_heads("mini-pairs", "diagnostic", scale).losses - intact.losses)
        assert np.mean(differences > NEGLIGIBLE) > 0.5


def count_change(before: NDArray[Any], after: NDArray[Any], total: NDArray[Any]) -> ScoreChange:
    losses = np.full(len(before), np.nan)
    return score_change(Scores(losses, Counts(before, total)), [Scores(losses, Counts(after, total))], seed=0)


def test_a_score_that_changed_in_no_example_is_not_certain() -> None:
    """Three of n examples may still change: this is the interval that pruning has too. Equal losses: the same model."""
    ones, losses = np.ones(100), np.linspace(0.1, 1.0, 100)
    intact = Scores(losses, Counts(ones, ones))
    changes = score_change(intact, [Scores(losses + 0.01, Counts(ones, ones)), intact], seed=0).score
    assert changes.value.tolist() == [0, 0]
    assert (changes.low[0], changes.high[0]) == pytest.approx((-0.03, 0.03))
    assert changes.low[1] == changes.high[1] == 0


def test_ends_of_intervals_are_free_of_rounding_errors() -> None:
    """Ten examples of seven tokens, of which three get worse: sevenths have no exact binary form."""
    total = np.full(10, 7.0)
    before, after = np.full(10, 3.0), np.array([0.0] * 3 + [3.0] * 7)
    change = count_change(np.tile(before, 10), np.tile(after, 10), np.tile(total, 10)).score[0]
    assert change.value == pytest.approx(-9 / 70) and change.clearly_below(0)
    mixed = count_change(before, np.array([0.0, 6.0] + [3.0] * 8), total).score[0]
    assert mixed.value == 0 and not np.signbit(mixed.value)


@pytest.mark.parametrize(("gain", "loss"), [(0.01, 0.0), (0.02, 0.01), (0.0, 0.05)])
def test_intervals_of_rare_changes_cover_the_truth(gain: float, loss: float) -> None:
    """The bootstrap alone covers 34 to 86 % here: it knows no change that was not seen."""
    generator, ones = np.random.default_rng(0), np.ones(40)
    variants: list[Scores] = []
    for draw in generator.random((300, 40)):
        after = 0.5 + (draw < gain) - 1.0 * ((draw >= gain) & (draw < gain + loss))
        variants.append(Scores(ones, Counts(after, ones)))
    estimates = score_change(Scores(0 * ones, Counts(0.5 * ones, ones)), variants, seed=0).score
    covered = (estimates.low <= gain - loss + 1e-9) & (estimates.high >= gain - loss - 1e-9)
    assert covered.mean() > 0.92


def test_a_model_that_always_predicts_the_majority_class_may_differ_on_other_examples() -> None:
    majority = Counts(np.array([1.0, 0.0, 1.0] * 5), np.ones(15))
    reference = reference_score("the trained model", [majority], "majority class", majority, seed=0)
    difference = reference.difference[()]
    assert difference.value == 0 and difference.low == -difference.high and 0.15 < difference.high < 0.3
    assert not reference.is_above_baseline
