"""Shuffling words costs a bag of words nothing and a reader of word order everything; interrupted runs resume."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attackable import LABELS, bag_of_words_classifier, order_matters, word_order_classifier
from bertology.analyses import registry
from bertology.analyses.cache import FOLDER
from bertology.analyses.evaluation.evaluation import prepare_evaluation
from bertology.analyses.run import RunInputs, run_analysis
from bertology.analyses.text_attacks import runner as runner_module
from bertology.analyses.text_attacks.partial_scores import paired_score_drop
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.encoder.task_heads import TaskHeadName, add_task_head
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate
from bertology.estimates.metrics import Counts
from bertology.results.shapes import Table
from planted_tasks import planted_corpus

ATTACKS = registry.get("interventions/attacks")
SCORE, DROP = "score under attack", "score drop"
CHANGED, EDITED = "proportion of examples changed", "edit distance per word"
RANDOM_EDITS = "random edits (same amount)"
TASK_HEADS: dict[str, tuple[TaskHeadName, tuple[str, ...]]] = {
    "pair": ("label", LABELS),
    "qa": ("answer", ()),
    "choice": ("choice", ()),
    "token": ("token", LABELS),
}


def run(encoder: Encoder, corpus: Corpus, store: Path | None = None, **options: Any) -> Table:
    table = run_analysis(ATTACKS, RunInputs(corpus, encoder, store=store), options).data
    assert isinstance(table, Table)
    return table


def cell(table: Table, row: str, measure: str = DROP, baseline: str = "") -> Estimate:
    measures = table.baselines[baseline] if baseline else table.measures
    return measures[measure][table.row_names.index(row)]


def attribute(table: Table, row: str, name: str) -> Any:
    return table.attributes[name][table.row_names.index(row)]


def with_task_head(task: str) -> TaskEncoder:
    base = load("tiny")
    assert isinstance(base, TaskEncoder)
    task_head, labels = TASK_HEADS[task]
    return add_task_head(base, task_head, labels, variant=LayerVariant(), seed=3)


def test_a_bag_of_words_does_not_depend_on_word_order() -> None:
    table = run(bag_of_words_classifier(), planted_corpus("sentence", 60, seed=1))
    assert cell(table, "shuffled words", SCORE, "clean input").value > 0.95
    drop = cell(table, "shuffled words")
    assert drop.value == 0.0 and drop.low <= 0.0 <= drop.high and drop.n == 60
    assert cell(table, "shuffled words", CHANGED).value == 1.0
    # At least half of the words are replaced at random, often the good word.
    assert cell(table, "shuffled words", baseline=RANDOM_EDITS).low > 0.1
    edited = cell(table, "shuffled words", EDITED)
    assert edited == cell(table, "shuffled words", EDITED, RANDOM_EDITS) and edited.value > 0.6
    assert cell(table, "whitespace only (control)").n == 0
    answers = [answer for answer in table.answers() if answer["condition"] == "shuffled words"]
    assert len(answers) == 60
    assert np.mean([answer["correct"] for answer in answers]) == cell(table, "shuffled words", SCORE).value


def test_a_word_order_classifier_fails_on_shuffled_words() -> None:
    table = run(word_order_classifier(), order_matters(60, seed=1))
    assert cell(table, "shuffled words", SCORE, "clean input").value > 0.9
    assert cell(table, "shuffled words").low > 0.2
    assert cell(table, "shuffled words", SCORE).value < 0.7
    assert table.sample["examples"] == 60 == attribute(table, "shuffled words", "n_changed")
    assert attribute(table, "shuffled sentences", "n_changed") == 0 and cell(table, "shuffled sentences").n == 0


def test_each_kind_of_example_has_its_attacks() -> None:
    pairs = run(with_task_head("pair"), planted_corpus("pair", 12))
    assert {"second text only", "first text only", "shuffled first text"} <= set(pairs.row_names)
    questions = run(with_task_head("qa"), planted_corpus("qa", 12))
    assert {"question removed", "shuffled passage"} <= set(questions.row_names)
    assert "passage removed" not in questions.row_names
    choices = run(with_task_head("choice"), planted_corpus("choice", 12))
    assert {"passage removed", "options only", "AddSent2Pas-Shuffle", "AddAns2Opt"} <= set(choices.row_names)
    assert attribute(choices, "AddSent2Pas-Shuffle", "n_shuffles") == 12
    assert attribute(choices, "AddSent2Pas-Shuffle", "n_below_minimum") > 0
    assert attribute(choices, "AddAns2Opt", "mean_shuffle_distance") is None
    for table in (pairs, questions, choices):
        n = table.measures[SCORE].n[[row != "typos" for row in table.row_names]]
        assert set(n.tolist()) <= {0, 12}


def test_attacks_can_be_selected_and_unknown_ones_are_refused() -> None:
    table = run(bag_of_words_classifier(), planted_corpus("sentence", 10), attacks="typos, shuffled words")
    assert table.row_names == ("typos", "shuffled words")
    with pytest.raises(Refusal, match="AddAns2Pas"):
        run(with_task_head("choice"), planted_corpus("choice", 5), attacks="AddAns2Pas")
    with pytest.raises(Refusal, match="passage removed"):
        run(bag_of_words_classifier(), planted_corpus("sentence", 5), attacks="passage removed")
    with pytest.raises(Refusal, match="--shuffle-distance"):
        run(bag_of_words_classifier(), planted_corpus("sentence", 5), shuffle_distance=2.0)
    with pytest.raises(Refusal, match="token classifier"):
        run(with_task_head("token"), load_corpus("english", limit=5))


def test_an_interrupted_run_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, corpus = with_task_head("choice"), planted_corpus("choice", 8)
    expected = run(encoder, corpus)
    evaluate, calls = runner_module.evaluate_perturbed, list[int]()

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt
        return evaluate(*args, **options)

    monkeypatch.setattr(runner_module, "evaluate_perturbed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(encoder, corpus, tmp_path)
    n_cached = len(list((tmp_path / FOLDER).glob("*.json")))
    assert n_cached == 7  # the first call is without attack; of the fourth attack the random edits were missing
    assert run(encoder, corpus, tmp_path).model_dump_json() == expected.model_dump_json()
    assert len(calls) == 9 + 1 + len(list((tmp_path / FOLDER).glob("*.json"))) - n_cached


def test_chance_and_the_majority_class_are_baselines() -> None:
    corpus = planted_corpus("choice", 12)
    third = sentence_from_words(["king"])
    examples = [replace(example, segments=(*example.segments, third)) for example in corpus.examples[:6]]
    table = run(with_task_head("choice"), replace(corpus, examples=(*examples, *corpus.examples[6:])), attacks="typos")
    chance = table.baselines["chance"][SCORE]
    assert chance[0].value == pytest.approx((6 / 3 + 6 / 2) / 12) and chance[0].n == 12
    majority = max(Counter(example.label for example in corpus).values()) / 12
    assert table.baselines["majority class"][SCORE].value[0] == pytest.approx(majority)
    answers = run(with_task_head("qa"), planted_corpus("qa", 12), attacks="typos")
    assert "first words" in answers.baselines and not {"chance", "majority class"} & set(answers.baselines)


def test_a_model_that_has_learnt_nothing_is_named_first() -> None:
    untrained = run(with_task_head("pair"), planted_corpus("pair", 40), attacks="typos").reference
    assert untrained is not None and untrained.name == "clean input" and not untrained.is_above_baseline
    trained = run(bag_of_words_classifier(), planted_corpus("sentence", 40), attacks="typos").reference
    assert trained is not None and trained.is_above_baseline and trained.baseline == "majority class"


def test_long_and_renamed_examples_are_counted() -> None:
    corpus = planted_corpus("sentence", 20)
    long = replace(corpus[0], segments=(sentence_from_words(corpus[0].segments[0].words * 200),))
    numbered = [replace(example, label=str(int(example.label == "good"))) for example in (long, *corpus.examples[1:])]
    longer = replace(corpus, examples=tuple(numbered))
    sample = run(bag_of_words_classifier(), longer, attacks="typos").sample
    assert sample == {
        "examples": 20, "skipped examples": 0, "long examples truncated": 1,
        "examples labelled 0 (class bad)": 10, "examples labelled 1 (class good)": 10,
    }  # fmt: skip
    skipped = run(bag_of_words_classifier(), longer, attacks="typos", overflow="skip").sample
    assert skipped["examples"] == 19 and skipped["long examples skipped"] == 1 == skipped["skipped examples"]
    with pytest.raises(Refusal, match="--overflow skip or truncate"):
        run(bag_of_words_classifier(), longer, attacks="typos", overflow="error")


def test_answers_are_about_their_own_texts() -> None:
    """Examples are attacked in an order of their own; without a sample the evaluation has that of the corpus."""
    corpus = planted_corpus("sentence", 20)
    table = run(bag_of_words_classifier(), corpus, attacks="shuffled words", sample_size=0)
    answers = {answer["item"]: answer for answer in table.answers() if answer["condition"] == "clean input"}
    evaluation = prepare_evaluation(bag_of_words_classifier(), corpus)
    losses = evaluation.scores(bag_of_words_classifier().forward).losses
    for example, loss in zip(evaluation.examples, losses, strict=True):
        assert answers[example.id]["loss"] == pytest.approx(loss, abs=1e-5)
        assert answers[example.id]["text"] == example.segments[0].text


def test_score_drops_are_paired() -> None:
    ones, correct = np.ones(100), np.repeat([1.0, 0.0], 50)
    before, after = Counts(correct, ones), Counts(np.where(np.arange(100) < 10, 0.0, correct), ones)
    drop = paired_score_drop(before, after, seed=0)
    # Ten of a hundred are lost: examples that were wrong before add nothing to the error, as they would unpaired.
    assert drop.value == pytest.approx(0.1) and drop.n == 100
    assert drop.high - drop.low == pytest.approx(2 * 1.96 * np.sqrt(0.1 * 0.9 / 100), rel=0.2)
    assert paired_score_drop(before, Counts(correct, np.zeros(100)), seed=0).n == 0
    assert paired_score_drop(before, Counts(correct, np.where(np.arange(100) < 30, 1.0, 0.0)), seed=0).n == 30
