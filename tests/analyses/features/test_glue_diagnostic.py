"""features/glue_diagnostic: planted relations are found in their category; task heads; baselines."""

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
from bertology.analyses.features.glue_diagnostic.analysis import (
    HELD_OUT,
    HYPOTHESIS_ONLY,
    MAJORITY,
    TASK_HEAD,
    ZERO,
    glue_diagnostic,
)
from bertology.analyses.features.glue_diagnostic.scores import ALL, WORD_OVERLAP, category_groups, matthews_by_group
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus, read
from bertology.corpus.readers.glue_diagnostic import CATEGORIES, LABELS
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.encoder.task_heads import add_task_head
from bertology.errors import Refusal
from bertology.results.shapes import Table

PLANTED = "call:planted_inference:vectors"


@pytest.fixture(scope="module")
def tiny() -> TaskEncoder:
    encoder = load("tiny")
    assert isinstance(encoder, TaskEncoder)
    return encoder


def run_table(encoder: Encoder, corpus: Corpus, **options: Any) -> Table:
    data = run_analysis(glue_diagnostic, RunInputs(corpus, encoder), options).data
    assert isinstance(data, Table)
    return data


@pytest.fixture
def planted_pairs(tmp_path: Path) -> tuple[Corpus, str]:
    train, test = tmp_path / "train.tsv", tmp_path / "test.tsv"
    train.write_text(planted_inference.training(120), "utf-8")
    test.write_text(planted_inference.diagnostic(25), "utf-8")
    return read(test), str(train)


def test_planted_relation_is_found_in_its_category(planted_pairs: tuple[Corpus, str], tiny: TaskEncoder) -> None:
    corpus, train = planted_pairs
    table = run_table(tiny, corpus, features=f"{PLANTED},random:6,random:6@1", train_corpus=train)
    assert table.row_names == (HELD_OUT, ALL, "logic", "knowledge")
    scores = table.measures[PLANTED]
    assert scores.low[0] > 0.8 and scores.low[2] > 0.8
    assert scores.low[3] < 0.2 and abs(scores.value[3]) < 0.3
    hypothesis_only = table.baselines[HYPOTHESIS_ONLY][PLANTED]
    np.testing.assert_array_less(np.abs(hypothesis_only.value), 0.3)
    difference = table.measures[f"{PLANTED} - random:6"]
    assert difference.low[2] > 0.5 and difference.low[2] > difference.high[3]
    random_difference = table.measures["random:6 - random:6@1"]
    assert (random_difference.low < 0.15).all() and (random_difference.high > -0.15).all()


def test_same_feature_twice_has_no_difference(planted_pairs: tuple[Corpus, str], tiny: TaskEncoder) -> None:
    corpus, train = planted_pairs
    table = run_table(tiny, corpus, features="static,static#0", train_corpus=train)
    difference = table.measures["static - static#0"]
    for values in (difference.value, difference.low, difference.high, table.baselines[ZERO]["static - static#0"].value):
        np.testing.assert_array_equal(values, 0)


def predict_categories(corpus: Corpus, categories: set[str]) -> list[str]:
    """Gold labels in these categories, else labels that are independent of them."""
    noise = islice(cycle(LABELS), len(corpus))
    groups = {
        index
        for group in category_groups(corpus.examples, subtypes=False)
        if group.name in categories
        for index in group.indices
    }
    return [
        str(example.label) if index in groups else predicted
        for index, (example, predicted) in enumerate(zip(corpus, noise, strict=True))
    ]


def test_predictions_correct_in_one_category_score_there_only() -> None:
    corpus = load_corpus("diagnostic")
    groups = category_groups(corpus.examples, subtypes=True)
    predicted = predict_categories(corpus, {"logic"})
    scores, _ = matthews_by_group(corpus.examples, {"a": [predicted]}, groups, seed=0)
    gold = [str(example.label) for example in corpus]
    for index, group in enumerate(groups):
        estimate = scores["a"][index]
        expected = matthews_corrcoef([gold[i] for i in group.indices], [predicted[i] for i in group.indices])
        np.testing.assert_allclose(estimate.value, expected, atol=1e-12)
        assert estimate.n == len(group.indices)
        if group.name.startswith("logic"):
            assert estimate.value == 1
        elif group.name in CATEGORIES:
            assert estimate.low < 0.1 and estimate.high < 0.5
        assert estimate.low <= estimate.value <= estimate.high


def test_few_hypotheses_have_no_narrow_interval() -> None:
    corpus = load_corpus("diagnostic")
    groups = category_groups(corpus.examples, subtypes=True)
    predictions = {"constant": [["neutral"] * len(corpus)], "gold": [[str(example.label) for example in corpus]]}
    scores, differences = matthews_by_group(corpus.examples, predictions, groups, seed=0)
    names = [group.name for group in groups]
    constant = scores["constant"][names.index("logic: Negation")]
    assert (constant.low, constant.value, constant.high) == (-1, 0, 1)
    difference = differences["constant - gold"][names.index("logic: Negation")]
    assert (difference.low, difference.value, difference.high) == (-2, -1, 2)
    assert (scores["gold"].low[names.index(ALL)], scores["constant"].high[names.index(ALL)]) == (1, 0)


