"""Gates keep exactly the planted head with a penalty, all heads without one, and none with a high one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import planted
import planted_heads
from bertology.analyses import registry
from bertology.analyses.cache import FOLDER
from bertology.analyses.evaluation import gate_training
from bertology.analyses.evaluation.gate_training import GateTrainingConfig, permuted_head_sets, train_gates
from bertology.analyses.evaluation.head_ranking import prepare_ranking
from bertology.analyses.evaluation.options import EvaluationOptions
from bertology.analyses.evaluation.score_change import Scores
from bertology.analyses.head_selection.functions import STRONGEST_WORD, FunctionKind
from bertology.analyses.interventions.head_gates import (
    _expected_kept_proportion,  # pyright: ignore[reportPrivateUsage]
    _ranks,  # pyright: ignore[reportPrivateUsage]
    heads_by_function,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.estimates.metrics import Counts
from bertology.results.shapes import Curve
from planted_heads import HEADS, LAYERS, PLANTED, RANKED

HEAD_GATES = registry.get("interventions/head_gates")


def no_progress(done: int, total: int) -> None:
    pass


def run(inputs: RunInputs, **options: Any) -> Curve:
    curve = run_analysis(HEAD_GATES, inputs, options).data
    assert isinstance(curve, Curve)
    return curve


@pytest.mark.parametrize("seed", [0, 1])
def test_exactly_the_planted_head_is_kept(seed: int) -> None:
    encoder, corpus = planted_heads.single_head()
    model, evaluation = prepare_ranking(encoder, corpus, EvaluationOptions(sample_size=0))
    before = encoder.fingerprint
    trained = train_gates(model, evaluation, GateTrainingConfig(0.03, 60, 8, 2.0, 0.2, False, seed), no_progress)
    assert np.argwhere(trained.kept_heads).tolist() == [list(PLANTED)]
    assert evaluation.scores(trained.encoder.forward).counts.score == 1
    assert encoder.fingerprint == before


def test_a_higher_penalty_keeps_the_most_important_heads() -> None:
    encoder, corpus = planted_heads.ranked_heads()
    model, evaluation = prepare_ranking(encoder, corpus, EvaluationOptions(sample_size=0))
    configs = [GateTrainingConfig(penalty, 80, 24, 2.0, 0.2, False, 0) for penalty in (0.01, 0.15)]
    low, high = (train_gates(model, evaluation, config, no_progress) for config in configs)
    assert {(int(layer), int(head)) for layer, head in np.argwhere(low.kept_heads)} == set(RANKED)
    assert not (high.kept_heads & ~low.kept_heads).any()
    assert high.kept_heads[RANKED[0]] and not high.kept_heads[RANKED[-1]]
    assert high.log_alpha[RANKED[0]] > high.log_alpha[RANKED[2]] > high.log_alpha[RANKED[3]]


def test_the_curve_over_penalties(tmp_path: Path) -> None:
    encoder, corpus = planted_heads.single_head()
    inputs = RunInputs(corpus, encoder, store=tmp_path)
    curve = run(inputs, sample_size=0, l0_penalties="0.03,5", n_seeds=2, steps=50, function_corpus="none")
    assert curve.x_name == "L0 penalty" and curve.x.tolist() == [0.03, 5]
    assert curve.measures["score"].value[0] == 1
    assert curve.measures["score"].value[1] == pytest.approx(0.5, abs=0.1)
    assert curve.measures["heads kept"].value.tolist() == [1, 0]
    assert curve.measures["heads kept"].interval == "range" and curve.measures["score"].interval == "bootstrap"
    assert (curve.measures["score"].n == 64).all() and curve.sample["trainings per penalty"] == 4
    # A random head of twelve is the planted one with probability 1/12; then the score is 1, else half.
    random = curve.baselines["random heads (same number)"]["score"]
    assert random.value[0] == pytest.approx(0.5 + 0.5 / 12, abs=0.06)
    assert curve.measures["score - score (random)"].low[0] > 0.2
    # No set without heads differs from another.
    assert np.isnan(random.value[1]) and np.isnan(curve.measures["rank among random sets"].value[1])
    assert np.isnan(curve.measures["score - score (random)"].value[1])
    assert curve.not_measured == {
        "random heads (same number), rank among random sets": "there is no other set of the same size: kept no head "
        "at 5"
    }
    n_sets = curve.sample["random sets"]
    assert 20 <= n_sets <= 60
    error = curve.sample["largest standard error of their mean score"]
    assert error <= 0.01 or n_sets == 60
    first, second = curve.removal_orders
    assert first.kept == (str(PLANTED),) and first.n_removed == LAYERS * HEADS - 1 and second.kept == ()
    assert first.values["kept in (proportion of trainings)"][-1] == 1
    assert first.values["probability that the gate is not 0"][-1] > 0.5
    assert curve.baselines["all heads"]["score"].value[0] == 1
    assert curve.baselines["all heads"]["heads kept"].value[0] == LAYERS * HEADS
    assert curve.baselines["majority class"]["score"].value[0] < 0.7


def test_functions_are_compared_with_the_proportion_kept_of_all_heads() -> None:
    inputs = RunInputs(load_corpus("english", limit=12), load("tiny"))
    curve = run(inputs, l0_penalties="0", steps=2, n_seeds=1)
    assert curve.measures["heads kept"].value.tolist() == [8]
    for name in (name for name in curve.measures if name.endswith("heads kept") and name != "heads kept"):
        assert curve.measures[name].value.tolist() == [1]
        assert curve.baselines["all heads kept (proportion)"][name].value.tolist() == [1]


def test_weights_can_be_trained_with_the_gates() -> None:
    encoder, corpus = planted_heads.single_head()
    model, evaluation = prepare_ranking(encoder, corpus, EvaluationOptions(sample_size=0))
    before = encoder.fingerprint
    trained = train_gates(model, evaluation, GateTrainingConfig(0.03, 60, 8, 2.0, 0.2, True, 0), no_progress)
    assert trained.kept_heads[PLANTED] and not trained.kept_heads.all()
    assert evaluation.scores(trained.encoder.forward).counts.score == 1
    assert not torch.equal(encoder.model.classifier.weight, trained.encoder.model.classifier.weight)
    assert encoder.fingerprint == before


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, corpus = planted_heads.single_head()
    options: dict[str, Any] = {
        "sample_size": 16,
        "l0_penalties": "0.01,0.1",
        "n_seeds": 1,
        "steps": 4,
        "function_corpus": "none",
    }
    expected = run(RunInputs(corpus, encoder), **options)
    original, calls = gate_training.train_gates, list[int]()

    def interrupted(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(gate_training, "train_gates", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(RunInputs(corpus, encoder, store=tmp_path), **options)
    assert len(list((tmp_path / FOLDER).glob("*.json"))) == 1
    resumed = run(RunInputs(corpus, encoder, store=tmp_path), **options)
    assert resumed.measures["score"] == expected.measures["score"]
    assert len(calls) == 5  # two penalties on each half, and the interrupted one


def test_random_sets_have_the_same_sizes_and_overlaps() -> None:
    kept_heads = [np.array([[True, False], [False, True]]), np.array([[True, False], [False, False]])]
    for order in ([3, 2, 1, 0], [1, 0, 2, 3]):
        first, second = permuted_head_sets(kept_heads, np.array(order))
        assert (int(first.sum()), int(second.sum()), int((first & second).sum())) == (2, 1, 1)


def test_a_random_set_ranks_anywhere_and_the_best_one_first() -> None:
    """The rank of a set without merit is uniform, so that rank / (sets + 1) is a valid p value."""
    rng = np.random.default_rng(0)

    def scores() -> list[Scores]:
        correct = (rng.random(200) < rng.uniform(0.4, 0.9)).astype(float)
        return [Scores(correct, Counts(correct, np.ones(200)))]

    ranks = np.array([_ranks([scores()], [scores() for _ in range(19)]).value[0] for _ in range(400)])
    assert ranks.min() >= 1 and ranks.max() <= 20 and ranks.mean() == pytest.approx(10.5, abs=1)
    assert (ranks <= 1).mean() <= 0.08
    best = np.ones(200)
    [rank] = _ranks([[Scores(best, Counts(best, best))]], [scores() for _ in range(19)]).value
    assert rank == 1


@pytest.mark.parametrize("penalties", ["", "a", "-1", "nan"])
def test_invalid_penalties_are_refused(penalties: str) -> None:
    encoder, corpus = planted_heads.single_head()
    with pytest.raises(Refusal, match="--l0-penalties"):
        run(RunInputs(corpus, encoder), l0_penalties=penalties)


def test_a_few_heads_may_all_be_kept_by_chance_and_many_may_not() -> None:
    kept_heads = np.zeros((2, 1, 8, 8), np.bool_)
    kept_heads[..., :6] = True
    few, many = np.zeros((2, 8, 8), np.bool_)
    few[0, :2] = True
    many[:4] = True
    expected = _expected_kept_proportion(kept_heads, few)
    assert (expected.value, expected.high) == (0.75, 1.0)
    sampled = np.random.default_rng(0).permuted(np.tile(kept_heads[0, 0].ravel(), (4000, 1)), axis=1)[:, :32].mean(1)
    expected = _expected_kept_proportion(kept_heads, many)
    np.testing.assert_allclose([expected.low[0], expected.high[0]], np.quantile(sampled, [0.025, 0.975]), atol=1 / 32)


def attention_to_governors(relation: str) -> planted.HeadAttention:
    """A head in which words with this relation attend to their governor, and all others to random words."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        weights = planted.random_head(5)(recorded_input)
        sentence = recorded_input.text.segments[0]
        for word, governor in enumerate(sentence.governors or ()):
            if (sentence.relations or ())[word] == relation and governor >= 0:
                weights[word + 1] = np.eye(len(weights))[governor + 1]
        return weights

    return head


