"""WinoBias: sentences with a pronoun and the occupation it refers to in brackets (zhao2018).

`1 [The developer] argued with the designer because [she] was late.` All phrases in brackets form one cluster; marked
words are `pronoun` and `antecedent`. The number before the sentence is the id; number and brackets are not part of the
text. All files of a directory are read; the source of an example is the name of its file, which contains whether the
sentence is pro- or anti-stereotypical.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from bertology.corpus.character_spans import word_span
from bertology.corpus.example import Example
from bertology.corpus.phrase_spaces import split_word_list
from bertology.corpus.read import find_files, first_lines, reader
from bertology.corpus.sentence import Sentence, Span, sentence_from_text
from bertology.corpus.text_files import ParseError, ParseErrorHandler, non_blank_lines, parse_all

FILES = r".*stereotyped.*\.txt(\.\w+)?"
LINE = re.compile(r"(?P<id>\d+)\s+(?P<text>.*\S)\s*")
PRONOUNS = frozenset(
    {"he", "him", "his", "himself", "she", "her", "hers", "herself", "they", "them", "their", "theirs", "themselves"}
)
OCCUPATIONS = frozenset(
    split_word_list(
        "driver supervisor janitor cook mover laborer worker chief developer carpenter manager lawyer farmer "
        "salesperson physician guard analyst mechanic sheriff ceo attendant cashier teacher nurse assistant secretary "
        "auditor cleaner receptionist clerk counselor designer hairdresser writer housekeeper baker accountant editor "
        "librarian tailor"
    )
)
ARTICLES = frozenset({"the", "a", "an"})
EXAMPLE = """\
1 [The developer] argued with the designer because [she] was late.
2 The developer argued with [the designer] because [he] was late."""


def matches(path: Path) -> bool:
    """Whether every line of the (first) file begins with a number and has at least two brackets."""
    sample_lines = first_lines(next(iter(find_files(path, FILES)), path))
    return bool(sample_lines) and all(
        LINE.fullmatch(line) and line.count("[") >= 2 and "]" in line for line in sample_lines
    )


@reader(
    "winobias",
    description="WinoBias: a pronoun and its antecedent in brackets (a file or a directory)",
    example=EXAMPLE,
    matches=matches,
)
def read_winobias(path: Path, errors: ParseErrorHandler) -> Iterator[Example]:
    """Yield one example per line, with the name of the file as source."""
    for file in find_files(path, FILES):
        yield from parse_all(file, errors, non_blank_lines(file, errors), partial(_to_example, file.name))


def unbracketed_occupation(sentence: Sentence) -> Span | None:
    """Return the first occupation that is not the antecedent, with its article; None if there is none."""
    antecedent = sentence.marked_words.get("antecedent", ())
    for word, form in enumerate(sentence.words):
        if form.lower() not in OCCUPATIONS or word in antecedent:
            continue
        start = word
        while start > 0 and word - start < 2 and sentence.words[start].lower() not in ARTICLES:
            start -= 1
        return Span(start if sentence.words[start].lower() in ARTICLES else word, word + 1)
    return None


def _to_example(source: str, line: int, line_text: str) -> Example:
    match = LINE.fullmatch(line_text)
    if match is None:
        problem = "The line does not begin with a number"
        raise ParseError("no number", problem, "a number, a space, a sentence", "Add the number")
    text, brackets = _remove_brackets(match["text"])
    sentence = sentence_from_text(text, id=match["id"])
    spans = [word_span(sentence, start, end, "0") for start, end in brackets]
    is_pronoun = [sentence.words[span.start].lower() in PRONOUNS and span.end - span.start == 1 for span in spans]
    pronouns = [span for span, pronoun in zip(spans, is_pronoun, strict=True) if pronoun]
    antecedents = [span for span, pronoun in zip(spans, is_pronoun, strict=True) if not pronoun]
    if not pronouns or len(antecedents) != 1:
        problem = f"The brackets contain {len(pronouns)} pronouns and {len(antecedents)} other phrases"
        raise ParseError("wrong brackets", problem, "one antecedent and at least one pronoun", "Correct the brackets")
    marked_words = {"pronoun": _word_indices(pronouns), "antecedent": _word_indices(antecedents)}
    sentence = replace(sentence, mentions=tuple(spans), marked_words=MappingProxyType(marked_words))
    return Example((sentence,), id=match["id"], source=source)


def _word_indices(spans: list[Span]) -> tuple[int, ...]:
    return tuple(word for span in spans for word in range(span.start, span.end))


def _remove_brackets(bracketed_text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without brackets, and the offsets of the bracketed parts in it."""
    text: list[str] = []
    offsets: list[tuple[int, int]] = []
    start: int | None = None
    for character in bracketed_text:
        if character == "[" and start is None:
            start = len(text)
        elif character == "]" and start is not None:
            offsets.append((start, len(text)))
            start = None
        elif character in "[]":
            problem = "A bracket is nested, or has no opening bracket"
            raise ParseError("wrong brackets", problem, "[ and ] in alternation", "Correct the brackets")
        else:
            text.append(character)
    if start is not None:
        raise ParseError("wrong brackets", "A bracket is not closed", "] for every [", "Close the bracket")
    return "".join(text), offsets
