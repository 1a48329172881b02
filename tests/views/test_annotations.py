"""Results as annotations: head labels with evidence, arcs over the same words, notes on results without use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertology
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT, Sentence
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.results.illustrations import Arc, ArcDiagram, Arcs
from bertology.results.result import Result
from bertology.results.shapes import HeadGrid, LayerCurve, Shape, Table
from bertology.views.head_labels import labels_from_results
from bertology.views.payload import HeadLabel, ModelRun
from views.annotated_sentences import annotated_sentence

WORDS = ("The", "strawberries", "are", "here", ".")
GOVERNORS = (1, 3, 3, ROOT, 3)
RELATIONS = ("det", "nsubj", "cop", "root", "punct")


def sentence() -> Sentence:
    return annotated_sentence(WORDS, GOVERNORS, RELATIONS)


def result(analysis: str, data: Shape, model: str = "tiny") -> Result:
    inputs = {"model": {"model": {"name": model, "fingerprint": load(model).fingerprint}}}
    return Result(analysis=analysis, version=1, options={}, inputs=inputs, n=9, data=data, provenance={})


def estimates(value: Any, half_width: float = 0.05) -> Estimates:
    array = np.asarray(value, np.float64)
    return Estimates(value=array, low=array - half_width, high=array + half_width, n=np.full(array.shape, 30))


def word_patterns() -> Result:
    """1-2 attends to the next word, 2-4 to the previous; 1-1 is clearly above the baseline, but weak."""
    low, baseline = np.full((2, 4), 0.1), estimates(np.full((2, 4), 0.1))
    following, previous = low.copy(), low.copy()
    following[0, 1], previous[1, 3], following[0, 0] = 0.8, 0.7, 0.4
    measures = {"next word": estimates(following), "previous word": estimates(previous)}
    baselines = {"uniform attention": dict.fromkeys(measures, baseline)}
    return result("attention/word_patterns", HeadGrid(measures=measures, baselines=baselines))


def functions() -> Result:
    """Rows are heads; the second has no confirmed function, the third is right in a third of the cases."""
    table = Table(
        measures={"score": estimates([0.92, 0.9, 0.33])},
        baselines={"best other": {"score": estimates([0.1, 0.1, 0.1])}},
        row_names=("1-2", "2-1", "2-2"),
        attributes={
            "head": ("1-2", "2-1", "2-2"),
            "function": ("next word", None, "conj, dependent to governor"),
            "function_kind": ("positional", None, "syntactic"),
        },
    )
    return result("heads/functions", table)


def dependency() -> Result:
    """Rows are relations: of five, only the first is strong, significant and mostly won by the same head."""
    measures = {
        "accuracy (held out)": estimates([0.8, 0.8, np.nan, 0.45, 0.8]),
        "p (Holm)": Estimates.exact([0.001, 0.2, np.nan, 0.001, 0.001]),
    }
    baselines = {
        "best fixed offset": {"accuracy (held out)": estimates([0.3, 0.3, np.nan, 0.3, 0.3])},
        "significance level": {"p (Holm)": Estimates.exact([0.05] * 5)},
    }
    attributes = {
        "head": ("2-3", "1-1", None, "1-2", "1-3"),
        "direction": ("dependent to governor", "governor to dependent", None, *["dependent to governor"] * 2),
        "chosen_in": (0.9, 0.9, None, 0.9, 0.3),
    }
    names = ("nsubj", "det", "iobj", "conj", "obj")
    table = Table(measures=measures, baselines=baselines, row_names=names, attributes=attributes)
    return result("heads/dependency", table)


def structural_probe() -> Result:
    """The first edge is gold, the second is not; the other sentence has other words."""
    gold = tuple(Arc(start=governor, end=word) for word, governor in enumerate(GOVERNORS) if governor != ROOT)
    predicted = (Arc(start=0, end=1, weight=0.9), Arc(start=0, end=3, weight=1.4))
    other_sentence = ArcDiagram(words=("Other",), arcs=())
    return result(
        "probes/structural", Arcs(sentences=(other_sentence, ArcDiagram(words=WORDS, arcs=predicted, gold=gold)))
    )


def entropy_curve() -> Result:
    measures = {"m": estimates([0.1, 0.2])}
    return result("attention/entropy", LayerCurve(measures=measures, baselines={"b": measures}))


def first_run(**arguments: Any) -> ModelRun:
    return bertology.view("tiny", sentence(), **arguments).payload.runs[0]


def labels_by_head(labels: list[HeadLabel]) -> dict[str, list[str]]:
    by_head: dict[str, list[str]] = {}
    for label in labels:
        score = "" if label.score is None else f" {label.score:.2f}"
        by_head.setdefault(f"{label.layer + 1}-{label.head + 1}", []).append(label.label + score)
    return by_head


def test_heads_that_meet_the_criterion_are_labelled_with_their_score() -> None:
    labels = first_run(results=word_patterns()).labels
    assert labels_by_head(labels) == {"1-2": ["next word 0.80"], "2-4": ["previous word 0.70"]}
    assert labels[0].evidence == "80 % [75, 85], n = 30; uniform attention 10 %; attention/word_patterns"
    assert labels[0].effect == pytest.approx(0.7) and labels[0].citations == ["vig2019deconstructing"]


def test_tables_label_the_heads_of_their_rows() -> None:
    labels = first_run(results=[dependency(), functions()]).labels
    assert labels_by_head(labels) == {"1-2": ["next word 0.92"], "2-3": ["subject → verb 0.80"]}
    assert "80 % [75, 85]" in labels[1].evidence and "best fixed offset 30 %" in labels[1].evidence


def test_labels_are_ordered_by_declared_rank_after_those_of_the_user() -> None:
    labels = first_run(results=[word_patterns(), functions()], labels={"1-2": "mine (seen)"}).labels
    assert labels_by_head(labels)["1-2"] == ["mine", "next word 0.92"], "of equal labels the first stays"


def test_a_table_without_heads_labels_none() -> None:
    table = dependency().data
    assert isinstance(table, Table)
    without = result("heads/dependency", table.model_copy(update={"attributes": {}}))
    with pytest.raises(Refusal, match="None of the 1 results can be shown"):
        first_run(results=without)


def test_an_analysis_labels_heads_of_a_trained_model() -> None:
    texts = ("The cat sat on the mat.", "It is here.", "We like red roses.", "They came home late.", "I saw old trees.")
    patterns = bertology.run("attention/word_patterns", "mini", bertology.corpus(texts))
    payload = bertology.view("mini", "The cat sat.", results=patterns).payload
    labels = labels_by_head(payload.runs[0].labels)
    assert any("previous" in label for label in labels["3-8"]) and any("next" in label for label in labels["3-3"])
    assert len(labels) < 20
    labelling = payload.runs[0].labelling
    assert f"{len(labels)} of 64 heads are labelled" in labelling
    assert "at least 0.5 and 2 times the highest baseline (next word, previous word)" in labelling


def test_no_head_of_an_untrained_model_is_labelled() -> None:
    corpus = load_corpus("english", limit=40)
    results = [bertology.run(name, "random:mini@3", corpus) for name in ("heads/functions", "attention/word_patterns")]
    assert labels_from_results(results, 8, 8) == []


def test_an_annotated_text_has_gold_arcs() -> None:
    (tree,) = first_run().trees
    assert tree.directed and [(arc.start, arc.end, arc.label) for arc in tree.arcs] == [
        (0, 1, "det"), (1, 3, "nsubj"), (2, 3, "cop"), (4, 3, "punct"),
    ]  # fmt: skip
    pair = Example((sentence(), sentence()), "pair")
    assert [(arc.start, arc.end) for arc in bertology.view("tiny", pair).payload.runs[0].trees[0].arcs][4] == (5, 6)
    assert bertology.view("tiny", "The strawberries are here.").payload.runs[0].trees == []


def test_predicted_arcs_are_those_over_the_same_words() -> None:
    gold, predicted = first_run(results=structural_probe()).trees
    assert not predicted.directed and [(arc.start, arc.end) for arc in predicted.arcs] == [(0, 1), (0, 3)]
    assert "1 of 2 edges are among the 4 gold edges" in predicted.description and gold.name == "gold"
    payload = bertology.view("tiny", "Something else.", results=[structural_probe(), word_patterns()]).payload
    assert payload.notes == ["No arcs are shown: the results have none for exactly these words."]
    assert payload.runs[0].labelling.startswith("2 of 8 heads are labelled (")


def test_ignored_results_are_noted() -> None:
    of_other_model = result("heads/functions", functions().data, "random:tiny@7")
    notes = bertology.view("tiny", sentence(), results=[word_patterns(), of_other_model, entropy_curve()]).payload.notes
    assert "another model than tiny: heads/functions" in notes[0]
    assert "have neither heads nor arcs: attention/entropy" in notes[1]
    with pytest.raises(Refusal, match="None of the 1 results can be shown"):
        bertology.view("tiny", sentence(), results=of_other_model)


def test_a_folder_of_results_is_read(tmp_path: Path) -> None:
    for number, stored in enumerate((word_patterns(), structural_probe())):
        (tmp_path / f"{number}.json").write_text(json.dumps(stored.to_json()), "utf-8")
    run = first_run(results=tmp_path)
    assert len(run.labels) == 2 and len(run.trees) == 2
    (tmp_path / "bad.json").write_text("{}", "utf-8")
    with pytest.raises(Refusal, match=r"bad\.json is not a result"):
        first_run(results=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refusal, match=r"no \.json file"):
        first_run(results=str(tmp_path / "empty"))
