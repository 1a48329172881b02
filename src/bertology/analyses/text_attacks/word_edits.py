"""Edit the words of a text: move, remove, replace or add words, keeping the annotations that remain valid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from bertology.corpus.sentence import Sentence, Span

MOVABLE_ANNOTATIONS = ("lemmas", "pos", "xpos", "tags")
"""Annotations of a word that hold wherever the word stands."""
SENTENCE_ENDS = frozenset({".", "!", "?", "。", "！", "？"})
CLOSING_PUNCTUATION = frozenset({'"', "'", "”", "’", ")", "]", "''"})
ABBREVIATIONS = frozenset({"mr", "mrs", "ms", "dr", "st", "prof"})
NO_SOURCE = -1


class EditedWord(NamedTuple):
    """A word of the edited text, and the index of the original word it is or replaces; `NO_SOURCE` for a new word."""

    word: str
    source_index: int = NO_SOURCE


def identity_edits(sentence: Sentence) -> list[EditedWord]:
    """The edits that change nothing."""
    return [EditedWord(word, index) for index, word in enumerate(sentence.words)]


def apply_edits(sentence: Sentence, edits: Sequence[EditedWord]) -> Sentence:
    """The text with the edited words.

    Words that were adjacent keep the characters between them; others are separated by a space. Answer spans are kept if
    their words still stand together, and annotations of single words if there is no new word; others are dropped.
    """
    text, offsets = "", list[tuple[int, int]]()
    for index, edit in enumerate(edits):
        text += _gap(sentence, edits[index - 1], edit) if index else ""
        offsets.append((len(text), len(text) + len(edit.word)))
        text += edit.word
    sources = [edit.source_index for edit in edits]
    annotations: dict[str, Any] = {}
    for name in MOVABLE_ANNOTATIONS:
        values = getattr(sentence, name)
        if values is not None:
            annotations[name] = tuple(values[source] for source in sources) if NO_SOURCE not in sources else None

    word_labels = sentence.word_labels if NO_SOURCE not in sources else {}
    answer_spans = None if sentence.answer_spans is None else tuple(_move_answers(sentence.answer_spans, sources))
    return Sentence(
        words=tuple(edit.word for edit in edits),
        text=text,
        offsets=tuple(offsets),
        id=sentence.id,
        document=sentence.document,
        answer_spans=answer_spans,
        label=sentence.label,
        word_labels={name: tuple(labels[source] for source in sources) for name, labels in word_labels.items()},
        **annotations,
    )


def replace_all_words(sentence: Sentence, words: Sequence[str]) -> Sentence:
    """Other words, separated by spaces, without annotations."""
    return apply_edits(replace(sentence, answer_spans=None), [EditedWord(word) for word in words])


def remove_all_words(sentence: Sentence) -> Sentence:
    """An empty text."""
    return apply_edits(sentence, [])


def sentence_ranges(sentence: Sentence) -> list[range]:
    """The word indices of each sentence of a text; sentences end at a full stop or line break."""
    starts: list[int] = []
    for index in range(1, len(sentence)):
        is_new_line = "\n" in sentence.text[sentence.offsets[index - 1][1] : sentence.offsets[index][0]]
        if is_new_line or _starts_sentence(sentence, index):
            starts.append(index)
    return [range(start, end) for start, end in pairwise([0, *starts, len(sentence)])] if len(sentence) else []


def movable_units(sentence: Sentence) -> list[range]:
    """Word ranges that can be moved without losing an answer: single words, and the words of each answer together."""
    answers: list[range] = []
    for span in sorted(sentence.answer_spans or (), key=lambda span: (span.start, span.end)):
        if answers and span.start < answers[-1].stop:
            answers[-1] = range(answers[-1].start, max(answers[-1].stop, span.end))
        else:
            answers.append(range(span.start, span.end))
    in_answers = {index for answer in answers for index in answer}
    single_words = (range(index, index + 1) for index in range(len(sentence)) if index not in in_answers)
    return sorted([*answers, *single_words], key=lambda unit: unit.start)


def answer_words(sentence: Sentence) -> frozenset[int]:
    """The indices of words in answer spans."""
    return frozenset(index for span in sentence.answer_spans or () for index in range(span.start, span.end))


def _gap(sentence: Sentence, before: EditedWord, after: EditedWord) -> str:
    if before.source_index == NO_SOURCE or after.source_index != before.source_index + 1:
        return " "
    return sentence.text[sentence.offsets[before.source_index][1] : sentence.offsets[after.source_index][0]]


def _move_answers(answers: Iterable[Span], source_indices: list[int]) -> Iterable[Span]:
    """The answer spans at their new indices; spans whose words are no longer adjacent are dropped."""
    new_index = {source: index for index, source in enumerate(source_indices) if source != NO_SOURCE}
    for span in answers:
        indices = [new_index.get(source) for source in range(span.start, span.end)]
        first = indices[0] if indices else None
        if first is not None and indices == list(range(first, first + len(indices))):
            yield replace(span, start=first, end=first + len(indices))


def _starts_sentence(sentence: Sentence, index: int) -> bool:
    """Whether a sentence ends before this word: after a full stop and the brackets or quotes that close with it."""
    words = sentence.words
    if words[index] in SENTENCE_ENDS or _is_closing(sentence, index):
        return False
    last = index - 1
    while last > 0 and _is_closing(sentence, last):
        last -= 1
    return words[last] in SENTENCE_ENDS and not (
        words[last] == "." and last > 0 and words[last - 1].lower() in ABBREVIATIONS
    )


def _is_closing(sentence: Sentence, index: int) -> bool:
    """Whether a word is a closing bracket or quote: one without a space before it."""
    return sentence.words[index] in CLOSING_PUNCTUATION and sentence.offsets[index - 1][1] == sentence.offsets[index][0]
