"""BLiMP: minimal pairs of an acceptable and an unacceptable sentence, one paradigm per file (warstadt2020).

The source of an example is `field/linguistics_term/UID` (`syntax/island_effects/wh_island`), its id `UID-pairID`. All
files of a directory are read. The published data contains pairs of identical sentences; they are counted and skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bertology.corpus.example import Example
from bertology.corpus.json_fields import get_text, get_value, parse_json
from bertology.corpus.read import find_files, first_lines, reader
from bertology.corpus.sentence import WordSplitting, split_words
from bertology.corpus.text_files import ParseError, ParseErrorHandler, non_blank_lines, parse_all

FILES = r".*\.jsonl"
EXAMPLE = """\
{"sentence_good": "Dogs bark.", "sentence_bad": "Dogs barks.", "field": "morphology", \
"linguistics_term": "subject_verb_agreement", "UID": "agreement_1", "pairID": "0"}"""


def matches(path: Path) -> bool:
    """Whether the first line of the (first) file has a key of BLiMP."""
    first = next(iter(find_files(path, FILES)), path)
    return '"sentence_good"' in "".join(first_lines(first)[:1])


@reader(
    "blimp",
    description="BLiMP minimal pairs: JSON lines (a file, or a directory of paradigms)",
    example=EXAMPLE,
    matches=matches,
)
def read_blimp(path: Path, errors: ParseErrorHandler, *, words: WordSplitting = "text") -> Iterator[Example]:
    """Yield one example per pair."""
    for file in find_files(path, FILES):
        parse = partial(_to_example, file, errors, words)
        for example in parse_all(file, errors, non_blank_lines(file, errors), parse):
            if example.segments[0] != example.segments[1]:
                yield example


def _to_example(
    path: Path, errors: ParseErrorHandler, word_splitting: WordSplitting, line: int, line_text: str
) -> Example:
    value = parse_json(line_text, line)
    acceptable, unacceptable = get_text(value, "sentence_good", ""), get_text(value, "sentence_bad", "")
    if acceptable == unacceptable:
        errors.count(path, line, "identical pairs skipped")
    paradigm = get_text(value, "UID", "")
    source = f"{get_text(value, 'field', '')}/{get_text(value, 'linguistics_term', '')}/{paradigm}"
    number = get_value(value, "pairID", "")
    if not isinstance(number, str | int):
        raise ParseError("wrong value", f"pairID is {str(number)[:40]}", "text or a number", "Correct it")
    id = f"{paradigm}-{number}".encode("utf-8", "replace").decode()
    segments = (split_words(acceptable, word_splitting), split_words(unacceptable, word_splitting))
    return Example(segments, "minimal_pair", id=id, source=source)
