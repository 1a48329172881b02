"""Every task a model can be asked gives each item its own loss and count, as fine-tuning judges them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Item
from bertology.corpus.sentence import sentence
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.load import load
from bertology.encoder.task_heads import HeadName, with_head
from bertology.encoder.tiny import untrained
from bertology.encoder.variant import Variant
from bertology.errors import Refusal
from bertology.finetuning.examples import batches
from bertology.finetuning.learner import Learner
from bertology.measures.causes.examination import examine, head_task
from finetuning.planted_tasks import planted

TASKS: dict[str, tuple[HeadName, tuple[str, ...]]] = {
    "sentence": ("label", ("bad", "good")),
    "pair": ("label", ("bad", "good")),
    "token": ("token", ("O", "B-PER", "I-PER")),
    "qa": ("answer", ()),
    "choice": ("choice", ()),
}


def headed(task: str) -> HuggingFaceEncoder:
    base = load("tiny")
    assert isinstance(base, HuggingFaceEncoder)
    head, labels = TASKS[task]
    return with_head(base, head, labels, variant=Variant(), seed=3)


@pytest.mark.parametrize("task", TASKS)
def test_marks_are_those_that_fine_tuning_gives(task: str) -> None:
    encoder, corpus = headed(task), planted(task, 50)
    found = examine(encoder, corpus, task=task)
    marks = found.marks(encoder.run)
    judge = head_task(task, TASKS[task][1])
    seen = judge.see(list(corpus), encoder.tokenise, longest=encoder.max_pieces)
    assert found.task == task
    assert [item.id for item in found.items] == [item.id for item in seen.items]
    counts = judge.counts(seen.items, judge.answers(Learner(encoder), seen))
    np.testing.assert_array_equal(marks.counts.right, counts.right)
    np.testing.assert_array_equal(marks.counts.of, counts.of)
    with torch.no_grad():
        one_by_one = [float(judge.loss(Learner(encoder), batch)) for batch in batches(seen.examples, 1)]
    np.testing.assert_allclose(sorted(marks.losses), sorted(one_by_one), rtol=1e-4)


def test_an_item_in_several_windows_is_one_item() -> None:
    encoder, corpus = headed("qa"), planted("qa", 3)
    question, passage = corpus[0].parts
    long = replace(sentence(passage.words * 150), answers=passage.answers)
    wide = replace(corpus, items=(replace(corpus[0], parts=(question, long)), *corpus.items[1:]))
    found = examine(encoder, wide, task="qa")
    assert sum(len(sheet.shown.ids) for sheet in found.sheets) > len(found.items) == 3
    judge = head_task("qa", ())
    seen = judge.see(list(wide), encoder.tokenise, longest=encoder.max_pieces)
    with torch.no_grad():
        windows = [float(judge.loss(Learner(encoder), batch)) for batch in batches(seen.examples, 1)]
    of_the_long = [loss for loss, batch in zip(windows, batches(seen.examples, 1), strict=True)
                   if seen.examples[batch.places[0]].item == 0]  # fmt: skip
    # The loss of an item is the mean over its windows: a long passage must not count for more than a short one.
    assert found.marks(encoder.run).losses[0] == pytest.approx(np.mean(of_the_long), rel=1e-4)


def test_hidden_pieces_are_asked_of_a_model_that_can_fill_them_in() -> None:
    encoder, corpus = load("tiny"), corpus_named("english", limit=30)
    found = examine(encoder, corpus)
    marks = found.marks(encoder.run)
    assert found.task == "mlm"
    assert (marks.counts.of >= 1).all()
    # A model that knows nothing pays about the logarithm of its vocabulary for each hidden piece.
    vocabulary = untrained().model.config.vocab_size
    assert marks.losses.mean() == pytest.approx(np.log(vocabulary), rel=0.05)


def test_classes_may_be_given_by_number_or_in_capitals() -> None:
    encoder, corpus = headed("sentence"), planted("sentence", 20)
    first = examine(encoder, corpus).marks(encoder.run)
    for names in ({"bad": "0", "good": "1"}, {"bad": "BAD", "good": "Good"}):
        renamed = replace(corpus, items=tuple(replace(item, label=names[str(item.label)]) for item in corpus))
        np.testing.assert_array_equal(first.counts.right, examine(encoder, renamed).marks(encoder.run).counts.right)
    strange = replace(corpus, items=(replace(corpus[0], label="ugly"), *corpus.items[1:]))
    with pytest.raises(Refusal, match="ugly"):
        examine(encoder, strange)


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(Refusal, match="cannot be asked"):
        examine(headed("sentence"), corpus_named("english", limit=5))
    with pytest.raises(Refusal, match="cannot be asked"):
        examine(load("tiny"), planted("sentence", 5), task="sentence")


def test_guessing_and_leaving_out_are_told() -> None:
    encoder, corpus = headed("pair"), planted("pair", 21)
    first, second = corpus[0].parts
    endless = replace(corpus[0], parts=(sentence(first.words * 400), second))
    found = examine(encoder, replace(corpus, items=(endless, *corpus.items[1:])))
    assert found.left_out == 1
    assert len(found.items) == 20
    assert found.guess is not None
    assert found.guess.value == pytest.approx(0.5)


def test_names_of_kinds_that_the_model_has_no_tag_for_are_no_names() -> None:
    encoder, corpus = headed("token"), planted("token", 12)
    renamed: list[Item] = []
    for item in corpus:
        tags = tuple(tag.replace("PER", "GOD") for tag in item.parts[0].tags or ())
        renamed.append(replace(item, parts=(replace(item.parts[0], tags=tags),)))
    known, strange = (examine(encoder, replace(corpus, items=items)) for items in (corpus.items, tuple(renamed)))
    assert {tag for item in known.items for tag in item.parts[0].tags or ()} == {"O", "B-PER"}
    assert {tag for item in strange.items for tag in item.parts[0].tags or ()} == {"O"}
    # What is found nowhere in the gold tags is of nothing: only what the model itself says is counted.
    assert strange.marks(encoder.run).counts.right.sum() == 0
