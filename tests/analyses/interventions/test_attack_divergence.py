"""Shuffled words do not change the states of a model without positions, and change those of one with positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from attackable import bag_of_words_classifier, order_matters, word_order_classifier
from bertology.analyses import registry
from bertology.analyses.interventions.attack_divergence.divergence import layer_divergence, shared_tokens
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example, TextInput
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.encoder import Encoder
from bertology.encoder.tokens import TokenisedInput
from bertology.errors import Refusal
from bertology.results.illustrations import Trajectory
from bertology.results.shapes import LayerCurve
from planted_tasks import planted_corpus

ATTACK_DIVERGENCE = registry.get("interventions/attack_divergence")
STATES, FIRST_TOKEN, ATTENTION = "hidden-state distance", "[CLS] distance", "attention distance"
LOSS, SCORE_DROP = "change in loss", "score drop"


def run(encoder: Encoder, corpus: Corpus, **options: Any) -> Any:
    inputs = RunInputs(corpus, encoder)
    return run_analysis(ATTACK_DIVERGENCE, inputs, {"sample_size": 30, "max_pairs": 8} | options).data


def example_of(text: str) -> Example:
    return Example((sentence_from_words(text.split()),))


def test_without_positions_the_states_never_diverge() -> None:
    curve = run(bag_of_words_classifier(), planted_corpus("sentence", 30, seed=1))
    assert isinstance(curve, LayerCurve)
    for name in (STATES, FIRST_TOKEN, LOSS, SCORE_DROP):
        np.testing.assert_allclose(curve.measures[name].value, 0.0, atol=2e-5, err_msg=name)
    np.testing.assert_allclose(curve.measures[ATTENTION].value[1:], 0.0, atol=2e-5)
    assert np.isnan(curve.measures[ATTENTION].value[0]) and curve.measures[ATTENTION].n[0] == 0
    assert (curve.baselines["random edits (same amount)"][FIRST_TOKEN].value[1:] > 1e-3).all()
    assert curve.sample["flipped examples"] == 0 and curve.sample["text pairs"] == 8


def test_with_positions_the_states_diverge_and_the_prediction_flips_in_the_last_layer() -> None:
    curve = run(word_order_classifier(), order_matters(30, seed=1))
    assert (curve.measures[STATES].value > 0.01).all()
    assert curve.measures[FIRST_TOKEN].value[0] == pytest.approx(0.0, abs=1e-9)
    assert (np.diff(curve.measures[FIRST_TOKEN].value) > 0).all()
    assert curve.measures[SCORE_DROP].value[-1] == 1.0  # the pairs were selected for it
    assert curve.measures[LOSS].value[-1] > 1.0 > abs(curve.measures[LOSS].value[0])
    assert 0 < curve.sample["flipped examples"] < curve.sample["changed examples"]
    changed = run(word_order_classifier(), order_matters(30, seed=1), select="changed")
    assert changed.measures[SCORE_DROP].value[-1] < 1.0 and changed.sample == curve.sample


def test_the_untrained_model_can_be_left_out() -> None:
    inputs = RunInputs(order_matters(12, seed=1), word_order_classifier(), random_baseline=False)
    curve = run_analysis(ATTACK_DIVERGENCE, inputs, {"max_pairs": 4}).data
    assert isinstance(curve, LayerCurve) and set(curve.baselines) == {"random edits (same amount)"}
    assert curve.sample["examples"] == 12


def test_the_trajectory_has_both_versions_in_one_plane() -> None:
    trajectory = run(word_order_classifier(), order_matters(30, seed=1), show="trajectory", example=2)
    assert isinstance(trajectory, Trajectory)
    assert trajectory.points.shape == (3, 14, 2) and trajectory.groups == ("original",) * 7 + ("attacked",) * 7
    assert sorted(trajectory.labels[:7]) == sorted(trajectory.labels[7:])
    np.testing.assert_allclose(trajectory.points.mean((0, 1)), 0.0, atol=1e-9)


@pytest.mark.parametrize("number", [0, 99])
def test_examples_are_counted_from_one(number: int) -> None:
    with pytest.raises(Refusal, match=f"--example (is|was given) {number}"):
        run(word_order_classifier(), order_matters(30, seed=1), show="trajectory", example=number)


def test_tokens_are_matched_in_place_first_and_moved_ones_after() -> None:
    encoder = bag_of_words_classifier()

    def tokens(text: str) -> TokenisedInput:
        return encoder.tokenise([TextInput((sentence_from_words(text.split()),))])[0]

    first, second = tokens("the cat was the dog"), tokens("the dog was the cat")
    assert shared_tokens(first, second) == [(0, 0), (1, 1), (2, 5), (3, 3), (4, 4), (5, 2), (6, 6)]
    assert shared_tokens(tokens("the cat"), tokens("a dog")) == [(0, 0), (3, 3)]


def test_equal_texts_are_not_compared_and_attention_distance_is_a_total_variation() -> None:
    encoder = word_order_classifier()
    assert layer_divergence(encoder, example_of("the cat"), example_of("the cat")) is None
    divergence = layer_divergence(encoder, example_of("the cat saw"), example_of("the dog saw"))
    assert divergence is not None
    assert ((divergence[ATTENTION][1:] >= 0) & (divergence[ATTENTION][1:] <= 1)).all()
    assert divergence[STATES][0] == pytest.approx(0.0, abs=1e-9)  # shared words have equal embeddings
