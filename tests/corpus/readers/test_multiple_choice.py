"""Multiple choice in the formats of RACE, DREAM and MCTest, and answers that are not an option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match

from bertology.corpus.read import read
from bertology.errors import Refusal


def race(**fields: object) -> dict[str, object]:
    questions = {"questions": ["What has Ann?", "Ann has a _."], "options": [["a cat", "a dog"], ["dog", "cow"]]}
    return {"id": "high1.txt", "article": "Ann has a dog.", "answers": ["B", "A"]} | questions | fields


def dream(**fields: object) -> list[object]:
    question = {"question": "What is it?", "choice": ["a cat", "a dog", "a cow"], "answer": "a dog"} | fields
    return [["M: Look!", "W: A dog."], [question], "5-510"]


STORY = ("mc1", "Author: A", "It rained.\\newlineAnn sang.")
QUESTION = ("one: Who sang?", "Eve", "Ann", "Bob", "Joe")


def mctest(*questions: tuple[str, ...]) -> str:
    return "\t".join((*STORY, *(cell for question in questions for cell in question))) + "\n"


def test_race_examples(tmp_path: Path) -> None:
    corpus = ReaderSample(tmp_path, "multiple_choice", "1.txt").read(json.dumps(race()))
    first, second = corpus
    assert [sentence.text for sentence in first.segments] == ["Ann has a dog.", "What has Ann?", "a cat", "a dog"]
    assert [(example.label, example.id) for example in corpus] == [("1", "high1.txt-1"), ("0", "high1.txt-2")]
    assert first.kind == "choice" and len(first.text_inputs) == 2
    assert second.source == "high1.txt"
    assert_offsets_match(corpus)


def test_race_in_directories_and_json_lines(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path / "race", "multiple_choice", "high/2.txt")
    sample.write(json.dumps(race(id="b")))
    sample.write(json.dumps(race(id="a")), "high/1.txt")
    assert [example.source for example in read(tmp_path / "race")] == ["a", "a", "b", "b"]
    single = {"example_id": "x", "article": "A b.", "question": "C?", "options": ["d", "e"], "answer": "B"}
    lines = ReaderSample(tmp_path, "multiple_choice", "a.jsonl").read(f"{json.dumps(single)}\n{json.dumps(race())}\n")
    assert (lines[0].id, lines[0].label) == ("x-1", "1")
    assert len(lines) == 3


def test_dream_examples(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "multiple_choice", "dev.json")
    (example,) = corpus = sample.read(json.dumps([dream()], indent=2))
    assert example.segments[0].text == "M: Look!\nW: A dog."
    assert (example.label, example.id, len(example.segments)) == ("1", "5-510-1", 5)
    assert read(sample.path).format == "multiple_choice"
    assert_offsets_match(corpus)


def test_mctest_examples(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "multiple_choice", "mc160.dev.tsv")
    sample.write("B\tA\tC\tD\n", "mc160.dev.ans")
    corpus = sample.read(mctest(QUESTION, QUESTION, QUESTION, QUESTION))
    assert [example.label for example in corpus] == ["1", "0", "2", "3"]
    assert corpus[0].segments[0].text == "It rained.\nAnn sang."
    assert corpus[0].segments[1].text == "Who sang?"
    assert [example.id for example in corpus] == ["mc1-1", "mc1-2", "mc1-3", "mc1-4"]
    assert read(sample.path).format == "multiple_choice"


def test_mctest_without_valid_answers_is_refused(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "multiple_choice", "mc160.dev.tsv")
    text = mctest(QUESTION, QUESTION, QUESTION, QUESTION)
    sample.assert_refused(text, "mc160.dev.ans")
    sample.write("B\tA\tC\tD\nB\tA\tC\n", "mc160.dev.ans")
    sample.assert_malformed(text + text, "answer is not an option", line=2, n_examples=4)
    sample.assert_malformed(text + mctest(QUESTION), "wrong column count", line=2, n_examples=4)
    sample.write("B\tA\tC\tD\nB\tA\tC\tD\n", "mc160.dev.ans")
    sample.assert_malformed(text + text.replace("Bob", ""), "missing text", line=2, n_examples=4)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (race(answers=["B"]), "missing annotation"),
        (race(article=" "), "wrong value"),
        ({"article": "A b."}, "missing key"),
        ([1], "wrong value"),
        ({"article": "A.", "question": "C?", "options": ["d"], "answer": "B"}, "answer is not an option"),
        ({"article": "A.", "question": "C?", "options": ["d", ""], "answer": "A"}, "wrong value"),
        ({"article": "A.", "question": 1, "options": ["d"], "answer": "A"}, "wrong value"),
    ],
)
def test_a_malformed_passage_is_refused_or_counted(bad: object, reason: str, tmp_path: Path) -> None:
    good = json.dumps(race())
    ReaderSample(tmp_path, "multiple_choice", "a.jsonl").assert_malformed(
        f"{good}\n{json.dumps(bad)}\n{good}\n", reason, line=2, n_examples=4
    )


def test_a_malformed_question_does_not_affect_the_others(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "multiple_choice", "a.json")
    sample.assert_malformed(json.dumps(race(answers=["C", "A"])), "answer is not an option", n_examples=1)
    sample.assert_malformed(json.dumps([dream(answer="a horse"), dream()]), "answer is not an option", n_examples=1)
    sample.assert_malformed(json.dumps([[1, 2], dream()]), "wrong value", n_examples=1)
    sample.assert_malformed(json.dumps([[[], [], "id"], dream()]), "missing text", n_examples=1)
    sample.assert_malformed('{"article":\n oops', "invalid JSON", line=2)


def test_answers_are_texts_in_dream_and_letters_in_race(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "multiple_choice", "a.json")
    assert sample.read(json.dumps([dream(choice=["B", "A", "C"], answer="A")]))[0].label == "1"
    assert sample.read(json.dumps(race(options=[["B", "A"], ["b", "a"]])))[0].label == "1"
    assert sample.read(json.dumps(race(options=[["B", "A"], ["B", "A"]])))[1].label == "0"


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal):
        read(tmp_path, "multiple_choice")
