"""A text in other words: words moved, left out, replaced or added, and what was known about those that stay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from bertology.corpus.sentence import Sentence, Span

CARRIED = ("lemmas", "pos", "xpos", "tags")
"""Layers that say something about a word wherever it stands."""
ENDS = frozenset({".", "!", "?", "。", "！", "？"})
CLOSING = frozenset({'"', "'", "”", "’", ")", "]", "''"})
ABBREVIATIONS = frozenset({"mr", "mrs", "ms", "dr", "st", "prof"})
NEW = -1


class Slot(NamedTuple):
    """A word of the new text, and which word of the old one it is or stands for; `NEW` where it is neither."""

    word: str
    source: int = NEW


def slots(sentence: Sentence) -> list[Slot]:
    """The words as they are."""
    return [Slot(word, place) for place, word in enumerate(sentence.words)]


def reworded(sentence: Sentence, wanted: Sequence[Slot]) -> Sentence:
    """The text with these words instead.

    Words that followed each other keep what stood between them; between others is a space. An answer stays one where
    its words stand together; layers of single words go with them, unless a new word has none; the rest is dropped.
    """
    text, offsets = "", list[tuple[int, int]]()
    for place, slot in enumerate(wanted):
        text += _gap(sentence, wanted[place - 1], slot) if place else ""
        offsets.append((len(text), len(text) + len(slot.word)))
        text += slot.word
    sources = [slot.source for slot in wanted]
    layers: dict[str, Any] = {}
    for name in CARRIED:
        values = getattr(sentence, name)
        layers[name] = tuple(values[s] for s in sources) if values is not None and NEW not in sources else None
    answers = None if sentence.answers is None else tuple(_moved(sentence.answers, sources))
    return Sentence(
        words=tuple(slot.word for slot in wanted),
        text=text,
        offsets=tuple(offsets),
        id=sentence.id,
        document=sentence.document,
        answers=answers,
        label=sentence.label,
        **layers,
    )


def of_words(sentence: Sentence, words: Sequence[str]) -> Sentence:
    """Other words altogether, a space between them; nothing is known about them."""
    return reworded(replace(sentence, answers=None), [Slot(word) for word in words])


def without_words(sentence: Sentence) -> Sentence:
    """Nothing in place of the text."""
    return reworded(sentence, [])


def sentences_within(sentence: Sentence) -> list[range]:
    """The places of the words of each sentence of a text: up to a full stop or the end of a line."""
    ends: list[int] = []
    for place in range(1, len(sentence)):
        line = "\n" in sentence.text[sentence.offsets[place - 1][1] : sentence.offsets[place][0]]
        if line or _ended(sentence, place):
            ends.append(place)
    return [range(start, end) for start, end in pairwise([0, *ends, len(sentence)])] if len(sentence) else []


def kept_together(sentence: Sentence) -> list[range]:
    """Single words, and the words of each answer as one: what may be moved without losing an answer."""
    inside: list[range] = []
    for span in sorted(sentence.answers or (), key=lambda span: (span.start, span.end)):
        if inside and span.start < inside[-1].stop:
            inside[-1] = range(inside[-1].start, max(inside[-1].stop, span.end))
        else:
            inside.append(range(span.start, span.end))
    taken = {place for some in inside for place in some}
    return sorted([*inside, *(range(p, p + 1) for p in range(len(sentence)) if p not in taken)], key=lambda r: r.start)


def in_answers(sentence: Sentence) -> frozenset[int]:
    """The words of the answers."""
    return frozenset(place for span in sentence.answers or () for place in range(span.start, span.end))


def _gap(sentence: Sentence, before: Slot, after: Slot) -> str:
    if before.source == NEW or after.source != before.source + 1:
        return " "
    return sentence.text[sentence.offsets[before.source][1] : sentence.offsets[after.source][0]]


def _moved(answers: Iterable[Span], sources: list[int]) -> Iterable[Span]:
    where = {source: place for place, source in enumerate(sources) if source != NEW}
    for span in answers:
        found = [where.get(place) for place in range(span.start, span.end)]
        first = found[0] if found else None
        if first is not None and found == list(range(first, first + len(found))):
            yield replace(span, start=first, end=first + len(found))


def _ended(sentence: Sentence, place: int) -> bool:
    """Whether a sentence ends before this word: after a full stop and the brackets or quotes that close with it."""
    words = sentence.words
    if words[place] in ENDS or _closes(sentence, place):
        return False
    last = place - 1
    while last > 0 and _closes(sentence, last):
        last -= 1
    return words[last] in ENDS and not (words[last] == "." and last > 0 and words[last - 1].lower() in ABBREVIATIONS)


def _closes(sentence: Sentence, place: int) -> bool:
    """A bracket or quote that stands at the word before it; after a blank it opens."""
    return sentence.words[place] in CLOSING and sentence.offsets[place - 1][1] == sentence.offsets[place][0]
