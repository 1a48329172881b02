"""Answers from counts of correct predictions have the scores of their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

import planted_features
import planted_heads
from attackable import bag_of_words_classifier
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Curve, Table
from planted_tasks import planted_corpus


def run(name: str, inputs: RunInputs, **options: Any) -> Any:
    return run_analysis(registry.get(name), inputs, options).data


def select(answers: list[Answer], **condition: object) -> list[Answer]:
    selected = [a for a in answers if all(a[name] == value for name, value in condition.items())]
    assert selected
    return selected


def pooled(answers: list[Answer]) -> float:
    """The score: what is correct of all that is counted."""
    return sum(a["correct"] * a["total"] for a in answers) / sum(a["total"] for a in answers)


def mean_over_runs(answers: list[Answer]) -> float:
    return float(np.mean([pooled(select(answers, run=number)) for number in {a["run"] for a in answers}]))


def test_answers_of_layer_freezing_have_its_scores() -> None:
    inputs = RunInputs(planted_corpus("sentence", 32), load("tiny"))
    data = run("interventions/layer_freezing", inputs, epochs=1, n_seeds=2, batch_size=8)
    assert isinstance(data, Curve)
    answers = data.answers()
    for name in ("first k layers frozen", "first k layers only"):
        for number, layers in enumerate(data.x.tolist()):
            found = mean_over_runs(select(answers, series=MODEL_SERIES, condition=name, layers=layers))
            assert found == pytest.approx(data.measures[f"score ({name})"].value[number], abs=1e-6)
    for name in ("all layers trained", "majority class", "untrained model"):
        expected = data.baselines[name]["score (first k layers frozen)"].value[0]
        assert mean_over_runs(select(answers, series=name)) == pytest.approx(expected, abs=1e-6)


def test_answers_of_unanswerable_training_have_its_scores() -> None:
    inputs = RunInputs(planted_corpus("choice", 24), load("tiny"))
    options = {"epochs": 1, "n_seeds": 2, "batch_size": 8, "corruptions": "P-Shuffle"}
    data = run("interventions/unanswerable_training", inputs, **options)
    assert isinstance(data, Table)
    answers = data.answers()
    for number, row in enumerate(data.row_names):
        found = mean_over_runs(select(answers, series=MODEL_SERIES, row=row))
        assert found == pytest.approx(data.measures["score"].value[number], abs=1e-6)
    for name in ("majority class", "longest option", "chance", "untrained model"):
        expected = data.baselines[name]["score"].value[0]
        assert mean_over_runs(select(answers, series=name)) == pytest.approx(expected, abs=1e-6)


def test_answers_of_head_pruning_have_the_scores_of_each_step() -> None:
    encoder, corpus = planted_heads.ranked_heads()
    data = run("interventions/head_pruning", RunInputs(corpus, encoder), rank_by="gradient,random", n_random_orders=2)
    assert isinstance(data, Curve)
    answers = data.answers()
    for order in ("gradient", "random"):
        for number, left in enumerate(data.x.tolist()):
            found = np.mean([a["correct"] for a in select(answers, **{"condition": order, "heads left": left})])
            assert found == pytest.approx(data.measures[f"score ({order})"].value[number], abs=1e-6)
    found = np.mean([a["correct"] for a in select(answers, condition="all heads")])
    assert found == pytest.approx(data.baselines["all heads"]["score (random)"].value[0], abs=1e-6)


def test_answers_of_word_substitution_have_its_accuracies() -> None:
    inputs = RunInputs(planted_corpus("sentence", 8, seed=5), bag_of_words_classifier())
    data = run("interventions/word_substitution", inputs, min_cosine=-1.0, min_similarity=-1.0, same_pos=False)
    assert isinstance(data, Table)
    answers, measure = data.answers(), "accuracy under attack"
    for row, name in enumerate(data.row_names):
        label = {} if name == "all examples" else {"gold": name}
        for series in (MODEL_SERIES, "clean input", "random edits (same amount)"):
            estimates = data.measures if series == MODEL_SERIES else data.baselines[series]
            found = np.mean([a["correct"] for a in select(answers, series=series, **label)])
            assert found == pytest.approx(estimates[measure].value[row], abs=1e-6)
    attacked = select(answers, series=MODEL_SERIES)
    clean = {a["item"]: a["correct"] for a in select(answers, series="clean input")}
    queries = [a["queries"] for a in attacked if clean[a["item"]]]
    assert np.mean(queries) == pytest.approx(data.measures["queries"].value[0], abs=1e-6)
    assert all(bool(a["edits"]) for a in attacked if clean[a["item"]] and not a["correct"])


def test_answers_of_feature_comparisons_have_the_score_of_each_feature() -> None:
    inputs = RunInputs(planted_features.entities(ambiguous=True), load("tiny"))
    features = "call:planted_features:identity,call:planted_features:noise"
    data = run("features/comparison", inputs, features=features, n_seeds=2)
    assert isinstance(data, Table)
    answers, measure = data.answers(), "score (linear)"
    for number, row in enumerate(data.row_names):
        found = pooled(select(answers, series=MODEL_SERIES, row=row, classifier="linear"))
        assert found == pytest.approx(data.measures[measure].value[number], abs=1e-6)
    for name in ("most frequent label of the word", "untrained model"):
        assert pooled(select(answers, series=name)) == pytest.approx(data.baselines[name][measure].value[0], abs=1e-6)


def test_answers_of_the_diagnostic_set_have_its_correlations() -> None:
    inputs = RunInputs(load_corpus("diagnostic"), load("tiny"))
    data = run("features/glue_diagnostic", inputs, features="static,random", n_seeds=2)
    assert isinstance(data, Table)
    answers = data.answers()
    for number, row in enumerate(data.row_names):
        for series, measures in ((MODEL_SERIES, data.measures), ("hypothesis only", data.baselines["hypothesis only"])):
            for classifier in ("static", "random"):
                expected = float(measures[classifier].value[number])
                selected = select(answers, series=series, row=row, classifier=classifier)
                found = matthews_corrcoef([a["gold"] for a in selected], [a["prediction"] for a in selected])
                assert not np.isfinite(expected) or found == pytest.approx(expected, abs=1e-6)
