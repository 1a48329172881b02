"""Tasks on labels under their own names: which examples are used, which labels there are, and what is refused."""

from __future__ import annotations

import pytest

import bertology
from bertology.errors import Refusal
from bertology.training.task_selection import build_task, infer_task, select_examples

ROWS = [{"text": "A film.", "topic": "war", "mood": "sad"}, {"text": "A book.", "topic": "love", "mood": "glad"}]
TAGGED = [(["Ann", "sang"], ["B-PER", "O"]), (["Go"], [""])]


def test_a_label_of_examples_is_the_class() -> None:
    corpus = bertology.corpus(ROWS)
    usable, label = select_examples(corpus, "sentence", "topic")
    assert build_task("sentence", usable.examples, label).labels == ("love", "war")
    assert infer_task(corpus, "topic") == "sentence"


def test_a_word_label_gives_the_tags_of_fully_labelled_sentences() -> None:
    corpus = bertology.corpus(TAGGED, word_labels="who")
    usable, label = select_examples(corpus, "token", "who")
    assert build_task("token", usable.examples, label).labels == ("O", "B-PER")
    assert (len(usable), [skip.reason for skip in usable.skipped]) == (1, ["unusable for the task"])
    assert infer_task(corpus, "who") == "token" and select_examples(corpus, "token")[1] == "who"


def test_a_span_label_gives_bio_tags() -> None:
    corpus = bertology.corpus([["Ann", "Lee", "sang"]], span_labels={"who": [[(0, 2, "PER")]]})
    usable, _ = select_examples(corpus, "token", "who")
    assert usable[0].segments[0].tags == ("B-PER", "I-PER", "O")


@pytest.mark.parametrize(
    ("task", "label", "message"),
    [
        ("sentence", None, "mood, topic"),
        ("sentence", "topik", "'topic'"),
        ("token", "topic", "--label"),
        ("qa", "a", "Omit"),
    ],
)
def test_a_missing_label_is_refused_with_the_names(task: str, label: str | None, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        select_examples(bertology.corpus(ROWS), task, label)
