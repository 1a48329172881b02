"""Freezing a layer that must be trained costs the score; an interrupted sweep resumes; noise is not learnt."""

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
from bertology.analyses.cache import FOLDER
from bertology.analyses.interventions.layer_freezing import score_changes
from bertology.analyses.run import RunInputs, run_analysis
from bertology.claims.catalogue import all_claims
from bertology.claims.judge import judge
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.estimates.metrics import Counts, bootstrap_runs
from bertology.results.shapes import Curve
from bertology.training import loop

LAYER_FREEZING = registry.get("interventions/layer_freezing")
FROZEN, TRUNCATED = "first k layers frozen", "first k layers only"
OPTIONS: dict[str, Any] = {"epochs": 12, "learning_rate": 5e-3, "batch_size": 8, "n_seeds": 1}
FILLER = ("the", "of", "and", "to", "in", "was", "with", "by", "on", "not", "he", "this")


def order_matters(count: int, *, shuffled: bool = False) -> Corpus:
    """Texts that are good if `red` precedes `blue`: neither a bag of words nor a task head alone can tell."""
    rng = random.Random(0)
    examples: list[Example] = []
    for number in range(count):
        words = rng.choices(FILLER, k=3)
        first, second = ("red", "blue") if number % 2 else ("blue", "red")
        label = rng.choice(("good", "bad")) if shuffled else ("bad", "good")[number % 2]
        text = sentence_from_words([words[0], first, words[1], second, words[2]])
        examples.append(Example((text,), label=label, id=str(number)))
    return Corpus(tuple(examples), name="order")


def run(corpus: Corpus, store: Path | None = None, model: str = "tiny", **options: Any) -> Curve:
    curve = run_analysis(LAYER_FREEZING, RunInputs(corpus, load(model), store=store), OPTIONS | options).data
    assert isinstance(curve, Curve)
    return curve


@pytest.fixture(scope="module")
def curve() -> Curve:
    return run(order_matters(120))


def test_the_curve_is_over_numbers_of_layers(curve: Curve) -> None:
    assert curve.x_name == "layers" and curve.x.tolist() == [0, 1, 2]
    assert set(curve.measures) == {
        f"{measure} ({name})" for measure in ("score", "change in score") for name in (FROZEN, TRUNCATED)
    }
    assert set(curve.baselines) == {"all layers trained", "majority class", "untrained model", "zero"}


def test_a_task_that_needs_layers_is_not_learnt_if_none_is_trained(curve: Curve) -> None:
    frozen, truncated = curve.measures[f"score ({FROZEN})"], curve.measures[f"score ({TRUNCATED})"]
    assert frozen.value[0] > 0.9 and frozen.value[2] < 0.8
    assert truncated.value[2] > 0.9 and truncated.value[0] < 0.8
    assert curve.baselines["all layers trained"][f"score ({FROZEN})"].value[0] == truncated.value[2]
    assert curve.baselines["majority class"][f"score ({FROZEN})"].value[0] < 0.6


def test_changes_are_measured_on_the_same_examples(curve: Curve) -> None:
    all_trained = curve.baselines["all layers trained"][f"score ({FROZEN})"].value[0]
    changes = {name: curve.measures[f"change in score ({name})"] for name in (FROZEN, TRUNCATED)}
    for name, change in changes.items():
        np.testing.assert_allclose(change.value, curve.measures[f"score ({name})"].value - all_trained, atol=1e-12)
    frozen, truncated = changes[FROZEN], changes[TRUNCATED]
    assert frozen.high[2] < 0 and truncated.high[0] < 0
    # Without removed layers it is the fully trained model itself.
    assert truncated.value[2] == truncated.low[2] == truncated.high[2] == 0
    # Frozen embeddings make another model: if none of 30 predictions changed, that of another example may.
    assert (frozen.value[0], frozen.low[0], frozen.high[0]) == pytest.approx((0, -0.1, 0.1))


def test_a_learnt_task_is_above_the_majority_class(curve: Curve) -> None:
    assert curve.reference is not None and curve.reference.is_above_baseline and curve.describe_reference() == ""
    assert curve.reference.score.value == curve.baselines["all layers trained"][f"score ({FROZEN})"].value[0]


def test_noise_is_not_learnt() -> None:
    noise = run(order_matters(120, shuffled=True), layer_step=2, epochs=2)
    assert noise.reference is not None and not noise.reference.is_above_baseline
    for name, estimates in noise.measures.items():
        chance = 0.0 if name.startswith("change") else 0.5
        assert (estimates.low < chance + 0.05).all() and (estimates.high > chance - 0.05).all()


def test_the_layer_step_and_the_last_layer_are_evaluated() -> None:
    assert run(order_matters(24), layer_step=2, epochs=1).x.tolist() == [0, 2]


def test_a_sample_size_of_zero_uses_all_examples() -> None:
    sample = run(order_matters(24), layer_step=2, epochs=1, sample_size=0).sample
    assert sample["training examples"] + sample["test examples"] == 24


