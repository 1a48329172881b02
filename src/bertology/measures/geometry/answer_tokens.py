"""The pieces of a question with its passage: question, answer, supporting fact, entities (vanaken2019).

The supporting fact is the sentence of the passage with the answer in it, as in VisBERT. Entities are those annotated;
where there are none, runs of capitalised words inside a sentence stand for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.sentence import Sentence, Span
from bertology.recording.entry import Entry

Flags = NDArray[np.bool_]
Places = NDArray[np.intp]

ENDS = frozenset(".!?")
CLASSES = ("answer", "question", "supporting fact", "entity", "other")


@dataclass(frozen=True)
class AnswerTokens:
    """One input of a question and a passage with its answer; places are those of pieces."""

    entry: Entry

    @classmethod
    def of(cls, entry: Entry) -> AnswerTokens | None:
        """None where the input is not a question with a passage, or nothing of the answer is shown."""
        parts = entry.input.parts
        if len(parts) != 2 or not parts[1].answers:
            return None
        made = cls(entry)
        return made if len(made.answer) and len(made.question) else None

    @cached_property
    def ordinary(self) -> Places:
        """All pieces but special ones."""
        return np.flatnonzero(self.entry.pieces.part >= 0)

    @cached_property
    def question(self) -> Places:
        """The pieces of the question."""
        return np.flatnonzero(self.entry.pieces.part == 0)

    @cached_property
    def passage(self) -> Places:
        """The pieces of the passage."""
        return np.flatnonzero(self.entry.pieces.part == 1)

    @cached_property
    def answer(self) -> Places:
        """The pieces of the first answer."""
        return self._pieces(1, self.answered)

    def answer_to(self, other: AnswerTokens) -> Places:
        """The pieces of what answers another question on the same passage; none where the two answers overlap."""
        span = other.answered
        apart = span.end <= self.answered.start or self.answered.end <= span.start
        return self._pieces(1, span) if apart else np.zeros(0, np.intp)

    @cached_property
    def sentences(self) -> list[Places]:
        """The pieces of each sentence of the passage, answers left out; only sentences that are shown."""
        found = [np.setdiff1d(self._pieces(1, span), self.answer) for span in sentence_spans(self._passage)]
        return [places for places in found if len(places)]

    @cached_property
    def fact(self) -> Places:
        """The rest of the sentence that the answer begins in."""
        start = self.answered.start
        spans = [span for span in sentence_spans(self._passage) if span.start <= start < span.end]
        return np.setdiff1d(self._pieces(1, spans[0]), self.answer) if spans else np.zeros(0, np.intp)

    @cached_property
    def entities(self) -> list[Places]:
        """The pieces of each entity that is mentioned at least twice, in the question or the passage."""
        mentions: dict[str, list[Places]] = defaultdict(list)
        for part, sentence in enumerate(self.entry.input.parts):
            for span in entity_spans(sentence):
                places = self._pieces(part, span)
                if len(places):
                    mentions[" ".join(sentence.words[span.start : span.end]).lower()].append(places)
        return [np.concatenate(some) for _, some in sorted(mentions.items()) if len(some) > 1]

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """The class of each ordinary piece, the first of `CLASSES` that fits."""
        sets = {
            "answer": self.answer,
            "question": self.question,
            "supporting fact": self.fact,
            "entity": np.concatenate([np.zeros(0, np.intp), *self.entities]),
        }
        return tuple(next((n for n, places in sets.items() if p in places), CLASSES[-1]) for p in self.ordinary)

    @property
    def answered(self) -> Span:
        """The words of the first answer."""
        return (self._passage.answers or (Span(0, 0),))[0]

    @property
    def _passage(self) -> Sentence:
        return self.entry.input.parts[1]

    def _pieces(self, part: int, span: Span) -> Places:
        start = len(self.entry.input.parts[0]) if part else 0
        word = self.entry.pieces.word
        return np.flatnonzero((word >= start + span.start) & (word < start + span.end))


def sentence_spans(text: Sentence) -> Iterator[Span]:
    """The sentences of running text: up to a full stop, question or exclamation mark before a capital or a digit."""
    start = 0
    for place, word in enumerate(text.words):
        following = text.words[place + 1] if place + 1 < len(text) else ""
        if not following or (word in ENDS and not following[0].islower()):
            yield Span(start, place + 1)
            start = place + 1


def entity_spans(text: Sentence) -> Iterator[Span]:
    """The entities annotated, or runs of capitalised words that do not begin a sentence."""
    if text.entities is not None:
        yield from text.entities
        return
    for sentence in sentence_spans(text):
        start = None
        for place in range(sentence.start + 1, sentence.end + 1):
            capital = place < sentence.end and text.words[place][:1].isupper()
            if capital and start is None:
                start = place
            elif not capital and start is not None:
                yield Span(start, place)
                start = None
