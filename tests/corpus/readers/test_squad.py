"""SQuAD: answers as spans of words, unanswerable questions, offsets that lie."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import Span


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "squad", "sample.json")


PASSAGE = "Ann sold 6½ apples to Eve's son."


def document(*questions: object, passage: object = PASSAGE) -> str:
    return json.dumps(
        {"data": [{"title": "Market", "paragraphs": [{"context": passage, "qas": list(questions)}]}]}, indent=1
    )


def question(text: str = "apples", start: object = 12, **more: object) -> dict[str, object]:
    return {"id": "q", "question": "What?", "answers": [{"text": text, "answer_start": start}], **more}


def test_an_answer_is_a_span_of_words(sample: Reading) -> None:
    (item,) = sample.read(document(question()))
    asked, passage = item.parts
    assert (item.kind, item.label, item.id, item.source) == ("question", "answerable", "q", "Market")
    assert asked.words == ("What", "?")
    assert passage.answers is not None
    (span,) = passage.answers
    assert passage.words[span.start : span.end] == ("apples",)
    assert not asked.answers


def test_answers_given_twice_are_kept_once(sample: Reading) -> None:
    twice = {"id": "q", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}] * 2}
    assert sample.read(document(twice))[0].parts[1].answers == (Span(0, 1),)


def test_an_answer_inside_a_word_is_widened_and_counted(sample: Reading) -> None:
    corpus = sample.read(document(question("Eve", 22)))
    passage = corpus[0].parts[1]
    assert [passage.words[s.start : s.end] for s in passage.answers or ()] == [("Eve's",)]
    assert [skip.reason for skip in corpus.skipped] == ["answer widened to whole words"]


def test_an_unanswerable_question_has_no_answers(sample: Reading) -> None:
    (item,) = sample.read(document({"id": "q", "question": "Why?", "answers": [], "is_impossible": True}))
    assert (item.label, item.parts[1].answers) == ("unanswerable", ())


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (question("pears"), "offset does not match the text"),
        (question(start=13), "offset does not match the text"),
        (question(start=9999), "offset does not match the text"),
        (question(start=-1), "wrong value"),
        (question(start="12"), "wrong value"),
        (question(" ", 3), "wrong value"),
        ({"id": "q", "question": "Why?", "answers": []}, "missing answer"),
        ({"id": "q", "question": "Why?"}, "missing key"),
        ({"id": "q", "answers": []}, "missing key"),
        ({"id": "q", "question": " ", "answers": []}, "wrong value"),
        ({"id": "q", "question": "Why?", "answers": [{"text": "Ann"}]}, "missing key"),
        ("no object", "wrong value"),
    ],
)
def test_a_broken_question_is_refused_or_counted(bad: object, reason: str, sample: Reading) -> None:
    sample.bad(document(bad, question()), reason, kept=1)


def test_the_place_of_a_fault_is_told(sample: Reading) -> None:
    sample.refused(document(question(), question("pears")), "data[0].paragraphs[0].qas[1]")


def test_what_is_no_squad_is_refused(sample: Reading) -> None:
    sample.bad('{"data": [\n{"title": }]}', "invalid JSON", line=2)
    sample.bad("[]", "wrong value")
    sample.bad('{"version": 1}', "missing key")
    sample.bad(document(question(), passage=" "), "wrong value")
    sample.bad("[" * 100_000, "invalid JSON")
    sample.bad('{"data": ' + "9" * 5000 + "}", "invalid JSON")


def test_xquad() -> None:
    path = shared("data/qa/xquad.en.json")
    corpus = read(path)
    articles = json.loads(path.read_text())["data"]
    truth = [qa for article in articles for paragraph in article["paragraphs"] for qa in paragraph["qas"]]
    assert (len(corpus), corpus.format) == (1190, "squad")
    assert [item.id for item in corpus] == [qa["id"] for qa in truth]
    for item, qa in zip(corpus, truth, strict=True):
        passage = item.parts[1]
        for span, answer in zip(passage.answers or (), qa["answers"], strict=True):
            start, end = passage.offsets[span.start][0], passage.offsets[span.end - 1][1]
            assert answer["text"].strip() in passage.text[start:end]
    assert_surfaces(corpus)
