"""Tasks: encoding of long and irregular examples, scores of predictions, baselines, and inference of the task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.sentence import ROOT, Span, sentence_from_text, sentence_from_words
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.training.encoded_examples import IGNORE_INDEX, NO_TOKEN, pad_examples
from bertology.training.task_selection import build_task, infer_task, select_examples
from bertology.training.tasks.dependency_parsing import DependencyParsing
from bertology.training.tasks.multiple_choice import MultipleChoice
from bertology.training.tasks.question_answering import QuestionAnswering
from bertology.training.tasks.text_classification import TextClassification
from bertology.training.tasks.token_classification import TokenClassification
from planted_tasks import planted_corpus

TOKENISE = load("tiny").tokenise


def make_question(passage: str, *answers: tuple[int, int], question: str = "who was it") -> Example:
    answer_spans = tuple(Span(*answer) for answer in answers)
    segments = sentence_from_text(question), replace(sentence_from_text(passage), answer_spans=answer_spans)
    return Example(segments, "question", "answerable")


def test_the_windows_of_a_long_passage_cover_every_word() -> None:
    words = ["the", "cat", "saw", "a", "dog"] * 8
    example = make_question(" ".join(words), (37, 39))
    dataset = QuestionAnswering(allow_no_answer=False).encode([example], TOKENISE, max_length=20)
    assert dataset.n_truncated == 1 and len(dataset.encoded) > 2
    assert all(len(window) <= 20 for window in dataset.encoded)
    assert {int(word) for window in dataset.encoded for word in window.word_ids if word >= 0} == set(range(40))
    for window in dataset.encoded:
        start, end = window.labels
        has_answer = {37, 38} <= set(window.word_ids.tolist())
        assert (start > 0) == has_answer
        if has_answer:
            assert list(dict.fromkeys(window.word_ids[start : end + 1].tolist())) == [37, 38]


def test_a_question_too_long_for_any_passage_is_skipped() -> None:
    long_question = make_question("the cat saw a dog and the dog saw a cat", (0, 2), question="who was it " * 6)
    task = QuestionAnswering(allow_no_answer=False)
    dataset = task.encode([long_question, make_question("the cat", (0, 2))], TOKENISE, max_length=22)
    assert (len(dataset.examples), dataset.n_truncated, len(dataset.encoded)) == (1, 1, 1)


def test_answers_are_compared_as_in_squad() -> None:
    task = QuestionAnswering(allow_no_answer=True)
    example = make_question("It was the old King of Spain , he said", (2, 5), (4, 7))
    predictions = [Span(3, 5), Span(2, 7), None]
    np.testing.assert_allclose(task.count_correct([example] * 3, predictions).correct, [1, 6 / 7, 0])
    assert task.metrics([example] * 3, predictions)["exact match"].value == pytest.approx(1 / 3)
    question, passage = example.segments
    unanswerable = replace(example, segments=(question, replace(passage, answer_spans=())))
    assert task.metrics([unanswerable, unanswerable], [None, Span(0, 1)])["F1"].value == 0.5


def test_a_long_multiple_choice_example_loses_the_end_of_its_passage_only() -> None:
    texts = ("the cat saw a dog and a bird", "how is it", "happy", "very sad")
    example = Example(tuple(map(sentence_from_text, texts)), "choice", "1")
    full, truncated = (MultipleChoice().encode([example], TOKENISE, max_length=length) for length in (60, 12))
    assert (full.n_truncated, truncated.n_truncated) == (0, 1)
    assert full.encoded[0].input_ids.shape[0] == 2
    full_ids, truncated_ids = (
        [int(token) for token in dataset.encoded[0].input_ids[1] if token != NO_TOKEN] for dataset in (full, truncated)
    )
    assert len(truncated_ids) == 12
    assert truncated_ids[:4] == full_ids[:4] and truncated_ids[-7:] == full_ids[-7:]
    assert not MultipleChoice().encode([example], TOKENISE, max_length=6).examples


def test_examples_with_different_numbers_of_options_share_a_batch() -> None:
    passage, question = sentence_from_text("the cat"), sentence_from_text("how is it")
    examples = [
        Example((passage, question, *(sentence_from_words([word]) for word in words)), "choice", "0")
        for words in (("happy", "sad"), ("happy", "sad", "rich"))
    ]
    batch = pad_examples(MultipleChoice().encode(examples, TOKENISE, max_length=60).encoded, [0, 1])
    mask = batch.inputs.attention_mask
    assert mask.shape[:2] == (2, 3)
    assert mask[0, 2].sum() == 0 < mask[1, 2].sum()


def test_governors_are_encoded_as_first_tokens_and_the_root_as_position_zero() -> None:
    sentence = replace(sentence_from_text("unbelievable story"), governors=(1, ROOT), relations=("amod", "root"))
    encoded = DependencyParsing(("amod", "root")).encode([Example((sentence,))], TOKENISE, max_length=60).encoded[0]
    first, second = encoded.first_tokens
    assert encoded.labels[:, first].tolist() == [second, 0]
    assert encoded.labels[:, second].tolist() == [0, 1]
    assert (encoded.labels != IGNORE_INDEX).sum() == 4


def test_attachment_scores_are_proportions_of_all_words() -> None:
    sentence = replace(sentence_from_text("a b c"), governors=(1, ROOT, 1), relations=("det", "root", "obj"))
    task = DependencyParsing(("det", "obj", "root"))
    predictions = [[(1, "det"), (ROOT, "root"), (1, "det")], [(2, "det")] * 3]
    metrics = task.metrics([Example((sentence,))] * 2, predictions)
    assert (metrics["UAS"].value, metrics["LAS"].value) == (3 / 6, 2 / 6)


def test_baselines_need_no_model() -> None:
    texts = planted_corpus("sentence", 9).examples
    classification = TextClassification("sentence", ("bad", "good"))
    assert classification.baseline_predictions(texts, texts)["majority class"] == ["bad"] * 9
    tagged = planted_corpus("token", 20).examples
    tagging = TokenClassification(("O", "B-PER"), "tags")
    baselines = tagging.baseline_predictions(tagged, tagged)
    assert tagging.count_correct(tagged, baselines["most frequent label of the word"]).score == 1
    assert tagging.count_correct(tagged, baselines["majority class"]).score == 0
    choices = planted_corpus("choice", 9).examples
    assert MultipleChoice().baseline_predictions(choices, texts)["majority class"] in ([0] * 9, [1] * 9)
    questions = [make_question("the cat saw", (0, 2)), make_question("the cat saw a dog", (3, 5))]
    answering = QuestionAnswering(allow_no_answer=False)
    assert answering.baseline_predictions(questions, questions) == {"first words": [Span(0, 2)] * 2}


@pytest.mark.parametrize(
    ("data", "task"),
    [("sentence", "sentence"), ("pair", "pair"), ("token", "token"), ("qa", "qa"), ("choice", "choice")],
)
def test_the_task_is_inferred_from_the_corpus(data: str, task: str) -> None:
    assert infer_task(planted_corpus(data, 4)) == task


def test_unusable_examples_are_counted() -> None:
    corpus = planted_corpus("sentence", 10)
    with_unlabelled = Corpus((*corpus.examples, replace(corpus[0], label=None)))
    usable, _ = select_examples(with_unlabelled, "sentence")
    assert (len(usable), usable.summary()["skipped"]) == (10, {"unusable for the task": 1})
    with pytest.raises(Refusal, match="'sentences'"):
        select_examples(with_unlabelled, "sentences")


def test_numeric_labels_are_sorted_as_numbers() -> None:
    example = planted_corpus("sentence", 1)[0]
    task = build_task("sentence", [replace(example, label=str(number)) for number in (10, 9, 2)], None)
    assert task.labels == ("2", "9", "10")


def test_texts_without_the_annotated_spans_are_skipped_even_if_they_have_tags() -> None:
    first, second = planted_corpus("token", 2).examples
    without_entities = replace(second, segments=(replace(second.segments[0], entities=None),))
    usable, annotation = select_examples(Corpus((first, without_entities)), "token", "entities")
    assert annotation == "entities" and [example.id for example in usable] == [first.id] and len(usable.skipped) == 1
