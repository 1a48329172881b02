"""Answers: one record per item, equal to the scores of the result, written as CSV or JSON lines."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import planted
import planted_probes
import planted_senses
from bertology.analyses import registry
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.answers import Answer
from bertology.results.measured_shape import gain_measure
from bertology.results.result import Result
from bertology.results.shapes import Curve, LayerCurve, Table
from command import bertology


@pytest.fixture(scope="module")
def probe_result() -> Result:
    recording = planted_probes.make_recording(planted_probes.make_corpus(), planted_probes.tag, None)
    return run_analysis(registry.get("probes/word"), RunInputs(recording=recording), {"n_seeds": 2})


def mean_correct(answers: list[Answer], **condition: object) -> float:
    selected = [a["correct"] for a in answers if all(a[name] == value for name, value in condition.items())]
    return float(np.mean(selected))


def test_answers_of_probes_have_the_accuracy_of_the_result(probe_result: Result) -> None:
    answers = probe_result.answers()
    assert isinstance(probe_result.data, LayerCurve)
    for layer, accuracy in enumerate(probe_result.data.measures["accuracy"].value):
        assert mean_correct(answers, series="model", layer=layer) == pytest.approx(accuracy)
    for name in ("majority class", "control task"):
        expected = probe_result.data.baselines[name]["accuracy"].value[0]
        layer = 0 if name == "control task" else None
        assert mean_correct(answers, series=name, layer=layer) == pytest.approx(expected)
    items = {a["item"] for a in answers}
    assert len(items) == probe_result.data.sample["test examples"]
    assert all((a["gold"] == a["prediction"]) == bool(a["correct"]) for a in answers)


def test_answers_are_not_part_of_the_json(probe_result: Result) -> None:
    data = probe_result.to_json()
    assert "answers" not in json.dumps(data)
    assert Result.from_json(data).answers() == []


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_files_have_one_record_per_answer(probe_result: Result, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"answers{suffix}"
    n = probe_result.save_answers(path)
    assert n == len(probe_result.answers())
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream)) if suffix == ".csv" else [json.loads(line) for line in stream]
    assert len(rows) == n
    assert {"item", "text", "series", "layer", "gold", "prediction", "correct"} <= set(rows[0])


def test_unknown_suffixes_and_results_without_answers_are_refused(probe_result: Result, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="not a format of answers"):
        probe_result.save_answers(tmp_path / "answers.xlsx")
    with pytest.raises(Refusal, match="no answers"):
        Result.from_json(probe_result.to_json()).save_answers(tmp_path / "answers.csv")


def test_a_view_without_answers_is_refused_before_it_is_computed(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    arguments = ("run", "heads/dependency", "--model", "tiny", "--corpus", "english", "--limit", "30")
    refused = bertology(*arguments, "--show", "heads", "--answers", str(path))
    assert refused.status == 2 and "Add --show relations" in refused.err and not path.exists()
    completed = bertology(*arguments, "--answers", str(path))
    assert completed.status == 0, completed.err
    assert "correct (held out)" in path.read_text("utf-8").splitlines()[0]


def test_answers_of_senses_have_the_accuracy_of_the_result() -> None:
    recording = planted_senses.recording(planted_senses.corpus(), None, planted_senses.sense_direction, noise=1.0)
    result = planted_senses.run("senses/disambiguation", recording)
    assert isinstance(result.data, LayerCurve)
    for layer, accuracy in enumerate(result.data.measures["accuracy"].value):
        answers = result.answers()
        assert mean_correct(answers, series="model", representation=f"layer {layer}") == pytest.approx(accuracy)


@pytest.mark.parametrize("name", ["probes/subject_verb_agreement", "probes/minimal_pairs"])
def test_answers_of_pairs_have_the_accuracy_of_the_result(name: str) -> None:
    inputs = RunInputs(load_corpus("generated:minimal_pairs@3:60"), load("tiny"), random_baseline=False)
    result = run_analysis(registry.get(name), inputs)
    assert isinstance(result.data, Table)
    answers = result.answers()
    if name == "probes/minimal_pairs":
        by_paradigm = {
            paradigm: mean_correct(answers, series="model", paradigm=paradigm)
            for paradigm in {answer["paradigm"] for answer in answers}
        }
        assert np.mean(list(by_paradigm.values())) == pytest.approx(result.data.measures["accuracy"].value[0])
        return
    for measure, estimates in result.data.measures.items():
        attractors = int(measure.split("(")[1].split()[0])
        for row, value in zip(result.data.row_names, estimates.value, strict=True):
            condition = {"series": "model", "row": row, "attractors": attractors}
            if attractors < 4 and np.isfinite(value):
                assert mean_correct(answers, **condition) == pytest.approx(value)


def test_answers_of_head_ablation_have_the_changes_of_the_result() -> None:
    inputs = RunInputs(load_corpus("english", limit=12), load("tiny"))
    result = run_analysis(registry.get("interventions/head_ablation"), inputs, {"ablate": "layer"})
    assert isinstance(result.data, LayerCurve)
    losses: dict[str, list[float]] = {}
    for answer in result.answers():
        losses.setdefault(answer["condition"], []).append(answer["loss"])
    intact, *ablated = [float(np.mean(values)) for values in losses.values()]
    changes = np.array(ablated) - intact
    np.testing.assert_allclose(changes, result.data.measures["change in loss"].value, atol=2e-4)


def weighted_correct(answers: list[Answer], **condition: object) -> float:
    selected = [a for a in answers if all(a[name] == value for name, value in condition.items())]
    return sum(a["correct"] * a["total"] for a in selected) / sum(a["total"] for a in selected)


def test_answers_of_probes_on_attention_have_the_scores_of_the_result() -> None:
    inputs = RunInputs(load_corpus("english", limit=60), load("tiny"))
    parsing = run_analysis(registry.get("heads/parsing_probe"), inputs, {"n_seeds": 2, "epochs": 3})
    relations = run_analysis(registry.get("heads/relation_probe"), inputs, {"n_seeds": 2, "min_examples": 10})
    assert isinstance(parsing.data, Table) and isinstance(relations.data, Table)
    answers = parsing.answers()
    for row, uas in zip(parsing.data.row_names, parsing.data.measures["UAS"].value, strict=True):
        assert mean_correct(answers, series="model", row=row) == pytest.approx(uas)
    for name, baseline in parsing.data.baselines_of("UAS").items():
        row = "attention" if name == "untrained model" else None
        assert mean_correct(answers, series=name, row=row) == pytest.approx(baseline.value[0])
    answers = relations.answers()
    gains = {gain_measure(name) for name in relations.data.measures}
    for features, accuracies in relations.data.measures.items():
        if features in gains:
            continue
        for row, accuracy in zip(relations.data.row_names[:2], accuracies.value[:2], strict=True):
            assert mean_correct(answers, series="model", features=features, row=row) == pytest.approx(accuracy)
    distance = relations.data.baselines["distance only"]["both directions"].value
    assert mean_correct(answers, series="distance only", row="relation exists") == pytest.approx(distance[0])
    assert all((a["gold"] == a["prediction"]) == bool(a["correct"]) for a in answers)


def test_answers_of_surface_cues_have_the_accuracy_of_the_result() -> None:
    result = run_analysis(
        registry.get("probes/surface_baselines"),
        RunInputs(load_corpus("tasks:bigram_shift:english", limit=60), load("tiny")),
    )
    assert isinstance(result.data, Table)
    for row, name in enumerate(result.data.row_names):
        for series, measures in {"model": result.data.measures, **result.data.baselines}.items():
            accuracy = measures["accuracy"].value[row]
            assert mean_correct(result.answers(), series=series, row=name) == pytest.approx(accuracy)


def test_answers_of_confusion_have_the_bits_of_the_result() -> None:
    inputs = RunInputs(load_corpus("generated:reflexives", limit=40), load("tiny"))
    result = run_analysis(registry.get("heads/antecedent_confusion"), inputs)
    assert isinstance(result.data, Table)
    answers = result.answers()
    for name, bits in zip(result.data.row_names, result.data.measures["confusion"].value, strict=True):
        selected = [a["confusion"] for a in answers if a["series"] == "model" and a["condition"] == name.split()[0]]
        assert np.mean(selected) == pytest.approx(bits)


def test_answers_of_head_functions_are_the_words_that_heads_choose() -> None:
    corpus = load_corpus("english", limit=40)
    recording = planted.make_recording(corpus, [[planted.offset_head(-1), planted.random_head(1)]])
    result = run_analysis(registry.get("heads/functions"), RunInputs(recording=recording))
    answers = [a for a in result.answers() if a["head"] == "1-1"]
    assert {a["function"] for a in answers} == {"previous word"}
    assert np.mean([a["correct"] for a in answers]) > 0.99
    words = corpus[0].segments[0].words
    first = next(a for a in answers if a["item"].endswith(":2-1") and a["word"] == words[1])
    assert (first["gold"], first["prediction"], first["predicted word"]) == (words[0], words[0], 1)


def test_answers_of_frozen_features_have_the_scores_of_the_result() -> None:
    inputs = RunInputs(load_corpus("english", limit=40), load("tiny"))
    curve = run_analysis(registry.get("features/learning_curves"), inputs, {"n_train_sizes": 2}).data
    assert isinstance(curve, Curve)
    answers = curve.answers()
    for index, size in enumerate(curve.x.tolist()):
        for feature in ("model", "static", "random"):
            score = weighted_correct(answers, series="model", feature=feature, **{"training examples": int(size)})
            assert score == pytest.approx(curve.measures[feature].value[index])
    gain = run_analysis(registry.get("features/context_gain"), inputs).data
    assert isinstance(gain, Table)
    units = {a["item"] for a in gain.answers()}
    assert len(units) == gain.sample["test entities"]
