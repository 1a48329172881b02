"""The diagnostic set: planted relations are found where they were planted, heads are asked as they are, chance is 0."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import matthews_corrcoef

import planted_inference
from bertology.analyses.meaning.diagnostic import ALIKE, ALONE, HEAD, LIKE, MAJORITY, diagnostic
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import read
from bertology.corpus.readers.diagnostic import CATEGORIES, LABELS
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.task_heads import with_head
from bertology.encoder.variant import Variant
from bertology.errors import Refusal
from bertology.measures.meaning.diagnostic_scores import ALL, SURFACE, correlations, groups_of
from bertology.results.shapes import Table

PLANTED = "call:planted_inference:vectors"


@pytest.fixture(scope="module")
def tiny() -> HuggingFaceEncoder:
    encoder = load("tiny")
    assert isinstance(encoder, HuggingFaceEncoder)
    return encoder


def table_of(encoder: Encoder, corpus: Corpus, **options: Any) -> Table:
    data = run(diagnostic, Subject(corpus, encoder), options).data
    assert isinstance(data, Table)
    return data


@pytest.fixture
def planted_pairs(tmp_path: Path) -> tuple[Corpus, str]:
    learnt, judged = tmp_path / "learn.tsv", tmp_path / "judge.tsv"
    learnt.write_text(planted_inference.training(120), "utf-8")
    judged.write_text(planted_inference.diagnostic(25), "utf-8")
    return read(judged), str(learnt)


def test_a_planted_relation_is_found_where_it_was_planted(
    planted_pairs: tuple[Corpus, str], tiny: HuggingFaceEncoder
) -> None:
    corpus, train = planted_pairs
    found = table_of(tiny, corpus, features=f"{PLANTED},random:6,random:6@1", train=train)
    assert found.rows_named == (LIKE, ALL, "logic", "knowledge")
    own = found.measures[PLANTED]
    assert own.low[0] > 0.8 and own.low[2] > 0.8
    assert own.low[3] < 0.2 and abs(own.value[3]) < 0.3
    alone = found.baselines[ALONE][PLANTED]
    np.testing.assert_array_less(np.abs(alone.value), 0.3)
    lead = found.measures[f"{PLANTED} - random:6"]
    assert lead.low[2] > 0.5 and lead.low[2] > lead.high[3]
    alike = found.measures["random:6 - random:6@1"]
    assert (alike.low < 0.15).all() and (alike.high > -0.15).all()


def test_the_same_feature_twice_is_exactly_alike(planted_pairs: tuple[Corpus, str], tiny: HuggingFaceEncoder) -> None:
    corpus, train = planted_pairs
    found = table_of(tiny, corpus, features="static,static#0", train=train)
    apart = found.measures["static - static#0"]
    for numbers in (apart.value, apart.low, apart.high, found.baselines[ALIKE]["static - static#0"].value):
        np.testing.assert_array_equal(numbers, 0)


def told_by(corpus: Corpus, right: set[str]) -> list[str]:
    """The truth in the categories named, else answers that have nothing to do with it."""
    noise = islice(cycle(LABELS), len(corpus))
    groups = {place for group in groups_of(corpus.items, finely=False) if group.name in right for place in group.places}
    return [
        str(item.label) if place in groups else said
        for place, (item, said) in enumerate(zip(corpus, noise, strict=True))
    ]


def test_answers_that_are_right_in_one_category_score_there_alone() -> None:
    corpus = corpus_named("diagnostic")
    groups = groups_of(corpus.items, finely=True)
    (found, _) = correlations(corpus.items, {"one": [told_by(corpus, {"logic"})]}, groups, seed=0)
    gold = [str(item.label) for item in corpus]
    for place, group in enumerate(groups):
        estimate = found["one"][place]
        said = told_by(corpus, {"logic"})
        expected = matthews_corrcoef([gold[p] for p in group.places], [said[p] for p in group.places])
        np.testing.assert_allclose(estimate.value, expected, atol=1e-12)
        assert estimate.n == len(group.places)
        if group.name.startswith("logic"):
            assert estimate.value == 1
        elif group.name in CATEGORIES:
            assert estimate.low < 0.1 and estimate.high < 0.5
        assert estimate.low <= estimate.value <= estimate.high


def test_few_hypotheses_have_no_narrow_interval() -> None:
    corpus = corpus_named("diagnostic")
    groups = groups_of(corpus.items, finely=True)
    constant = {"a": [["neutral"] * len(corpus)], "b": [[str(item.label) for item in corpus]]}
    found, apart = correlations(corpus.items, constant, groups, seed=0)
    place = [group.name for group in groups].index("logic: Negation")
    assert (found["a"].low[place], found["a"].value[place], found["a"].high[place]) == (-1, 0, 1)
    assert (apart["a - b"].low[place], apart["a - b"].value[place], apart["a - b"].high[place]) == (-2, -1, 2)
    whole = [group.name for group in groups].index(ALL)
    assert (found["b"].low[whole], found["a"].high[whole]) == (1, 0)


def test_a_group_of_one_label_has_no_number() -> None:
    items = [replace(item, label="neutral") for item in corpus_named("diagnostic", limit=6)]
    found, _ = correlations(items, {"a": [["neutral"] * 6]}, groups_of(items, finely=False), seed=0)
    assert np.isnan(found["a"].value).all() and (found["a"].n == 0).all()


def logits_of(encoder: HuggingFaceEncoder, corpus: Corpus) -> Any:
    """What transformers itself makes of each pair, one at a time."""
    with torch.inference_mode():
        shown = [encoder.tokenizer(a.text, b.text, return_tensors="pt") for a, b in (item.parts for item in corpus)]
        return np.concatenate([encoder.model(**one).logits.numpy() for one in shown])


def test_a_fine_tuned_head_is_asked_as_it_is(tiny: HuggingFaceEncoder) -> None:
    order = ("neutral", "contradiction", "entailment")
    encoder, named = (
        with_head(tiny, "label", names, variant=Variant(), seed=1)
        for names in (order, ("LABEL_0", "LABEL_1", "LABEL_2"))
    )
    corpus = corpus_named("diagnostic", limit=60)
    logits = logits_of(encoder, corpus)
    with torch.no_grad():
        # A fresh head says the same of everything until its bias is set so that every class is said of some.
        for model in (encoder.model, named.model):
            model.classifier.bias -= torch.from_numpy(logits.mean(0))
    said = [order[number] for number in logits_of(encoder, corpus).argmax(1)]
    assert len(set(said)) == 3
    found = table_of(encoder, corpus, features="none")
    place = found.rows_named.index(ALL)
    np.testing.assert_allclose(
        found.measures[HEAD].value[place], matthews_corrcoef([str(item.label) for item in corpus], said), atol=1e-9
    )
    assert set(found.measures) == {HEAD}
    assert found.baselines[MAJORITY][HEAD].value[place] == 0
    # Each hypothesis has each label once, and is told the same each time.
    np.testing.assert_allclose(found.baselines[ALONE][HEAD].value[place], 0, atol=1e-12)
    again = table_of(named, corpus, features="none", labels=",".join(order))
    np.testing.assert_array_equal(again.measures[HEAD].value, found.measures[HEAD].value)


def test_hypotheses_alone_and_shared_words_stand_beside_every_feature(tiny: HuggingFaceEncoder) -> None:
    found = table_of(tiny, corpus_named("diagnostic", limit=60), train="generated:nli@1:60", seeds=2)
    for name in ("model", "static", "random"):
        assert {baseline for baseline, own in found.baselines.items() if name in own} == {MAJORITY, ALONE, SURFACE}
        np.testing.assert_allclose(found.baselines[ALONE][name].value[1:], 0, atol=1e-12)
    assert "generated:nli@1:60" in found.notes[LIKE]


def test_what_cannot_be_asked_is_refused(tiny: HuggingFaceEncoder, tmp_path: Path) -> None:
    corpus = corpus_named("diagnostic", limit=12)
    with pytest.raises(Refusal, match="--corpus diagnostic"):
        table_of(tiny, corpus_named("english", limit=5))
    with pytest.raises(Refusal, match="does not tell entailment"):
        table_of(tiny, corpus, features="none")
    other = with_head(tiny, "label", ("good", "bad"), variant=Variant(), seed=1)
    with pytest.raises(Refusal, match="a model fine-tuned so"):
        table_of(other, corpus, features="none")
    with pytest.raises(Refusal, match="--labels"):
        table_of(other, corpus, features="none", labels="entailment,neutral,contradiction")
    strange = replace(corpus, items=tuple(replace(item, label="yes") for item in corpus))
    with pytest.raises(Refusal, match="'yes'"):
        table_of(tiny, strange)
    path = tmp_path / "other.tsv"
    path.write_text("label\tpremise\thypothesis\n" + "".join(f"{n % 2}\tA {n}.\tB {n}.\n" for n in range(20)), "utf-8")
    with pytest.raises(Refusal, match="label of"):
        table_of(tiny, corpus, train=str(path))


def test_pairs_that_are_too_long_for_the_head_are_left_out_and_told(tiny: HuggingFaceEncoder, tmp_path: Path) -> None:
    encoder = with_head(tiny, "label", LABELS, variant=Variant(), seed=1)
    rows = planted_inference.diagnostic(6) + f"\t\tNegation\t\tNews\t{'long ' * 600}\tb\tneutral\n"
    path = tmp_path / "judge.tsv"
    path.write_text(rows, "utf-8")
    found = table_of(encoder, read(path), features="none")
    assert "1 too long" in found.notes[ALL]
    assert found.measures[HEAD].n[found.rows_named.index(ALL)] == 36
