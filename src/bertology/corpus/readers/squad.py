"""SQuAD 1 and 2: questions on a passage, answered by a stretch of it or not at all (rajpurkar2016; rajpurkar2018).

The answers are spans of words on the passage, each once. The label is `answerable` or `unanswerable`; an unanswerable
question has no answers (its plausible ones are not read). An answer that begins or ends inside a word is widened to
the whole word and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from bertology.corpus.characters import check_surface, covering, is_exact
from bertology.corpus.corpus import Item
from bertology.corpus.faults import Fault, parsed
from bertology.corpus.json_values import at, counted, encodable, keyed, list_at, parse_json, text_at
from bertology.corpus.read import reader
from bertology.corpus.sentence import Sentence, Span
from bertology.corpus.sniff import beginning, suffix
from bertology.corpus.source import Problems, text_of
from bertology.corpus.wording import Words, worded

EXAMPLE = """\
{"data": [{"title": "Dogs", "paragraphs": [{"context": "Dogs bark.", "qas": [
  {"id": "1", "question": "Who barks?", "answers": [{"text": "Dogs", "answer_start": 0}]}]}]}]}"""


def recognises(path: Path) -> bool:
    """Whether a JSON file speaks of paragraphs and their questions near its beginning."""
    return suffix(path) == ".json" and all(name in beginning(path) for name in ('"data"', '"paragraphs"'))


@reader(
    "squad",
    about="questions on a passage with answers in it: SQuAD 1 and 2 JSON",
    example=EXAMPLE,
    recognises=recognises,
)
def read_squad(path: Path, problems: Problems, *, words: Words = "text") -> Iterator[Item]:
    """One item a question."""
    text = text_of(path, problems)
    if not text.strip():
        return
    try:
        articles = list_at(parse_json(text), "data", "The file")
    except Fault as fault:
        fault.report(path, problems)
        return
    for title, paragraph, where in _paragraphs(path, problems, articles):
        yield from _questions(path, problems, words, title, paragraph, where)


def _paragraphs(path: Path, problems: Problems, articles: list[object]) -> Iterator[tuple[str, object, str]]:
    for index, article in enumerate(articles):
        where = f"data[{index}]"
        try:
            title = encodable(str(keyed(article, where).get("title") or index), where)
            paragraphs = list_at(article, "paragraphs", where)
        except Fault as fault:
            fault.report(path, problems)
            continue
        yield from ((title, paragraph, f"{where}.paragraphs[{n}]") for n, paragraph in enumerate(paragraphs))


def _questions(
    path: Path, problems: Problems, words: Words, title: str, paragraph: object, where: str
) -> Iterator[Item]:
    try:
        passage = replace(worded(text_at(paragraph, "context", where), words), document=title)
        questions = list_at(paragraph, "qas", where)
    except Fault as fault:
        fault.report(path, problems)
        return
    units = ((None, (question, f"{where}.qas[{index}]")) for index, question in enumerate(questions))
    yield from parsed(path, problems, units, partial(_item, path, problems, words, passage))


def _item(
    path: Path, problems: Problems, words: Words, passage: Sentence, line: None, unit: tuple[object, str]
) -> Item:
    question, where = unit
    asked = worded(text_at(question, "question", where), words)
    name = text_at(question, "id", where) if "id" in keyed(question, where) else where
    answers = list_at(question, "answers", where)
    impossible = keyed(question, where).get("is_impossible", False) is True
    if not answers and not impossible:
        raise Fault("missing answer", f"{where} has no answer", "an answer, or is_impossible true", "Fill it in")
    spans: list[Span] = []
    for index, answer in enumerate(() if impossible else answers):
        span, exact = _answer(passage, answer, f"{where}.answers[{index}]")
        if span not in spans:
            spans.append(span)
            if not exact:
                problems.note(path, line, "answer widened to whole words")
    label = "unanswerable" if impossible else "answerable"
    return Item((asked, replace(passage, answers=tuple(spans))), "question", label, name, passage.document)


def _answer(passage: Sentence, answer: object, where: str) -> tuple[Span, bool]:
    text = text_at(answer, "text", where)
    start = counted(at(answer, "answer_start", where), f"{where}.answer_start")
    check_surface(passage.text, start, text, where)
    span = covering(passage, start, start + len(text))
    return span, is_exact(passage, span, start, start + len(text))
