"""Multiple choice in the three forms, and answers that are no option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces

from bertology.corpus.read import read
from bertology.errors import Refusal


def race(**more: object) -> dict[str, object]:
    questions = {"questions": ["What has Ann?", "Ann has a _."], "options": [["a cat", "a dog"], ["dog", "cow"]]}
    return {"id": "high1.txt", "article": "Ann has a dog.", "answers": ["B", "A"]} | questions | more


def dream(**more: object) -> list[object]:
    question = {"question": "What is it?", "choice": ["a cat", "a dog", "a cow"], "answer": "a dog"} | more
    return [["M: Look!", "W: A dog."], [question], "5-510"]


STORY = ("mc1", "Author: A", "It rained.\\newlineAnn sang.")
ASKED = ("one: Who sang?", "Eve", "Ann", "Bob", "Joe")


def mctest(*questions: tuple[str, ...]) -> str:
    return "\t".join((*STORY, *(cell for question in questions for cell in question))) + "\n"


def test_race(tmp_path: Path) -> None:
    corpus = Reading(tmp_path, "choice", "1.txt").read(json.dumps(race()))
    first, second = corpus
    assert [part.text for part in first.parts] == ["Ann has a dog.", "What has Ann?", "a cat", "a dog"]
    assert [(item.label, item.id) for item in corpus] == [("1", "high1.txt-1"), ("0", "high1.txt-2")]
    assert first.kind == "choice" and len(first.inputs) == 2
    assert second.source == "high1.txt"
    assert_surfaces(corpus)


def test_race_in_folders_and_lines(tmp_path: Path) -> None:
    sample = Reading(tmp_path / "race", "choice", "high/2.txt")
    sample.write(json.dumps(race(id="b")))
    sample.write(json.dumps(race(id="a")), "high/1.txt")
    assert [item.source for item in read(tmp_path / "race")] == ["a", "a", "b", "b"]
    single = {"example_id": "x", "article": "A b.", "question": "C?", "options": ["d", "e"], "answer": "B"}
    lines = Reading(tmp_path, "choice", "a.jsonl").read(f"{json.dumps(single)}\n{json.dumps(race())}\n")
    assert (lines[0].id, lines[0].label) == ("x-1", "1")
    assert len(lines) == 3


def test_dream(tmp_path: Path) -> None:
    sample = Reading(tmp_path, "choice", "dev.json")
    (item,) = corpus = sample.read(json.dumps([dream()], indent=2))
    assert item.parts[0].text == "M: Look!\nW: A dog."
    assert (item.label, item.id, len(item.parts)) == ("1", "5-510-1", 5)
    assert read(sample.path).format == "choice"
    assert_surfaces(corpus)


def test_mctest(tmp_path: Path) -> None:
    sample = Reading(tmp_path, "choice", "mc160.dev.tsv")
    sample.write("B\tA\tC\tD\n", "mc160.dev.ans")
    corpus = sample.read(mctest(ASKED, ASKED, ASKED, ASKED))
    assert [item.label for item in corpus] == ["1", "0", "2", "3"]
    assert corpus[0].parts[0].text == "It rained.\nAnn sang."
    assert corpus[0].parts[1].text == "Who sang?"
    assert [item.id for item in corpus] == ["mc1-1", "mc1-2", "mc1-3", "mc1-4"]
    assert read(sample.path).format == "choice"


def test_mctest_needs_its_answers(tmp_path: Path) -> None:
    sample = Reading(tmp_path, "choice", "mc160.dev.tsv")
    text = mctest(ASKED, ASKED, ASKED, ASKED)
    sample.refused(text, "mc160.dev.ans")
    sample.write("B\tA\tC\tD\nB\tA\tC\n", "mc160.dev.ans")
    sample.bad(text + text, "answer is no option", line=2, kept=4)
    sample.bad(text + mctest(ASKED), "wrong column count", line=2, kept=4)
    sample.write("B\tA\tC\tD\nB\tA\tC\tD\n", "mc160.dev.ans")
    sample.bad(text + text.replace("Bob", ""), "missing text", line=2, kept=4)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (race(answers=["B"]), "missing annotation"),
        (race(article=" "), "wrong value"),
        ({"article": "A b."}, "missing key"),
        ([1], "wrong value"),
        ({"article": "A.", "question": "C?", "options": ["d"], "answer": "B"}, "answer is no option"),
        ({"article": "A.", "question": "C?", "options": ["d", ""], "answer": "A"}, "wrong value"),
        ({"article": "A.", "question": 1, "options": ["d"], "answer": "A"}, "wrong value"),
    ],
)
def test_a_broken_passage_is_refused_or_counted(bad: object, reason: str, tmp_path: Path) -> None:
    good = json.dumps(race())
    Reading(tmp_path, "choice", "a.jsonl").bad(f"{good}\n{json.dumps(bad)}\n{good}\n", reason, line=2, kept=4)


def test_a_broken_question_leaves_the_others(tmp_path: Path) -> None:
    sample = Reading(tmp_path, "choice", "a.json")
    sample.bad(json.dumps(race(answers=["C", "A"])), "answer is no option", kept=1)
    sample.bad(json.dumps([dream(answer="a horse"), dream()]), "answer is no option", kept=1)
    sample.bad(json.dumps([[1, 2], dream()]), "wrong value", kept=1)
    sample.bad(json.dumps([[[], [], "id"], dream()]), "missing text", kept=1)
    sample.bad('{"article":\n oops', "invalid JSON", line=2)


def test_options_that_look_like_letters_are_texts_in_dream_and_letters_in_race(tmp_path: Path) -> None:
    sample = Reading(tmp_path, "choice", "a.json")
    assert sample.read(json.dumps([dream(choice=["B", "A", "C"], answer="A")]))[0].label == "1"
    assert sample.read(json.dumps(race(options=[["B", "A"], ["b", "a"]])))[0].label == "1"
    assert sample.read(json.dumps(race(options=[["B", "A"], ["B", "A"]])))[1].label == "0"


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal):
        read(tmp_path, "choice")
