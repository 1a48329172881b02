"""Multiple choice in the forms of RACE, DREAM and MCTest (lai2017; sun2019; richardson2013).

| form | a file is | answers |
|---|---|---|
| RACE | JSON objects with article, questions, options, answers (one a file, in a folder; or one a line) | letters |
| DREAM | a JSON list of [turns, questions, id], each question with question, choice, answer | the option's text |
| MCTest | TSV: id, author, story, then question and four options, four times | letters in the `.ans` file beside it |

The parts of an item are passage, question and the options; the label is the index of the right option from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.json_values import as_cell, at, keyed, list_at, listed, parse_json, text_at, written
from bertology.corpus.mctest import read_mctest
from bertology.corpus.read import reader
from bertology.corpus.sentence import Sentence
from bertology.corpus.sniff import beginning, files_below, first_lines, suffix
from bertology.corpus.source import Problems, lines, text_of
from bertology.corpus.wording import Words, worded

EXAMPLE = """\
{"id": "1", "article": "Ann has a dog.", "questions": ["What has Ann?"], \
"options": [["a cat", "a dog"]], "answers": ["B"]}"""
LETTERS = "ABCDEFGH"


def recognises(path: Path) -> bool:
    """Whether the file, or a folder's first text, has the keys of RACE or DREAM, or MCTest's columns."""
    first = next(iter(files_below(path, r".*\.(txt|json|jsonl)")), path) if path.is_dir() else path
    head = beginning(first)
    race = all(f'"{key}"' in head for key in ("article", "options"))
    dream = all(f'"{key}"' in head for key in ("question", "choice", "answer"))
    mctest = suffix(path) == ".tsv" and all(line.count("\t") == 22 for line in first_lines(path)) and bool(head)
    return race or dream or mctest


@reader(
    "choice",
    about="multiple choice on a passage: RACE and DREAM JSON, MCTest TSV",
    example=EXAMPLE,
    recognises=recognises,
)
def read_choice(path: Path, problems: Problems, *, words: Words = "text") -> Iterator[Item]:
    """One item a question."""
    if suffix(path) == ".tsv":
        yield from read_mctest(path, problems, words)
        return
    for file in files_below(path, r".*\.(txt|json|jsonl)") if path.is_dir() else [path]:
        for line, passage in _passages(file, problems):
            for index, (question, options, answer) in enumerate(passage.questions):
                unit = (line, (question, options, answer, f"{passage.name}-{index + 1}"))
                yield from parsed(file, problems, [unit], partial(_item, words, passage))


@dataclass(frozen=True, slots=True)
class _Passage:
    """A text and its questions: what is asked, the options, the answer as a letter or as an option's text."""

    name: str
    text: str
    questions: list[tuple[object, object, object]]
    lettered: bool


def _passages(path: Path, problems: Problems) -> Iterator[tuple[int, _Passage]]:
    """The passages of one file: a JSON object, a list, or an object a line."""
    head = first_lines(path)
    if suffix(path) == ".jsonl" or (len(head) > 1 and head[0].startswith("{") and head[0].rstrip().endswith("}")):
        units = ((number, (line, path.stem)) for number, line in lines(path, problems) if line.strip())
        yield from parsed(path, problems, units, _race_line)
        return
    text = text_of(path, problems)
    if not text.strip():
        return
    try:
        value = parse_json(text)
    except Fault as fault:
        fault.report(path, problems, 1)
        return
    if text.lstrip().startswith("["):
        units = ((1, (dialogue, f"[{index}]")) for index, dialogue in enumerate(listed(value, "")))
        yield from parsed(path, problems, units, _dream)
    else:
        yield from parsed(path, problems, [(1, (value, path.stem))], _race)


def _race_line(line: int, unit: tuple[str, str]) -> tuple[int, _Passage]:
    text, name = unit
    return line, _race(line, (parse_json(text, line), f"{name}-{line}"))[1]


def _race(line: int, unit: tuple[object, str]) -> tuple[int, _Passage]:
    value, name = unit
    article = text_at(value, "article", "")
    fields = keyed(value, "")
    name = as_cell(fields.get("id", fields.get("example_id"))) or name
    if "questions" not in fields:
        single = (at(value, "question", ""), at(value, "options", ""), at(value, "answer", ""))
        return line, _Passage(name, article, [single], lettered=True)
    questions, options, answers = (list_at(value, key, "") for key in ("questions", "options", "answers"))
    if not len(questions) == len(options) == len(answers):
        found = f"There are {len(questions)} questions, {len(options)} lists of options and {len(answers)} answers"
        raise Fault("missing annotation", found, "as many of each", "Complete the file")
    return line, _Passage(name, article, list(zip(questions, options, answers, strict=True)), lettered=True)


def _dream(line: int, unit: tuple[object, str]) -> tuple[int, _Passage]:
    value, where = unit
    parts = listed(value, where)
    if len(parts) != 3:
        raise Fault("wrong value", f"{where} has {len(parts)} members", "turns, questions, id", "Correct it")
    turns = [written(turn, f"{where} turn") for turn in listed(parts[0], f"{where} turns")]
    questions = [
        (at(question, "question", where), at(question, "choice", where), at(question, "answer", where))
        for question in listed(parts[1], f"{where} questions")
    ]
    if not turns:
        raise Fault("missing text", f"{where} has no turns", "a dialogue", "Fill it in")
    return line, _Passage(written(parts[2], f"{where} id"), "\n".join(turns), questions, lettered=False)


def _item(words: Words, passage: _Passage, line: int, unit: tuple[object, object, object, str]) -> Item:
    question, options, answer, name = unit
    texts = [written(option, f"{name} option") for option in listed(options, f"{name} options")]
    possible = list(LETTERS[: len(texts)]) if passage.lettered else texts
    label = _right(written(answer, f"{name} answer"), possible, name)
    parts: list[Sentence] = [worded(text, words) for text in (passage.text, written(question, name), *texts)]
    return Item(tuple(parts), "choice", str(label), name, passage.name)


def _right(answer: str, possible: list[str], name: str) -> int:
    """The index of the answer among the possible ones: letters, or the options' texts."""
    if answer not in possible:
        found = f"The answer of {name} is {answer!r}"
        raise Fault("answer is no option", found, f"one of {', '.join(possible)}", "Correct the answer")
    return possible.index(answer)
