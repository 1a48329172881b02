"""MCTest's tables: a story and four questions a line, the right letters in a file beside it (richardson2013)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.source import Problems, lines
from bertology.corpus.wording import Words, worded
from bertology.errors import Refusal

COLUMNS, QUESTIONS, OPTIONS = 23, 4, 4
LETTERS = "ABCD"


def read_mctest(path: Path, problems: Problems, words: Words) -> Iterator[Item]:
    """One item a question; the answers stand in the file of the same name that ends in `.ans`."""
    key = path.with_suffix(".ans")
    if not key.is_file():
        raise Refusal(
            f"{path} has no answers beside it ({key.name})",
            "MCTest's .tsv and .ans files in one folder",
            "Put the .ans file of the same name beside it",
        )
    answers = {number: line.split("\t") for number, line in lines(key, problems)}
    stories = ((number, line) for number, line in lines(path, problems) if line.strip())
    units = ((number, (line, answers.get(number, []))) for number, line in stories)
    for items in parsed(path, problems, units, partial(_story, words)):
        yield from items


def _story(words: Words, line: int, unit: tuple[str, list[str]]) -> list[Item]:
    cells = [_unescaped(cell) for cell in unit[0].split("\t")]
    answers = [letter.strip() for letter in unit[1]]
    if len(cells) != COLUMNS:
        expected = f"{COLUMNS}: id, author, story, and four times a question and four options"
        raise Fault("wrong column count", f"The line has {len(cells)} columns", expected, "Correct the line")
    if len(answers) != QUESTIONS or any(letter not in LETTERS or len(letter) != 1 for letter in answers):
        found = f"The answers to this line are {' '.join(answers)!r}"
        raise Fault("answer is no option", found, "four letters from A to D in the same line", "Correct the .ans file")
    if not all(cells[2:]):
        raise Fault("missing text", "A story, question or option is empty", "text in every column", "Fill it in")
    name, story = cells[0], worded(cells[2], words)
    items: list[Item] = []
    for index, letter in enumerate(answers):
        first = 3 + index * (OPTIONS + 1)
        question = cells[first].removeprefix("one: ").removeprefix("multiple: ")
        options = tuple(worded(option, words) for option in cells[first + 1 : first + 1 + OPTIONS])
        parts = (story, worded(question, words), *options)
        items.append(Item(parts, "choice", str(LETTERS.index(letter)), f"{name}-{index + 1}", name))
    return items


def _unescaped(cell: str) -> str:
    return cell.replace("\\newline", "\n").replace("\\tab", "\t").strip()