def test_a_group_with_a_single_label_has_no_score() -> None:
    examples = [replace(example, label="neutral") for example in load_corpus("diagnostic", limit=6)]
    groups = category_groups(examples, subtypes=False)
    scores, _ = matthews_by_group(examples, {"a": [["neutral"] * 6]}, groups, seed=0)
    assert np.isnan(scores["a"].value).all() and (scores["a"].n == 0).all()


def class_logits(encoder: TaskEncoder, corpus: Corpus) -> Any:
    """(pair, class) logits of the transformers model, one pair at a time."""
    with torch.inference_mode():
        inputs = [
            encoder.hf_tokenizer(premise.text, hypothesis.text, return_tensors="pt")
            for premise, hypothesis in (example.segments for example in corpus)
        ]
        return np.concatenate([encoder.model(**pair).logits.numpy() for pair in inputs])


def test_a_fine_tuned_task_head_is_evaluated_without_training(tiny: TaskEncoder) -> None:
    order = ("neutral", "contradiction", "entailment")
    encoder, without_names = (
        add_task_head(tiny, "label", names, variant=LayerVariant(), seed=1)
        for names in (order, ("LABEL_0", "LABEL_1", "LABEL_2"))
    )
    corpus = load_corpus("diagnostic", limit=60)
    logits = class_logits(encoder, corpus)
    with torch.no_grad():
        # A new task head predicts one class for all pairs; after centring its bias it predicts all three.
        for model in (encoder.model, without_names.model):
            model.classifier.bias -= torch.from_numpy(logits.mean(0))
    predicted = [order[class_id] for class_id in class_logits(encoder, corpus).argmax(1)]
    assert len(set(predicted)) == 3
    table = run_table(encoder, corpus, features="none")
    index = table.row_names.index(ALL)
    np.testing.assert_allclose(
        table.measures[TASK_HEAD].value[index],
        matthews_corrcoef([str(example.label) for example in corpus], predicted),
        atol=1e-9,
    )
    assert set(table.measures) == {TASK_HEAD}
    assert table.baselines[MAJORITY][TASK_HEAD].value[index] == 0
    # Each hypothesis occurs once with each label, and always gets the same prediction.
    np.testing.assert_allclose(table.baselines[HYPOTHESIS_ONLY][TASK_HEAD].value[index], 0, atol=1e-12)
    renamed = run_table(without_names, corpus, features="none", class_names=",".join(order))
    np.testing.assert_array_equal(renamed.measures[TASK_HEAD].value, table.measures[TASK_HEAD].value)


def test_every_feature_has_the_hypothesis_only_and_word_overlap_baselines(tiny: TaskEncoder) -> None:
    table = run_table(tiny, load_corpus("diagnostic", limit=60), train_corpus="generated:nli@1:60", n_seeds=2)
    for name in ("model", "static", "random"):
        assert {baseline for baseline, measures in table.baselines.items() if name in measures} == {
            MAJORITY,
            HYPOTHESIS_ONLY,
            WORD_OVERLAP,
        }
        np.testing.assert_allclose(table.baselines[HYPOTHESIS_ONLY][name].value[1:], 0, atol=1e-12)
    assert table.sample["training examples"] < 60 and table.sample["seeds"] == 2


def test_unsuitable_corpora_and_task_heads_are_refused(tiny: TaskEncoder, tmp_path: Path) -> None:
    corpus = load_corpus("diagnostic", limit=12)
    with pytest.raises(Refusal, match="--corpus diagnostic"):
        run_table(tiny, load_corpus("english", limit=5))
    with pytest.raises(Refusal, match="does not have the classes entailment"):
        run_table(tiny, corpus, features="none")
    other = add_task_head(tiny, "label", ("good", "bad"), variant=LayerVariant(), seed=1)
    with pytest.raises(Refusal, match="a model fine-tuned on inference"):
        run_table(other, corpus, features="none")
    with pytest.raises(Refusal, match="--class-names"):
        run_table(other, corpus, features="none", class_names="entailment,neutral,contradiction")
    unknown = replace(corpus, examples=tuple(replace(example, label="yes") for example in corpus))
    with pytest.raises(Refusal, match="'yes'"):
        run_table(tiny, unknown)
    path = tmp_path / "other.tsv"
    path.write_text("label\tpremise\thypothesis\n" + "".join(f"{n % 2}\tA {n}.\tB {n}.\n" for n in range(20)), "utf-8")
    with pytest.raises(Refusal, match="has the label"):
        run_table(tiny, corpus, train_corpus=str(path))


def test_pairs_too_long_for_the_task_head_are_skipped_and_counted(tiny: TaskEncoder, tmp_path: Path) -> None:
    encoder = add_task_head(tiny, "label", LABELS, variant=LayerVariant(), seed=1)
    rows = planted_inference.diagnostic(6) + f"\t\tNegation\t\tNews\t{'long ' * 600}\tb\tneutral\n"
    path = tmp_path / "test.tsv"
    path.write_text(rows, "utf-8")
    table = run_table(encoder, read(path), features="none")
    assert table.sample["long pairs skipped"] == 1
    assert table.measures[TASK_HEAD].n[table.row_names.index(ALL)] == 36
