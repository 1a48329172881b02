"""Multiple-choice questions on a passage in the formats of RACE, DREAM and MCTest (lai2017; sun2019; richardson2013).

| format | file | answers |
|---|---|---|
| RACE | JSON objects with article, questions, options, answers (one per file, or one per line) | letters |
| DREAM | a JSON list of [turns, questions, id], each question with question, choice, answer | text of the option |
| MCTest | TSV: id, author, story, then four times a question and four options | letters in the `.ans` file |

The segments of an example are passage, question and options; the label is the index of the correct option from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bertology.corpus.example import Example
from bertology.corpus.json_fields import as_list, as_object, as_text, get_list, get_text, get_value, parse_json, to_cell
from bertology.corpus.read import find_files, first_lines, first_lines_text, format_suffix, reader
from bertology.corpus.sentence import WordSplitting, split_words
from bertology.corpus.text_files import (
    ParseError,
    ParseErrorHandler,
    lines,
    non_blank_lines,
    parse_all,
    read_text_file,
)
from bertology.errors import Refusal

EXAMPLE = """\
{"id": "1", "article": "Ann has a dog.", "questions": ["What has Ann?"], \
"options": [["a cat", "a dog"]], "answers": ["B"]}"""
FILES = r".*\.(txt|json|jsonl)"
LETTERS = "ABCDEFGH"
MCTEST_COLUMNS, MCTEST_QUESTIONS, MCTEST_OPTIONS = 23, 4, 4
MCTEST_LETTERS = LETTERS[:MCTEST_OPTIONS]


def matches(path: Path) -> bool:
    """Whether the (first) file has the keys of RACE or DREAM, or the columns of MCTest."""
    text = first_lines_text(next(iter(find_files(path, FILES)), path))
    is_race = all(f'"{key}"' in text for key in ("article", "options"))
    is_dream = all(f'"{key}"' in text for key in ("question", "choice", "answer"))
    has_mctest_columns = all(line.count("\t") == MCTEST_COLUMNS - 1 for line in first_lines(path))
    return is_race or is_dream or (format_suffix(path) == ".tsv" and has_mctest_columns and bool(text))


@reader(
    "multiple_choice",
    description="multiple-choice questions on a passage: RACE and DREAM JSON, MCTest TSV",
    example=EXAMPLE,
    matches=matches,
)
def read_multiple_choice(path: Path, errors: ParseErrorHandler, *, words: WordSplitting = "text") -> Iterator[Example]:
    """Yield one example per question."""
    if format_suffix(path) == ".tsv":
        yield from _read_mctest(path, errors, words)
        return
    for file in find_files(path, FILES):
        for line, passage in _passages(file, errors):
            for number, question in enumerate(passage.questions, start=1):
                unit = (line, (question, f"{passage.name}-{number}"))
                yield from parse_all(file, errors, [unit], partial(_to_example, words, passage))


@dataclass(frozen=True, slots=True)
class _Question:
    """A question, its options and the answer (a letter or the text of an option), not yet validated."""

    text: object
    options: object
    answer: object


@dataclass(frozen=True, slots=True)
class _Passage:
    name: str
    text: str
    questions: list[_Question]
    has_letter_answers: bool


def _passages(path: Path, errors: ParseErrorHandler) -> Iterator[tuple[int, _Passage]]:
    """Yield the passages of a file: a JSON object, a list, or an object per line, with their line numbers."""
    sample_lines = first_lines(path)
    first_line = "".join(sample_lines[:1])
    if format_suffix(path) == ".jsonl" or (
        len(sample_lines) > 1 and first_line.startswith("{") and first_line.rstrip().endswith("}")
    ):
        units = ((number, (line, path.stem)) for number, line in non_blank_lines(path, errors))
        yield from parse_all(path, errors, units, _race_line)
        return
    text = read_text_file(path, errors)
    if not text.strip():
        return
    for value in parse_all(path, errors, [(1, text)], lambda line, text: parse_json(text)):
        if text.lstrip().startswith("["):
            dialogues = ((1, (dialogue, f"[{index}]")) for index, dialogue in enumerate(as_list(value, "")))
            yield from parse_all(path, errors, dialogues, _dream)
        else:
            yield from parse_all(path, errors, [(1, (value, path.stem))], _race)


def _race_line(line: int, unit: tuple[str, str]) -> tuple[int, _Passage]:
    text, name = unit
    return _race(line, (parse_json(text, line), f"{name}-{line}"))


def _race(line: int, unit: tuple[object, str]) -> tuple[int, _Passage]:
    value, default_name = unit
    article = get_text(value, "article", "")
    fields = as_object(value, "")
    name = to_cell(fields.get("id", fields.get("example_id"))) or default_name
    if "questions" not in fields:
        question = _Question(*(get_value(value, key, "") for key in ("question", "options", "answer")))
        return line, _Passage(name, article, [question], has_letter_answers=True)
    texts, options, answers = (get_list(value, key, "") for key in ("questions", "options", "answers"))
    if not len(texts) == len(options) == len(answers):
        problem = f"There are {len(texts)} questions, {len(options)} lists of options and {len(answers)} answers"
        raise ParseError("missing annotation", problem, "the same number of each", "Complete the file")
    questions = [_Question(*fields) for fields in zip(texts, options, answers, strict=True)]
    return line, _Passage(name, article, questions, has_letter_answers=True)


def _dream(line: int, unit: tuple[object, str]) -> tuple[int, _Passage]:
    value, location = unit
    parts = as_list(value, location)
    if len(parts) != 3:
        problem = f"{location} has {len(parts)} elements"
        raise ParseError("wrong value", problem, "turns, questions, id", "Correct it")
    turns = [as_text(turn, f"{location} turn") for turn in as_list(parts[0], f"{location} turns")]
    questions = [
        _Question(*(get_value(question, key, location) for key in ("question", "choice", "answer")))
        for question in as_list(parts[1], f"{location} questions")
    ]
    if not turns:
        raise ParseError("missing text", f"{location} has no turns", "a dialogue", "Fill it in")
    return line, _Passage(as_text(parts[2], f"{location} id"), "\n".join(turns), questions, has_letter_answers=False)


def _to_example(word_splitting: WordSplitting, passage: _Passage, line: int, unit: tuple[_Question, str]) -> Example:
    question, id = unit
    options = [as_text(option, f"{id} option") for option in as_list(question.options, f"{id} options")]
    answers = list(LETTERS[: len(options)]) if passage.has_letter_answers else options
    answer = as_text(question.answer, f"{id} answer")
    if answer not in answers:
        problem = f"The answer of {id} is {answer!r}"
        raise ParseError("answer is not an option", problem, f"one of {', '.join(answers)}", "Correct the answer")
    texts = (passage.text, as_text(question.text, id), *options)
    segments = tuple(split_words(text, word_splitting) for text in texts)
    return Example(segments, "choice", str(answers.index(answer)), id, passage.name)


def _read_mctest(path: Path, errors: ParseErrorHandler, word_splitting: WordSplitting) -> Iterator[Example]:
    """Read a TSV file of MCTest and the answers in the `.ans` file of the same name."""
    answer_file = path.with_suffix(".ans")
    if not answer_file.is_file():
        raise Refusal(
            f"{path} has no answer file ({answer_file.name}) in its directory",
            "the .tsv and .ans files of MCTest in one directory",
            "Add the .ans file of the same name",
        )
    answers = {number: line.split("\t") for number, line in lines(answer_file, errors)}
    units = ((number, (line, answers.get(number, []))) for number, line in non_blank_lines(path, errors))
    for examples in parse_all(path, errors, units, partial(_story_examples, word_splitting)):
        yield from examples


def _story_examples(word_splitting: WordSplitting, line: int, unit: tuple[str, list[str]]) -> list[Example]:
    cells = [cell.replace("\\newline", "\n").replace("\\tab", "\t").strip() for cell in unit[0].split("\t")]
    answers = [letter.strip() for letter in unit[1]]
    if len(cells) != MCTEST_COLUMNS:
        expected = f"{MCTEST_COLUMNS}: id, author, story, and four times a question and four options"
        raise ParseError("wrong column count", f"The line has {len(cells)} columns", expected, "Correct the line")
    if len(answers) != MCTEST_QUESTIONS or any(answer not in list(MCTEST_LETTERS) for answer in answers):
        problem = f"The answers to this line are {' '.join(answers)!r}"
        expected = "four letters from A to D in the same line"
        raise ParseError("answer is not an option", problem, expected, "Correct the .ans file")
    if not all(cells[2:]):
        raise ParseError("missing text", "A story, question or option is empty", "text in every column", "Fill it in")
    name, story = cells[0], split_words(cells[2], word_splitting)
    examples: list[Example] = []
    for index, letter in enumerate(answers):
        column = 3 + index * (MCTEST_OPTIONS + 1)
        question = cells[column].removeprefix("one: ").removeprefix("multiple: ")
        texts = (question, *cells[column + 1 : column + 1 + MCTEST_OPTIONS])
        segments = (story, *(split_words(text, word_splitting) for text in texts))
        examples.append(Example(segments, "choice", str(LETTERS.index(letter)), f"{name}-{index + 1}", name))
    return examples