def test_functions_are_those_of_planted_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their definition, counted here from the attention itself, and by the analysis."""
    layers = [
        [planted.offset_head(-1), planted.random_head(1), attention_to_governors("det")],
        [planted.random_head(2), planted.offset_head(1), planted.random_head(3)],
    ]
    corpus = load_corpus("english", limit=150)
    recordings: list[Any] = []

    def planted_record(encoder: Any, sample: Any, *_: Any, **__: Any) -> Any:
        recordings.append(planted.make_recording(sample, layers).with_sites([STRONGEST_WORD]))
        return recordings[0]

    monkeypatch.setattr("bertology.analyses.interventions.head_gates.record", planted_record)
    kinds = heads_by_function(load("tiny"), corpus, "", seed=0)
    shares = np.zeros((3, 2, 3))
    n_words = np.zeros(3)
    for recorded_input, attention in zip(recordings[0].inputs, recordings[0]["attention"], strict=True):
        sentence = recorded_input.text.segments[0]
        strongest = np.asarray(attention)[:, :, 1:-1, 1:-1].argmax(-1)
        for word, governor in enumerate(sentence.governors or ()):
            is_determiner = (sentence.relations or ())[word] == "det"
            for row, target in enumerate((word - 1, word + 1, governor if is_determiner else -1)):
                if 0 <= target < len(sentence):
                    shares[row] += strongest[:, :, word] == target
                    n_words[row] += 1
    shares /= n_words[:, None, None]
    expected: dict[FunctionKind, Any] = {"positional": shares[:2].max(0) > 0.9, "syntactic": shares[2] > 0.9}
    assert {kind: np.argwhere(heads).tolist() for kind, heads in expected.items()} == {
        "positional": [[0, 0], [1, 1]],
        "syntactic": [[0, 2]],
    }
    assert set(kinds) == set(expected)
    for kind, heads in expected.items():
        np.testing.assert_array_equal(kinds[kind][:2, :3], heads)
        assert kinds[kind].sum() == heads.sum()
