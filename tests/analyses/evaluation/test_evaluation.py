"""Evaluation of each task gives every example the loss and score that fine-tuning computes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bertology.analyses.evaluation.evaluation import prepare_evaluation, scorable_task
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import sentence_from_words
from bertology.encoder.builtin import tiny_encoder
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.layer_variants import LayerVariant
from bertology.encoder.load import load
from bertology.encoder.task_heads import TaskHeadName, add_task_head
from bertology.errors import Refusal
from bertology.training.encoded_examples import iterate_batches
from bertology.training.trainable_model import TrainableModel
from planted_tasks import planted_corpus

TASKS: dict[str, tuple[TaskHeadName, tuple[str, ...]]] = {
    "sentence": ("label", ("bad", "good")),
    "pair": ("label", ("bad", "good")),
    "token": ("token", ("O", "B-PER", "I-PER")),
    "qa": ("answer", ()),
    "choice": ("choice", ()),
}


def with_task_head(task: str) -> TaskEncoder:
    base = load("tiny")
    assert isinstance(base, TaskEncoder)
    task_head, labels = TASKS[task]
    return add_task_head(base, task_head, labels, variant=LayerVariant(), seed=3)


@pytest.mark.parametrize("task_name", TASKS)
def test_scores_are_those_of_fine_tuning(task_name: str) -> None:
    encoder, corpus = with_task_head(task_name), planted_corpus(task_name, 50)
    evaluation = prepare_evaluation(encoder, corpus, task=task_name)
    scores = evaluation.scores(encoder.forward)
    task = scorable_task(task_name, TASKS[task_name][1])
    dataset = task.encode(list(corpus), encoder.tokenise, max_length=encoder.max_length)
    assert evaluation.task == task_name
    assert [example.id for example in evaluation.examples] == [example.id for example in dataset.examples]
    model = TrainableModel(encoder)
    counts = task.count_correct(dataset.examples, task.predict(model, dataset))
    np.testing.assert_array_equal(scores.counts.correct, counts.correct)
    np.testing.assert_array_equal(scores.counts.total, counts.total)
    with torch.no_grad():
        single_losses = [float(task.loss(model, batch)) for batch in iterate_batches(dataset.encoded, 1)]
    np.testing.assert_allclose(sorted(scores.losses), sorted(single_losses), rtol=1e-4)


def test_an_example_in_several_windows_is_one_example() -> None:
    encoder, corpus = with_task_head("qa"), planted_corpus("qa", 3)
    question, passage = corpus[0].segments
    long_passage = replace(sentence_from_words(passage.words * 150), answer_spans=passage.answer_spans)
    long_example = replace(corpus[0], segments=(question, long_passage))
    long_corpus = replace(corpus, examples=(long_example, *corpus.examples[1:]))
    evaluation = prepare_evaluation(encoder, long_corpus, task="qa")
    assert sum(len(batch.inputs.input_ids) for batch in evaluation.batches) > len(evaluation.examples) == 3
    task, model = scorable_task("qa", ()), TrainableModel(encoder)
    dataset = task.encode(list(long_corpus), encoder.tokenise, max_length=encoder.max_length)
    with torch.no_grad():
        window_losses = [
            float(task.loss(model, batch))
            for batch in iterate_batches(dataset.encoded, 1)
            if dataset.encoded[batch.indices[0]].example_index == 0
        ]
    # The loss of an example is the mean over its windows: a long passage must not count for more than a short one.
    assert evaluation.scores(encoder.forward).losses[0] == pytest.approx(np.mean(window_losses), rel=1e-4)


def test_a_masked_language_model_is_evaluated_on_masked_tokens() -> None:
    encoder, corpus = load("tiny"), load_corpus("english", limit=30)
    evaluation = prepare_evaluation(encoder, corpus)
    scores = evaluation.scores(encoder.forward)
    assert evaluation.task == "mlm"
    assert (scores.counts.total >= 1).all()
    # The loss of an untrained model is about the logarithm of its vocabulary size.
    assert scores.losses.mean() == pytest.approx(np.log(tiny_encoder().model.config.vocab_size), rel=0.05)


def test_labels_match_by_number_and_in_any_case() -> None:
    encoder, corpus = with_task_head("sentence"), planted_corpus("sentence", 20)
    expected = prepare_evaluation(encoder, corpus).scores(encoder.forward)
    for names in ({"bad": "0", "good": "1"}, {"bad": "BAD", "good": "Good"}):
        renamed = replace(
            corpus, examples=tuple(replace(example, label=names[str(example.label)]) for example in corpus)
        )
        scores = prepare_evaluation(encoder, renamed).scores(encoder.forward)
        np.testing.assert_array_equal(expected.counts.correct, scores.counts.correct)
        assert bool(prepare_evaluation(encoder, renamed).numbered_labels) == ("0" in names.values())
    unknown = replace(corpus, examples=(replace(corpus[0], label="ugly"), *corpus.examples[1:]))
    with pytest.raises(Refusal, match="ugly"):
        prepare_evaluation(encoder, unknown)


def test_a_task_without_a_task_head_is_refused() -> None:
    with pytest.raises(Refusal, match=r"model for text classification .*and english.* is not annotated for that"):
        prepare_evaluation(with_task_head("sentence"), load_corpus("english", limit=5))
    with pytest.raises(Refusal, match="has no task head for --task sentence"):
        prepare_evaluation(load("tiny"), planted_corpus("sentence", 5), task="sentence")


def test_skipped_examples_and_the_majority_class_are_counted() -> None:
    encoder, corpus = with_task_head("pair"), planted_corpus("pair", 21)
    first, second = corpus[0].segments
    too_long = replace(corpus[0], segments=(sentence_from_words(first.words * 400), second))
    evaluation = prepare_evaluation(encoder, replace(corpus, examples=(too_long, *corpus.examples[1:])))
    assert evaluation.skipped == 1 and evaluation.long_examples == {"long examples skipped": 1}
    longer = replace(corpus, examples=(too_long, *corpus.examples[1:]))
    truncated = prepare_evaluation(encoder, longer, overflow="truncate")
    assert truncated.skipped == 0 and truncated.sample()["long examples truncated"] == 1
    assert len(truncated.scores(encoder.forward).losses) == 21
    assert len(evaluation.examples) == 20
    assert evaluation.majority is not None
    assert evaluation.majority.score == pytest.approx(0.5)


def test_entities_of_types_that_the_model_lacks_count_as_outside() -> None:
    encoder, corpus = with_task_head("token"), planted_corpus("token", 12)
    renamed: list[Example] = []
    for example in corpus:
        tags = tuple(tag.replace("PER", "GOD") for tag in example.segments[0].tags or ())
        renamed.append(replace(example, segments=(replace(example.segments[0], tags=tags),)))
    known = prepare_evaluation(encoder, corpus)
    unknown = prepare_evaluation(encoder, replace(corpus, examples=tuple(renamed)))
    assert {tag for example in known.examples for tag in example.segments[0].tags or ()} == {"O", "B-PER"}
    assert {tag for example in unknown.examples for tag in example.segments[0].tags or ()} == {"O"}
    assert unknown.scores(encoder.forward).counts.correct.sum() == 0
