"""SQuAD: answers as word spans, unanswerable questions, wrong offsets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.sentence import Span


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "squad", "sample.json")


PASSAGE = "Ann sold 6½ apples to Eve's son."


def document(*questions: object, passage: object = PASSAGE) -> str:
    return json.dumps(
        {"data": [{"title": "Market", "paragraphs": [{"context": passage, "qas": list(questions)}]}]}, indent=1
    )


def question(text: str = "apples", start: object = 12, **fields: object) -> dict[str, object]:
    return {"id": "q", "question": "What?", "answers": [{"text": text, "answer_start": start}], **fields}


def test_an_answer_is_a_span_of_words(sample: ReaderSample) -> None:
    (example,) = sample.read(document(question()))
    question_text, passage = example.segments
    assert (example.kind, example.label, example.id, example.source) == ("question", "answerable", "q", "Market")
    assert question_text.words == ("What", "?")
    assert passage.answer_spans is not None
    (span,) = passage.answer_spans
    assert passage.words[span.start : span.end] == ("apples",)
    assert not question_text.answer_spans


def test_repeated_answers_are_one_span(sample: ReaderSample) -> None:
    twice = {"id": "q", "question": "Who?", "answers": [{"text": "Ann", "answer_start": 0}] * 2}
    assert sample.read(document(twice))[0].segments[1].answer_spans == (Span(0, 1),)


def test_an_answer_inside_a_word_is_extended_and_counted(sample: ReaderSample) -> None:
    corpus = sample.read(document(question("Eve", 22)))
    passage = corpus[0].segments[1]
    assert [passage.words[s.start : s.end] for s in passage.answer_spans or ()] == [("Eve's",)]
    assert [skip.reason for skip in corpus.skipped] == ["answers extended to whole words"]


def test_an_unanswerable_question_has_no_answer_spans(sample: ReaderSample) -> None:
    (example,) = sample.read(document({"id": "q", "question": "Why?", "answers": [], "is_impossible": True}))
    assert (example.label, example.segments[1].answer_spans) == ("unanswerable", ())


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
def test_a_malformed_question_is_refused_or_counted(bad: object, reason: str, sample: ReaderSample) -> None:
    sample.assert_malformed(document(bad, question()), reason, n_examples=1)


def test_the_location_of_a_malformed_question_is_named(sample: ReaderSample) -> None:
    sample.assert_refused(document(question(), question("pears")), "data[0].paragraphs[0].qas[1]")


def test_other_json_is_refused(sample: ReaderSample) -> None:
    sample.assert_malformed('{"data": [\n{"title": }]}', "invalid JSON", line=2)
    sample.assert_malformed("[]", "wrong value")
    sample.assert_malformed('{"version": 1}', "missing key")
    sample.assert_malformed(document(question(), passage=" "), "wrong value")
    sample.assert_malformed("[" * 100_000, "invalid JSON")
    sample.assert_malformed('{"data": ' + "9" * 5000 + "}", "invalid JSON")


def test_xquad_answers() -> None:
    path = shared("data/qa/xquad.en.json")
    corpus = read(path)
    articles = json.loads(path.read_text())["data"]
    questions = [qa for article in articles for paragraph in article["paragraphs"] for qa in paragraph["qas"]]
    assert (len(corpus), corpus.format) == (1190, "squad")
    assert [example.id for example in corpus] == [qa["id"] for qa in questions]
    for example, qa in zip(corpus, questions, strict=True):
        passage = example.segments[1]
        for span, answer in zip(passage.answer_spans or (), qa["answers"], strict=True):
            start, end = passage.offsets[span.start][0], passage.offsets[span.end - 1][1]
            assert answer["text"].strip() in passage.text[start:end]
    assert_offsets_match(corpus)
