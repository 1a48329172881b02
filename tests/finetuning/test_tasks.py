"""What each task shows a model of long or odd items, and how its answers are judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from planted_tasks import planted

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import ROOT, Span, from_text, sentence
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.finetuning.choose import fitting, guessed_task, task_for
from bertology.finetuning.examples import NO_PIECE, UNLABELLED, pad
from bertology.finetuning.tasks.answers import Answers
from bertology.finetuning.tasks.choices import Choices
from bertology.finetuning.tasks.classes import Classes
from bertology.finetuning.tasks.tags import Tags
from bertology.finetuning.tasks.trees import Trees

TOKENISE = load("tiny").tokenise


def _question(passage: str, *answers: tuple[int, int], question: str = "who was it") -> Item:
    spans = tuple(Span(*answer) for answer in answers)
    return Item((from_text(question), replace(from_text(passage), answers=spans)), "question", "answerable")


def test_a_long_passage_is_read_in_windows_that_hold_every_word() -> None:
    words = ["the", "cat", "saw", "a", "dog"] * 8
    item = _question(" ".join(words), (37, 39))
    seen = Answers(may_lack=False).see([item], TOKENISE, longest=20)
    assert seen.cut == 1 and len(seen.examples) > 2
    assert all(len(example) <= 20 for example in seen.examples)
    assert {int(word) for example in seen.examples for word in example.word if word >= 0} == set(range(40))
    for example in seen.examples:
        start, end = example.labels
        whole = {37, 38} <= set(example.word.tolist())
        assert (start > 0) == whole
        if whole:
            assert list(dict.fromkeys(example.word[start : end + 1].tolist())) == [37, 38]


def test_a_question_without_room_for_a_passage_is_left_out() -> None:
    item = _question("the cat saw a dog and the dog saw a cat", (0, 2), question="who was it " * 6)
    seen = Answers(may_lack=False).see([item, _question("the cat", (0, 2))], TOKENISE, longest=22)
    assert (len(seen.items), seen.cut, len(seen.examples)) == (1, 1, 1)


def test_answers_are_compared_as_squad_compares_them() -> None:
    task = Answers(may_lack=True)
    item = _question("It was the old King of Spain , he said", (2, 5), (4, 7))
    scores = task.scores([item] * 3, [Span(3, 5), Span(2, 7), None])
    np.testing.assert_allclose(task.counts([item] * 3, [Span(3, 5), Span(2, 7), None]).right, [1, 6 / 7, 0])
    assert scores["exact match"].value == pytest.approx(1 / 3)
    lacking = replace(item, parts=(item.parts[0], replace(item.parts[1], answers=())))
    assert task.scores([lacking, lacking], [None, Span(0, 1)])["F1"].value == 0.5


def test_a_long_choice_loses_the_end_of_its_passage_alone() -> None:
    parts = tuple(from_text(text) for text in ("the cat saw a dog and a bird", "how is it", "happy", "very sad"))
    item = Item(parts, "choice", "1")
    whole = Choices().see([item], TOKENISE, longest=60)
    short = Choices().see([item], TOKENISE, longest=12)
    assert (whole.cut, short.cut) == (0, 1)
    assert whole.examples[0].ids.shape[0] == 2
    row, kept = ([int(piece) for piece in seen.examples[0].ids[1] if piece != NO_PIECE] for seen in (whole, short))
    assert len(kept) == 12 and kept[:4] == row[:4] and kept[-7:] == row[-7:]
    assert not Choices().see([item], TOKENISE, longest=6).items


def test_items_with_fewer_options_share_a_batch() -> None:
    passage, question = from_text("the cat"), from_text("how is it")
    items = [
        Item((passage, question, *(sentence([word]) for word in words)), "choice", "0")
        for words in (("happy", "sad"), ("happy", "sad", "rich"))
    ]
    batch = pad(Choices().see(items, TOKENISE, longest=60).examples, [0, 1])
    assert batch.shown.mask.shape[:2] == (2, 3)
    assert batch.shown.mask[0, 2].sum() == 0 < batch.shown.mask[1, 2].sum()


def test_heads_are_pieces_and_the_root_is_the_first() -> None:
    part = replace(from_text("unbelievable story"), heads=(1, ROOT), relations=("amod", "root"))
    example = Trees(("amod", "root")).see([Item((part,))], TOKENISE, longest=60).examples[0]
    first, second = example.first_pieces
    assert example.labels[:, first].tolist() == [second, 0]
    assert example.labels[:, second].tolist() == [0, 1]
    assert (example.labels != UNLABELLED).sum() == 4


def test_attachment_counts_heads_and_relations() -> None:
    part = replace(from_text("a b c"), heads=(1, ROOT, 1), relations=("det", "root", "obj"))
    task = Trees(("det", "obj", "root"))
    scores = task.scores([Item((part,))] * 2, [[(1, "det"), (ROOT, "root"), (1, "det")], [(2, "det")] * 3])
    assert (scores["UAS"].value, scores["LAS"].value) == (3 / 6, 2 / 6)


def test_guesses_need_no_model() -> None:
    sentences = planted("sentence", 9).items
    assert Classes("sentence", ("bad", "good")).guesses(sentences, sentences)["majority"] == ["bad"] * 9
    tokens = planted("token", 20).items
    guesses = Tags(("O", "B-PER"), "tags").guesses(tokens, tokens)
    assert Tags(("O", "B-PER"), "tags").counts(tokens, guesses["majority of the word"]).value == 1
    assert Tags(("O", "B-PER"), "tags").counts(tokens, guesses["majority"]).value == 0
    assert Choices().guesses(planted("choice", 9).items, sentences)["majority"] in ([0] * 9, [1] * 9)
    asked = [_question("the cat saw", (0, 2)), _question("the cat saw a dog", (3, 5))]
    assert Answers(may_lack=False).guesses(asked, asked) == {"first words": [Span(0, 2)] * 2}


@pytest.mark.parametrize(
    ("data", "task"),
    [("sentence", "sentence"), ("pair", "pair"), ("token", "token"), ("qa", "qa"), ("choice", "choice")],
)
def test_a_task_is_guessed_from_the_data(data: str, task: str) -> None:
    assert guessed_task(planted(data, 4)) == task


def test_items_that_lack_what_is_needed_are_counted() -> None:
    corpus = planted("sentence", 10)
    some = Corpus((*corpus.items, replace(corpus[0], label=None)))
    kept, _ = fitting(some, "sentence")
    assert (len(kept), kept.summary()["skipped"]) == (10, {"without what the task needs": 1})
    with pytest.raises(Refusal, match="no task called 'sentences'"):
        fitting(some, "sentences")
    assert task_for("sentence", [replace(corpus[0], label=str(n)) for n in (10, 9, 2)], None).labels == ("2", "9", "10")


def test_texts_without_the_spans_that_are_learnt_are_left_out_whatever_tags_they_have() -> None:
    named, tagged = planted("token", 2).items
    other = replace(tagged, parts=(replace(tagged.parts[0], entities=None),))
    kept, layer = fitting(Corpus((named, other)), "token", "entities")
    assert layer == "entities" and [item.id for item in kept] == [named.id] and len(kept.skipped) == 1
