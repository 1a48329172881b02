"""Answers of probes have the scores of their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planted_probes
import planted_trees
from bertology.analyses import registry
from bertology.analyses.probes.edge import CUMULATIVE_SERIES
from bertology.analyses.probes.structural.scores import ROOT_ACCURACY, UUAS
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import LayerCurve, Matrix, Table


def run(name: str, recording: Recording, **options: Any) -> Any:
    return run_analysis(registry.get(name), RunInputs(recording=recording), options).data


def select(answers: list[Answer], **condition: object) -> list[Answer]:
    return [a for a in answers if all(a[name] == value for name, value in condition.items())]


def mean_correct(answers: list[Answer], field: str = "correct", **condition: object) -> float:
    return float(np.mean([a[field] for a in select(answers, **condition)]))


@pytest.fixture(scope="module")
def recording() -> Recording:
    return planted_probes.make_recording(planted_probes.make_corpus(), None, planted_probes.tag, noise=1.0)


def test_answers_of_edge_probes_have_both_accuracies(recording: Recording) -> None:
    data = run("probes/edge", recording, n_seeds=2)
    assert isinstance(data, LayerCurve)
    answers = data.answers()
    for measure, series in (("accuracy", MODEL_SERIES), ("cumulative accuracy", CUMULATIVE_SERIES)):
        for layer, expected in enumerate(data.measures[measure].value):
            assert mean_correct(answers, series=series, layer=layer) == pytest.approx(expected, abs=1e-6)


def test_answers_of_control_tasks_have_the_accuracies_of_each_probe(recording: Recording) -> None:
    data = run("probes/control_tasks", recording, probes="rank:1,linear", n_seeds=2)
    assert isinstance(data, Matrix)
    answers = data.answers()
    for measure, series in (("accuracy", MODEL_SERIES), ("control-task accuracy", "control task")):
        for layer in range(len(data.row_names)):
            for column, probe in enumerate(data.column_names):
                expected = data.measures[measure].value[layer, column]
                found = mean_correct(answers, series=series, layer=layer, probe=probe)
                assert found == pytest.approx(expected, abs=1e-6)
    expected = data.baselines["majority class"]["accuracy"].value[0, 0]
    assert mean_correct(answers, series="majority class") == pytest.approx(expected, abs=1e-6)


def test_answers_of_the_pipeline_have_the_accuracies_of_each_task(recording: Recording) -> None:
    data = run("probes/pipeline", recording, n_seeds=2)
    assert isinstance(data, Table)
    answers = data.answers()
    for number, row in enumerate(data.row_names):
        for measure, layer in (("accuracy (layer 0)", 0), ("accuracy (all layers)", 1)):
            expected = data.measures[measure].value[number]
            found = mean_correct(answers, row=row, series=MODEL_SERIES, layer=layer)
            assert found == pytest.approx(expected, abs=1e-6)


def test_answers_of_generalisation_name_the_word_each_layer_picks() -> None:
    inputs = RunInputs(load_corpus("generated:main_auxiliary@5:120"), load("tiny"))
    data = run_analysis(registry.get("probes/hierarchical_generalisation"), inputs).data
    assert isinstance(data, LayerCurve)
    answers = data.answers()
    for measure, estimates in data.measures.items():
        split = measure.removeprefix("accuracy (").removesuffix(")")
        for layer, expected in enumerate(estimates.value):
            found = mean_correct(answers, series=MODEL_SERIES, split=split, layer=layer)
            assert found == pytest.approx(expected, abs=1e-6)
            untrained = mean_correct(answers, series="untrained model", split=split, layer=layer)
            assert untrained == pytest.approx(data.baselines["untrained model"][measure].value[layer], abs=1e-6)
        chance = mean_correct(answers, series="chance", split=split)
        assert chance == pytest.approx(data.baselines["chance"][measure].value[0], abs=1e-6)
    assert len({a["item"] for a in answers}) == data.sample["test sentences"]


def test_answers_of_structural_probes_have_their_scores() -> None:
    corpus = planted_trees.short_sentences()
    recording = planted_trees.make_recording(corpus, planted_trees.noise_states, planted_trees.mapped_states)
    data = run("probes/structural", recording, n_seeds=2, epochs=5, batch_size=5)
    assert isinstance(data, LayerCurve)
    answers = data.answers()

    def scores(**condition: object) -> tuple[float, float]:
        selected = select(answers, **condition)
        uuas = sum(a["correct edges"] for a in selected) / sum(a["edges"] for a in selected)
        return uuas, float(np.mean([a["root correct"] for a in selected if a["root correct"] is not None]))

    for layer in range(2):
        uuas, root = scores(series=MODEL_SERIES, layer=layer)
        assert uuas == pytest.approx(data.measures[UUAS].value[layer], abs=1e-6)
        assert root == pytest.approx(data.measures[ROOT_ACCURACY].value[layer], abs=1e-6)
    for name in ("linear chain", "decayed embeddings"):
        assert scores(series=name)[0] == pytest.approx(data.baselines[name][UUAS].value[0], abs=1e-6)
