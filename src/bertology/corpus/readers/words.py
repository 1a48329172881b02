"""Words with labels: a TSV or CSV with a header and one word per line, or JSON lines with lists of words and of labels.

In a table, the column of words is called word, token or form (or named by the option `words`); every other column is a
word label under its own name (`--label NAME`). Blank lines separate sentences, or a column that numbers them
(sentence, sentence_id, sent_id, sentence #; an empty cell continues the sentence). In JSON lines, lists with one value
per word are word labels, lists of [start, end, label] are span labels, and other values are labels of the sentence.
Columns of BIO tags also give spans, and columns named pos, xpos, lemma, tag, ner or chunk also that annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from bertology.corpus.example import Example
from bertology.corpus.json_fields import as_object, parse_json
from bertology.corpus.read import first_lines, format_suffix, reader
from bertology.corpus.rows import Row, find_columns, parse_rows
from bertology.corpus.tabular_files import (
    JSON_SUFFIXES,
    N_SAMPLE_ROWS,
    TABLE_SUFFIXES,
    WORDS,
    is_word_table,
    split_cells,
)
from bertology.corpus.text_files import NumberedLines, ParseError, ParseErrorHandler, group_lines, lines, parse_all
from bertology.errors import Refusal

SENTENCE_COLUMNS = ("sentence", "sentence_id", "sent_id", "sentence #", "sentence_number")
EXAMPLE = """\
word	pos	ner
Ann	PROPN	B-PER
sings	VERB	O"""


def matches(path: Path) -> bool:
    """Whether the header names words and labels of single words, or the first JSON line has lists of words."""
    sample_lines = first_lines(path)
    if not sample_lines or format_suffix(path) not in TABLE_SUFFIXES:
        return False
    if _is_json(path):
        try:
            row = as_object(parse_json(sample_lines[0]), "")
        except ParseError:
            return False
        return any(name.lower() in WORDS and isinstance(value, list) for name, value in row.items())
    return is_word_table(path)


@reader(
    "words",
    description="words with labels: a table with a header and one word per line, or JSON lines with lists",
    example=EXAMPLE,
    suffixes=(".tsv", ".csv", ".jsonl"),
    matches=matches,
)
def read_words(path: Path, errors: ParseErrorHandler, *, words: str = "", sentence: str = "") -> Iterator[Example]:
    """Yield one example per sentence, with the number of its first line as id."""
    if _is_json(path):
        non_blank = ((number, line) for number, line in lines(path, errors) if line.strip())
        rows = parse_all(path, errors, non_blank, _json_row)
    else:
        rows = _sentence_rows(path, errors, words, sentence)
        words = "words"
    sample = list(islice(rows, N_SAMPLE_ROWS))
    if sample:
        columns = find_columns([row for _, row in sample], words=words)
        yield from parse_rows(chain(sample, rows), columns, path, errors)


def _is_json(path: Path) -> bool:
    return format_suffix(path) in JSON_SUFFIXES or "".join(first_lines(path)[:1]).startswith("{")


def _json_row(line: int, text: str) -> tuple[int, Row]:
    return line, as_object(parse_json(text, line), "The line")


def _sentence_rows(path: Path, errors: ParseErrorHandler, words: str, sentence: str) -> Iterator[tuple[int, Row]]:
    """Yield the lists of words and labels of each sentence, with the number of its first line."""
    groups = group_lines(lines(path, errors))
    first = next(groups, None)
    if first is None:
        return
    header = split_cells(first[0][1], path)
    lower = [name.lower() for name in header]
    word_column = _find_column(header, words, WORDS, path, "words")
    numbered = sentence or any(name in SENTENCE_COLUMNS for name in lower)
    sentence_column = _find_column(header, sentence, SENTENCE_COLUMNS, path, "sentence") if numbered else None
    names = {index: name for index, name in enumerate(header) if index not in (word_column, sentence_column)}

    def parse(line: int, group: NumberedLines) -> tuple[int, Row]:
        rows: list[list[str]] = []
        for number, text in group:
            cells = split_cells(text, path)
            if len(cells) != len(header):
                problem, expected = f"The line has {len(cells)} columns", f"{len(header)} as in the header"
                raise ParseError("wrong column count", problem, expected, "Correct the line", line=number)
            rows.append(cells)
        labels = {name: [row[index] for row in rows] for index, name in names.items()}
        return line, {"words": [row[word_column] for row in rows], **labels}

    sentences = chain([first[1:]] if first[1:] else [], groups)
    if sentence_column is not None:
        sentences = _split_at_numbers(sentences, path, sentence_column)
    yield from parse_all(path, errors, ((group[0][0], group) for group in sentences), parse)


def _split_at_numbers(groups: Iterable[NumberedLines], path: Path, column: int) -> Iterator[NumberedLines]:
    """Split runs of lines where the number of the sentence changes; an empty cell continues the sentence."""
    for group in groups:
        current: NumberedLines = []
        number = ""
        for line in group:
            cells = split_cells(line[1], path)
            cell = cells[column] if column < len(cells) else ""
            if current and cell not in ("", number):
                yield current
                current = []
            number = cell or number
            current.append(line)
        yield current


def _find_column(header: list[str], option: str, candidates: Iterable[str], path: Path, role: str) -> int:
    names = [name.lower() for name in header]
    column_names = [option.lower()] if option else list(candidates)
    for name in column_names:
        if name in names:
            return names.index(name)
    raise Refusal(
        f"{path} has no column {option!r} of {role}" if option else f"{path} has no column of {role}",
        f"one of: {', '.join(header)}",
        f"Name the column with --format-option {role}=NAME",
    )
