"""SQuAD 1 and 2: questions answered by a span of a passage, or unanswerable (rajpurkar2016; rajpurkar2018).

Answers are distinct word spans of the passage. The label is `answerable` or `unanswerable`; an unanswerable question
has no answer spans (plausible answers are ignored). An answer that begins or ends inside a word is extended to the
whole word and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from bertology.corpus.character_spans import check_text_at, matches_exactly, word_span
from bertology.corpus.example import Example
from bertology.corpus.json_fields import as_count, as_object, check_encodable, get_list, get_text, get_value, parse_json
from bertology.corpus.read import first_lines_text, format_suffix, reader
from bertology.corpus.sentence import Sentence, Span, WordSplitting, split_words
from bertology.corpus.text_files import ParseError, ParseErrorHandler, parse_all, read_text_file

EXAMPLE = """\
{"data": [{"title": "Dogs", "paragraphs": [{"context": "Dogs bark.", "qas": [
  {"id": "1", "question": "Who barks?", "answers": [{"text": "Dogs", "answer_start": 0}]}]}]}]}"""


def matches(path: Path) -> bool:
    """Whether a JSON file has the keys of SQuAD at its beginning."""
    return format_suffix(path) == ".json" and all(name in first_lines_text(path) for name in ('"data"', '"paragraphs"'))


@reader(
    "squad",
    description="SQuAD 1 and 2: questions on a passage with answer spans, JSON",
    example=EXAMPLE,
    matches=matches,
)
def read_squad(path: Path, errors: ParseErrorHandler, *, words: WordSplitting = "text") -> Iterator[Example]:
    """Yield one example per question."""
    text = read_text_file(path, errors)
    for articles in parse_all(path, errors, [(None, text)] if text.strip() else [], _articles):
        for paragraphs in parse_all(path, errors, articles, _paragraphs):
            for passage, questions in parse_all(path, errors, paragraphs, partial(_passage, words)):
                yield from parse_all(path, errors, questions, partial(_to_example, path, errors, words, passage))


def _articles(line: None, text: str) -> list[tuple[None, tuple[object, int]]]:
    articles = get_list(parse_json(text), "data", "The file")
    return [(None, (article, index)) for index, article in enumerate(articles)]


def _paragraphs(line: None, unit: tuple[object, int]) -> list[tuple[None, tuple[str, object, str]]]:
    article, index = unit
    location = f"data[{index}]"
    title = check_encodable(str(as_object(article, location).get("title") or index), location)
    paragraphs = enumerate(get_list(article, "paragraphs", location))
    return [(None, (title, paragraph, f"{location}.paragraphs[{n}]")) for n, paragraph in paragraphs]


def _passage(
    word_splitting: WordSplitting, line: None, unit: tuple[str, object, str]
) -> tuple[Sentence, list[tuple[None, tuple[object, str]]]]:
    title, paragraph, location = unit
    passage = replace(split_words(get_text(paragraph, "context", location), word_splitting), document=title)
    questions = enumerate(get_list(paragraph, "qas", location))
    return passage, [(None, (question, f"{location}.qas[{index}]")) for index, question in questions]


def _to_example(
    path: Path,
    errors: ParseErrorHandler,
    word_splitting: WordSplitting,
    passage: Sentence,
    line: None,
    unit: tuple[object, str],
) -> Example:
    value, location = unit
    question = split_words(get_text(value, "question", location), word_splitting)
    id = get_text(value, "id", location) if "id" in as_object(value, location) else location
    answers = get_list(value, "answers", location)
    is_impossible = as_object(value, location).get("is_impossible", False) is True
    if not answers and not is_impossible:
        problem = f"{location} has no answer"
        raise ParseError("missing answer", problem, "an answer, or is_impossible true", "Fill it in")
    spans: list[Span] = []
    for index, answer in enumerate(() if is_impossible else answers):
        span, is_exact = _answer_span(passage, answer, f"{location}.answers[{index}]")
        if span not in spans:
            spans.append(span)
            if not is_exact:
                errors.count(path, line, "answers extended to whole words")
    label = "unanswerable" if is_impossible else "answerable"
    return Example((question, replace(passage, answer_spans=tuple(spans))), "question", label, id, passage.document)


def _answer_span(passage: Sentence, answer: object, location: str) -> tuple[Span, bool]:
    """Return the words of an answer, and whether they are exactly its text."""
    text = get_text(answer, "text", location)
    start = as_count(get_value(answer, "answer_start", location), f"{location}.answer_start")
    check_text_at(passage.text, start, text, location)
    span = word_span(passage, start, start + len(text))
    return span, matches_exactly(passage, span, start, start + len(text))
