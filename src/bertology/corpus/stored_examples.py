"""Examples as recordings store them: one JSON object a line, checked by a schema and then against each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NotRequired

from pydantic import ConfigDict, TypeAdapter, with_config
from typing_extensions import TypedDict

from bertology.corpus.example import Example, ExampleKind
from bertology.corpus.example_json import example_from_json, sentence_from_json
from bertology.corpus.sentence import ROOT, SPAN_ANNOTATIONS, WORD_ANNOTATIONS, Sentence, Span

StoredSpan = tuple[int, int, str]
N_SEGMENTS: dict[ExampleKind, tuple[int, int]] = {
    "sentence": (1, 1), "pair": (2, 2), "question": (2, 2), "minimal_pair": (2, 2), "choice": (3, 1000),
}  # fmt: skip
"""The lowest and highest number of segments of each kind of example."""


class StoredFrame(TypedDict):
    """A semantic frame."""

    predicate: int
    sense: str
    arguments: list[StoredSpan]


@with_config(ConfigDict(extra="forbid"))
class StoredSentence(TypedDict):
    """A sentence under the keys of `STORED_KEYS`."""

    words: list[str]
    text: str
    offsets: list[tuple[int, int]]
    id: NotRequired[str]
    document: NotRequired[str]
    lemmas: NotRequired[list[str]]
    pos: NotRequired[list[str]]
    xpos: NotRequired[list[str]]
    features: NotRequired[list[str]]
    heads: NotRequired[list[int]]
    relations: NotRequired[list[str]]
    tags: NotRequired[list[str]]
    senses: NotRequired[list[str | None]]
    further_senses: NotRequired[list[list[str]]]
    chunks: NotRequired[list[StoredSpan]]
    entities: NotRequired[list[StoredSpan]]
    mentions: NotRequired[list[StoredSpan]]
    answers: NotRequired[list[StoredSpan]]
    frames: NotRequired[list[StoredFrame]]
    label: NotRequired[str]
    marks: NotRequired[dict[str, list[int]]]
    word_labels: NotRequired[dict[str, list[str]]]
    span_labels: NotRequired[dict[str, list[StoredSpan]]]


@with_config(ConfigDict(extra="forbid"))
class StoredExample(TypedDict):
    """An example."""

    parts: list[StoredSentence]
    kind: ExampleKind
    label: NotRequired[str]
    id: NotRequired[str]
    source: NotRequired[str]
    factors: NotRequired[dict[str, str]]
    labels: NotRequired[dict[str, str]]


_EXAMPLE = TypeAdapter(StoredExample)


def parse_example(line: bytes) -> Example:
    """The example in a line; a `ValueError` if the line is another object, or contradicts itself."""
    stored = _EXAMPLE.validate_json(line, strict=True)
    example = example_from_json(dict(stored))
    check_example(example)
    return example


def parse_sentence(stored: StoredSentence) -> Sentence:
    """A sentence whose types were checked; a `ValueError` if it contradicts itself."""
    sentence = sentence_from_json(dict(stored))
    check_sentence(sentence)
    return sentence


def check_example(example: Example) -> None:
    """Raise a `ValueError` for an example whose parts do not fit together."""
    if example.kind not in N_SEGMENTS:
        raise ValueError(f"the kind {example.kind!r} is none of {', '.join(N_SEGMENTS)}")
    lowest, highest = N_SEGMENTS[example.kind]
    if not lowest <= len(example.segments) <= highest:
        raise ValueError(f"an example of kind {example.kind} has {len(example.segments)} segments")
    for segment in example.segments:
        check_sentence(segment)


def check_sentence(sentence: Sentence) -> None:
    """Raise a `ValueError` for offsets outside of the text, annotations of another length, or words not there."""
    length, n_characters = len(sentence.words), len(sentence.text)
    if len(sentence.offsets) != length or any(not 0 <= a <= b <= n_characters for a, b in sentence.offsets):
        raise ValueError("the offsets do not fit the words and the text")
    by_word: dict[str, Sequence[object]] = {
        name: getattr(sentence, name) for name in WORD_ANNOTATIONS if getattr(sentence, name) is not None
    }
    for name, values in {**by_word, **sentence.word_labels}.items():
        if len(values) != length:
            raise ValueError(f"{length} words have {len(values)} {name}")
    spans = [span for name in SPAN_ANNOTATIONS for span in getattr(sentence, name) or ()]
    spans += [span for labelled in sentence.span_labels.values() for span in labelled]
    spans += [argument for frame in sentence.frames or () for argument in frame.arguments]
    _check_spans(spans, length)
    marked = [word for words in sentence.marked_words.values() for word in words]
    if any(not 0 <= word < length for word in [*marked, *(frame.predicate for frame in sentence.frames or ())]):
        raise ValueError("a marked word or a predicate is none of the words")
    if sentence.governors is not None:
        _check_governors(sentence.governors)


def _check_spans(spans: Iterable[Span], length: int) -> None:
    for span in spans:
        if not 0 <= span.start < span.end <= length:
            raise ValueError(f"the span from {span.start} to {span.end} is not within {length} words")


def _check_governors(governors: Sequence[int]) -> None:
    """Refuse governors that are no words, and words that govern themselves over any path."""
    if any(not ROOT <= governor < len(governors) for governor in governors):
        raise ValueError("a governor is none of the words")
    reaches_root: set[int] = {ROOT}
    for first in range(len(governors)):
        path: dict[int, None] = {}
        word = first
        while word not in reaches_root:
            if word in path:
                raise ValueError("the governors form a cycle")
            path[word] = None
            word = governors[word]
        reaches_root.update(path)
