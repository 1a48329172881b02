"""Documents as single examples: the sentences of a document and their annotations, merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from types import MappingProxyType
from typing import Any, Literal

from bertology.corpus.example import Example, concatenate_segments
from bertology.corpus.sentence import (
    NO_SPAN_LABELS,
    NO_WORD_LABELS,
    ROOT,
    SPAN_ANNOTATIONS,
    WORD_ANNOTATIONS,
    SemanticFrame,
    Sentence,
    Span,
)

CorpusUnit = Literal["sentence", "document"]
SPARSE_ANNOTATIONS = frozenset({*SPAN_ANNOTATIONS, "frames", "senses", "further_senses"})
"""Annotations that a sentence of an annotated document may lack because it contains nothing to annotate."""


def group_documents(examples: Iterable[Example], unit: CorpusUnit) -> Iterator[Example]:
    """Yield the sentences unchanged, or with the unit `document` one example per run of sentences of a document."""
    if unit == "sentence":
        yield from examples
        return
    for (document, source), group in groupby(examples, key=lambda e: (e.segments[0].document, e.source)):
        if document:
            merged = merge_sentences([example.segments[0] for example in group])
            yield Example((replace(merged, id=document, document=document),), id=document, source=source)
        else:
            yield from group


def merge_sentences(sentences: Sequence[Sentence]) -> Sentence:
    """Join sentences and their annotations into one sentence, with a space between their texts.

    An annotation is kept if all sentences have it; of sparse annotations (spans, frames, senses) one sentence is
    enough, and of labels of words and spans too (words without the label have the label ""). Each tree keeps its root.
    """
    names = (*WORD_ANNOTATIONS, *SPAN_ANNOTATIONS, "frames")
    values: dict[str, list[Any]] = {name: [] for name in names}
    marked_words: dict[str, list[int]] = {}
    start = 0
    for sentence in sentences:
        for name in names:
            annotation = getattr(sentence, name)
            if annotation is not None:
                values[name].extend(_shift_indices(value, name, start) for value in annotation)
            elif name == "senses":
                values[name].extend([None] * len(sentence))
            elif name == "further_senses":
                values[name].extend([()] * len(sentence))
        for role, words in sentence.marked_words.items():
            marked_words.setdefault(role, []).extend(word + start for word in words)
        start += len(sentence)

    def is_kept(name: str) -> bool:
        present = [getattr(sentence, name) is not None for sentence in sentences]
        return any(present) if name in SPARSE_ANNOTATIONS else all(present)

    return replace(
        concatenate_segments(sentences),
        marked_words=MappingProxyType({role: tuple(words) for role, words in marked_words.items()}),
        **_merge_labels(sentences),
        **{name: tuple(values[name]) for name in names if is_kept(name)},
    )


def _merge_labels(sentences: Sequence[Sentence]) -> dict[str, Any]:
    word_names = sorted({name for sentence in sentences for name in sentence.word_labels})
    word_labels = {
        name: tuple(label for s in sentences for label in s.word_labels.get(name, ("",) * len(s)))
        for name in word_names
    }
    span_labels: dict[str, list[Span]] = {}
    start = 0
    for sentence in sentences:
        for name, spans in sentence.span_labels.items():
            span_labels.setdefault(name, []).extend(_shift_indices(span, name, start) for span in spans)
        start += len(sentence)
    return {
        "word_labels": MappingProxyType(word_labels) if word_labels else NO_WORD_LABELS,
        "span_labels": MappingProxyType({name: tuple(spans) for name, spans in span_labels.items()})
        if span_labels
        else NO_SPAN_LABELS,
    }


def _shift_indices(value: Any, annotation: str, start: int) -> Any:
    """Shift the word indices of a governor, span or frame; values of other annotations have none."""
    if annotation == "governors":
        return value if value == ROOT else value + start
    if isinstance(value, Span):
        return replace(value, start=value.start + start, end=value.end + start)
    if isinstance(value, SemanticFrame):
        arguments = tuple(_shift_indices(argument, annotation, start) for argument in value.arguments)
        return replace(value, predicate=value.predicate + start, arguments=arguments)
    return value
