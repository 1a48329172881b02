"""Map character offsets and word indices in corpus files to words of a sentence."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from types import MappingProxyType

from bertology.corpus.sentence import Sentence, Span, split_at_spaces
from bertology.corpus.text_files import ParseError, parse_int


def word_span(sentence: Sentence, start: int, end: int, label: str = "") -> Span:
    """Return the span of all words that overlap the characters `start` to `end`."""
    first = bisect_right(sentence.offsets, start, key=lambda offsets: offsets[1])
    last = bisect_left(sentence.offsets, end, key=lambda offsets: offsets[0])
    if first >= last:
        problem = f"No word overlaps the characters {start} to {end}"
        raise ParseError("no word at the offset", problem, "the offset of a word", "Correct the offset")
    return Span(first, last, label)


def sentence_with_target(text: str, index_text: str, *, id: str) -> Sentence:
    """Split a tokenised text at spaces and mark the word at an index as `target`."""
    sentence, target = split_at_spaces(text.strip(), id=id), parse_int(index_text.strip())
    if target is None or target >= len(sentence):
        problem = f"The index of the word is {index_text!r}"
        expected = f"a number from 0 to {len(sentence) - 1}" if len(sentence) else "a sentence with the word"
        raise ParseError("index out of range", problem, expected, "Correct the index")
    return replace(sentence, marked_words=MappingProxyType({"target": (target,)}))


def matches_exactly(sentence: Sentence, span: Span, start: int, end: int) -> bool:
    """Whether the span covers exactly the characters `start` to `end`, ignoring white space at either end."""
    text = sentence.text[start:end]
    first = start + len(text) - len(text.lstrip())
    last = end - (len(text) - len(text.rstrip()))
    return sentence.offsets[span.start][0] == first and sentence.offsets[span.end - 1][1] == last


def check_text_at(text: str, start: int, surface: str, description: str) -> None:
    """Raise `ParseError` unless the text contains `surface` at `start`."""
    actual = text[start : start + len(surface)]
    if actual != surface:
        problem = f"{description} is {surface!r}, but the text at its offset {start} is {actual!r}"
        remedy = "Correct the offset (it counts characters from 0, not bytes)"
        raise ParseError("offset does not match the text", problem, "the same text at the offset", remedy)