def test_an_interrupted_sweep_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, options = order_matters(40), dict[str, Any](epochs=1, n_seeds=2)
    expected = run(corpus, **options)
    train, calls = loop.train, list[int]()

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return train(*args, **options)

    monkeypatch.setattr("bertology.training.job.train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(corpus, tmp_path, **options)
    cached = list((tmp_path / FOLDER).glob("*.json"))
    assert len(cached) == 5
    assert json.loads(cached[0].read_text("utf-8"))["key"]["function"].endswith("train_and_test")
    assert run(corpus, tmp_path, **options).model_dump_json() == expected.model_dump_json()
    n_runs = 2 * (2 + 3 + 2)
    assert len(calls) == 6 + n_runs - 5
    run(corpus, tmp_path, **options)
    assert len(calls) == 6 + n_runs - 5


def test_intervals_include_seeds_and_examples() -> None:
    ones, correct = np.ones(200), np.repeat([1.0, 0.0], 100)
    one_run, two_runs = (
        bootstrap_runs([Counts(run, ones) for run in runs], 0) for runs in ([correct], [correct, np.zeros(200)])
    )
    assert one_run.value == 0.5
    assert one_run.high - one_run.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 / 200), rel=0.15)
    assert two_runs.value == 0.25 and two_runs.low == 0.0 and two_runs.high > 0.4


def runs_of(*accuracies: float, n_examples: int = 200) -> list[Counts]:
    """Counts of several runs in which the first examples are correct: the same examples are hard for all."""
    return [
        Counts((np.arange(n_examples) < accuracy * n_examples).astype(float), np.ones(n_examples))
        for accuracy in accuracies
    ]


def test_paired_intervals_are_narrower_than_two_separate_ones() -> None:
    """Of 200 examples 4 are lost: separate intervals cannot exclude a loss of 5 points, the paired one can."""
    full, frozen = runs_of(0.7, 0.7), runs_of(0.68, 0.68)
    change = score_changes([frozen, full], full, 0)
    frozen_score, full_score = (bootstrap_runs(runs, 0) for runs in (frozen, full))
    assert change.value[0] == pytest.approx(-0.02) == frozen_score.value - full_score.value
    assert frozen_score.low < full_score.high - 0.05 < frozen_score.high
    # The number of lost examples among 200 resampled ones is binomial.
    most, fewest = binom(200, 0.02).ppf([0.975, 0.025]) / 200
    assert (change.low[0], change.high[0]) == pytest.approx((-most, -fewest), abs=1 / 200)
    assert change.low[0] > -0.05 and change.high[0] < 0
    assert change.low[1] == change.high[1] == 0


def test_independent_runs_gain_nothing_from_pairing() -> None:
    generator = np.random.default_rng(0)
    first, second = ([Counts((generator.random(400) < 0.7).astype(float), np.ones(400))] for _ in range(2))
    change = score_changes([first], second, 0)
    assert change.high[0] - change.low[0] == pytest.approx(2 * 1.96 * np.sqrt(2 * 0.21 / 400), rel=0.15)
    assert change.low[0] < 0 < change.high[0]


def test_different_seeds_widen_the_interval_of_a_change() -> None:
    """One seed gains what the other loses, which is uncertain however many examples there are."""
    full = runs_of(0.5, 0.5, n_examples=2000)
    equal, unequal = (
        score_changes([runs_of(*accuracies, n_examples=2000)], full, 0) for accuracies in ((0.5, 0.5), (0.3, 0.7))
    )
    assert equal.high[0] - equal.low[0] < 0.01
    assert unequal.value[0] == pytest.approx(0) and unequal.low[0] < -0.15 and unequal.high[0] > 0.15


def test_models_without_layers_and_corpora_without_labels_are_refused() -> None:
    with pytest.raises(Refusal, match="no transformer layers"):
        run(order_matters(24), model="random-vectors:8")
    corpus = order_matters(24)
    with pytest.raises(Refusal, match="token needs"):
        run(replace(corpus, examples=tuple(replace(example, label=None) for example in corpus)))


def test_a_task_that_nobody_learns_is_said_first_and_not_judged() -> None:
    """With a learning rate of almost 0 every number of frozen layers scores the same: no reason to freeze them."""
    inputs = RunInputs(order_matters(60), load("tiny"))
    result = run_analysis(LAYER_FREEZING, inputs, OPTIONS | {"learning_rate": 1e-9, "epochs": 1})
    assert isinstance(result.data, Curve)
    assert (result.data.measures[f"change in score ({FROZEN})"].value == 0).all()
    assert result.headline()[0].startswith(
        "Nothing learnt that could be lost: the model with all layers trained scores"
    )
    claim = next(claim for claim in all_claims() if claim.id == "freezing-two-thirds")
    verdict = judge(claim, {"": result})
    assert verdict.outcome == "not applicable" and verdict.obstacle.startswith("Nothing learnt")
