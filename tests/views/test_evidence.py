"""Results beside a view: labels with their evidence, arcs over the same words, and what is told of the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertology
from bertology.corpus.corpus import Item
from bertology.corpus.sentence import ROOT, Sentence, spell
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import Arc, ArcDiagram, Arcs, HeadGrid, LayerCurve, Shape, Table
from bertology.views.payload import HeadLabel, Run

WORDS = ("The", "strawberries", "are", "here", ".")
HEADS = (1, 3, 3, ROOT, 3)
RELATIONS = ("det", "nsubj", "cop", "root", "punct")


def annotated() -> Sentence:
    text, offsets = spell(WORDS)
    return Sentence(words=WORDS, text=text, offsets=offsets, heads=HEADS, relations=RELATIONS)


def result(analysis: str, data: Shape, model: str = "tiny") -> Result:
    inputs = {"recording": {"model": {"name": model, "fingerprint": load(model).fingerprint}}}
    return Result(analysis=analysis, version=1, options={}, inputs=inputs, n=9, data=data, provenance={})


def about(value: Any, spread: float = 0.05) -> Estimates:
    array = np.asarray(value, np.float64)
    return Estimates(value=array, low=array - spread, high=array + spread, n=np.full(array.shape, 30))


def patterns() -> Result:
    """1-2 looks at the next word, 2-4 at the previous; 1-1 does more than chance, but not surely."""
    own, chance = np.full((2, 4), 0.1), about(np.full((2, 4), 0.1))
    following, before = own.copy(), own.copy()
    following[0, 1], before[1, 3], following[0, 0] = 0.8, 0.7, 0.15
    measures = {"next word": about(following), "previous word": about(before)}
    return result(
        "attention/patterns", HeadGrid(measures=measures, baselines={"even": dict.fromkeys(measures, chance)})
    )


def functions() -> Result:
    """Rows are heads; the second was nominated and not confirmed."""
    notes = {"1-2": "positional: next word | shown 1: a b c", "2-1": "no function found; nearest to syntactic: obj"}
    measures = {"score": about([0.9, 0.9])}
    table = Table(
        measures=measures, baselines={"baseline": {"score": about([0.1, 0.1])}}, rows_named=("1-2", "2-1"), notes=notes
    )
    return result("heads/functions", table)


def dependency() -> Result:
    """Rows are relations, whose notes name a head: one passes its test, one does not, one had too few cases."""
    notes = {
        "nsubj": "held out 2-3 dependent to head; best 2-2 dependent to head, 9 of 10 cases",
        "det": "held out 1-1 head to dependent; best 1-1 head to dependent, 8 of 10 cases",
        "iobj": "too few: 2 cases",
    }
    measures = {"held-out accuracy": about([0.8, 0.8, np.nan]), "p": Estimates.exact([0.001, 0.2, np.nan])}
    level = {"p": Estimates.exact([0.05] * 3)}
    baselines = {"best fixed offset": {"held-out accuracy": about([0.3, 0.3, np.nan])}, "level": level}
    return result(
        "heads/dependency", Table(measures=measures, baselines=baselines, rows_named=tuple(notes), notes=notes)
    )


def probe() -> Result:
    """The first edge is gold, the second is not; the second sentence is another one."""
    gold = tuple(Arc(start=head, end=word) for word, head in enumerate(HEADS) if head != ROOT)
    found = (Arc(start=0, end=1, weight=0.9), Arc(start=0, end=3, weight=1.4))
    other = ArcDiagram(words=("Other",), arcs=())
    return result("probes/structural", Arcs(sentences=(other, ArcDiagram(words=WORDS, arcs=found, gold=gold))))


def curve() -> Result:
    one = {"m": about([0.1, 0.2])}
    return result("attention/entropy", LayerCurve(measures=one, baselines={"b": one}))


def first_run(**given: Any) -> Run:
    return bertology.view("tiny", annotated(), **given).payload.runs[0]


def named(labels: list[HeadLabel]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in labels:
        found.setdefault(f"{one.layer + 1}-{one.head + 1}", []).append(one.label)
    return found


def test_heads_clearly_above_their_baselines_are_labelled() -> None:
    labels = first_run(results=patterns()).labels
    assert named(labels) == {"1-2": ["next word"], "2-4": ["previous word"]}
    assert labels[0].evidence == "0.8 [0.75, 0.85], n = 30; even 0.1; attention/patterns"


def test_tables_of_heads_and_of_relations_label_heads() -> None:
    labels = first_run(results=[dependency(), functions()]).labels
    assert named(labels) == {"1-2": ["positional: next word"], "2-3": ["nsubj, dependent to head"]}
    assert "held-out accuracy 0.8 [0.75, 0.85]" in labels[1].evidence and "best fixed offset 0.3" in labels[1].evidence


def test_the_surest_analysis_comes_first_and_own_labels_before_all() -> None:
    labels = first_run(results=[patterns(), functions()], labels={"1-2": "mine (I looked)"}).labels
    assert named(labels)["1-2"] == ["mine", "positional: next word", "next word"]


def test_an_analysis_labels_heads_of_a_real_model() -> None:
    corpus = bertology.read_text("The cat sat on the mat.", "It is here.", "We like red roses.", "They came home late.")
    found = bertology.run("attention/patterns", "mini", corpus)
    labels = named(bertology.view("mini", "The cat sat.", results=found).payload.runs[0].labels)
    assert labels["3-8"] == ["previous word"] and labels["3-3"] == ["next word"]


def test_gold_arcs_come_with_an_annotated_text() -> None:
    (tree,) = first_run().trees
    assert tree.directed and [(arc.start, arc.end, arc.label) for arc in tree.arcs] == [
        (0, 1, "det"), (1, 3, "nsubj"), (2, 3, "cop"), (4, 3, "punct"),
    ]  # fmt: skip
    item = Item((annotated(), annotated()), "pair")
    assert [(arc.start, arc.end) for arc in bertology.view("tiny", item).payload.runs[0].trees[0].arcs][4] == (5, 6)
    assert bertology.view("tiny", "The strawberries are here.").payload.runs[0].trees == []


def test_arcs_of_a_probe_are_those_over_the_same_words() -> None:
    gold, found = first_run(results=probe()).trees
    assert not found.directed and [(arc.start, arc.end) for arc in found.arcs] == [(0, 1), (0, 3)]
    assert "1 of 2 edges are among the 4 gold ones" in found.about and gold.name == "gold"
    told = bertology.view("tiny", "Something else.", results=[probe(), patterns()]).payload.notes
    assert told == ["No arcs are shown: the results have none for exactly these words."]


def test_what_has_no_use_is_told() -> None:
    of_another = result("heads/functions", functions().data, "random:tiny@7")
    made = bertology.view("tiny", annotated(), results=[patterns(), of_another, curve()])
    assert "another model than tiny: heads/functions" in made.payload.notes[0]
    assert "neither label heads nor draw arcs: attention/entropy" in made.payload.notes[1]
    with pytest.raises(Refusal, match="None of the 1 results can be shown"):
        bertology.view("tiny", annotated(), results=of_another)


def test_a_folder_of_results_is_read(tmp_path: Path) -> None:
    for place, one in enumerate((patterns(), probe())):
        (tmp_path / f"{place}.json").write_text(json.dumps(one.to_json()), "utf-8")
    run = first_run(results=tmp_path)
    assert len(run.labels) == 2 and len(run.trees) == 2
    (tmp_path / "bad.json").write_text("{}", "utf-8")
    with pytest.raises(Refusal, match=r"bad\.json holds no result"):
        first_run(results=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refusal, match=r"no \.json file"):
        first_run(results=str(tmp_path / "empty"))
