"""From characters to words: which words a stretch of the text covers."""

from __future__ import annotations

from bertology.corpus.faults import Fault
from bertology.corpus.sentence import Sentence, Span


def covering(sentence: Sentence, start: int, end: int, label: str = "") -> Span:
    """The words that the characters `start` to `end` touch, whole words where the stretch cuts into one."""
    touched = [index for index, (a, b) in enumerate(sentence.offsets) if a < end and b > start]
    if not touched:
        found = f"No word stands at the characters {start} to {end}"
        raise Fault("no word at the offset", found, "an offset at a word", "Correct the offset")
    return Span(touched[0], touched[-1] + 1, label)


def is_exact(sentence: Sentence, span: Span, start: int, end: int) -> bool:
    """Whether the span's words begin and end where the stretch does, blanks at its ends aside."""
    stretch = sentence.text[start:end]
    first = start + len(stretch) - len(stretch.lstrip())
    last = end - (len(stretch) - len(stretch.rstrip()))
    return sentence.offsets[span.start][0] == first and sentence.offsets[span.end - 1][1] == last


def check_surface(text: str, start: int, surface: str, what: str) -> None:
    """Raise a fault unless `surface` stands in the text at `start`."""
    there = text[start : start + len(surface)]
    if there != surface:
        found = f"{what} is {surface!r}, and at its offset {start} stands {there!r}"
        remedy = "Correct the offset (it counts characters from 0, not bytes)"
        raise Fault("offset does not match the text", found, "the same text there", remedy)
