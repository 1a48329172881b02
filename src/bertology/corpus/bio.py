"""Convert BIO, IOB1 and BIOES tags such as B-PER, I-PER, O to spans and back.

| scheme | first tag of a span | next tags | last tag |
|---|---|---|---|
| bio (IOB2) | B | I | I |
| iob1 | I; B only directly after a span with the same label (but accepted anywhere) | I | I |
| bioes (BILOU) | B; S or U for a single word | I | E or L |

A tag that violates the scheme is malformed: I without B is accepted only if the whole file is IOB1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from bertology.corpus.sentence import Sentence, Span
from bertology.corpus.text_files import ParseError

Scheme = Literal["bio", "iob1", "bioes"]
SCHEMES: tuple[Scheme, ...] = ("bio", "iob1", "bioes")
TAG = re.compile(r"O|[BIESLU]-\S+")
_SINGLE, _LAST = frozenset("SU"), frozenset("EL")

SPAN_TAG_ANNOTATIONS = ("entities", "chunks")
TAG_ANNOTATIONS = ("tags", "pos", "entities", "chunks", "xpos", "relations")
"""Annotations that give each word a tag, in order of preference."""


def word_tags(sentence: Sentence, annotation: str) -> tuple[str, ...] | None:
    """Return the tags of the words by one of `TAG_ANNOTATIONS`, None if the sentence lacks it.

    Spans are encoded as BIO tags; where spans overlap, the last one counts.
    """
    values = getattr(sentence, annotation)
    if annotation in SPAN_TAG_ANNOTATIONS and values is not None:
        return encode(values, len(sentence))
    return values


def is_tag(text: str) -> bool:
    """Whether the text is O, or a position letter, a hyphen and a label."""
    return TAG.fullmatch(text) is not None


def detect_scheme(sentences: Iterable[Sequence[str]]) -> Scheme:
    """Return the scheme of the tags; BIO if several schemes fit or none does."""
    starts_with_i = starts_with_b = False
    for tags in sentences:
        previous_tag = "O"
        for tag in tags:
            if tag[:1] in _SINGLE | _LAST:
                return "bioes"
            is_start = previous_tag == "O" or previous_tag[2:] != tag[2:]
            starts_with_i |= tag[:1] == "I" and is_start
            starts_with_b |= tag[:1] == "B" and is_start
            previous_tag = tag
    return "iob1" if starts_with_i and not starts_with_b else "bio"


def decode(tags: Sequence[str], *, scheme: Scheme = "bio", lines: Sequence[int] | None = None) -> tuple[Span, ...]:
    """Convert tags to spans; raise `ParseError` at the first tag that violates the scheme."""
    spans: list[Span] = []
    start: int | None = None
    for index, tag in enumerate(tags):
        line = None if lines is None else lines[index]
        _check_form(tag, scheme, line)
        previous_tag = tags[index - 1] if start is not None else "O"
        if start is not None and not _continues(previous_tag, tag, scheme):
            spans.append(_close_span(start, index, previous_tag, scheme, line))
            start = None
        if tag == "O":
            continue
        if start is None:
            _check_start(tag, scheme, line)
            start = index
        if scheme == "bioes" and tag[0] in _SINGLE | _LAST:
            spans.append(Span(start, index + 1, tag[2:]))
            start = None
    if start is not None:
        spans.append(_close_span(start, len(tags), tags[-1], scheme, None if lines is None else lines[-1]))
    return tuple(spans)


def encode(spans: Iterable[Span], length: int) -> tuple[str, ...]:
    """Convert spans that do not overlap to BIO tags."""
    tags = ["O"] * length
    for span in spans:
        tags[span.start : span.end] = [f"I-{span.label}"] * (span.end - span.start)
        tags[span.start] = f"B-{span.label}"
    return tuple(tags)


def _continues(previous_tag: str, tag: str, scheme: Scheme) -> bool:
    """Whether the tag continues the span of the previous tag."""
    letters = "IEL" if scheme == "bioes" else "I"
    return tag != "O" and tag[0] in letters and tag[2:] == previous_tag[2:]


def _check_form(tag: str, scheme: Scheme, line: int | None) -> None:
    if not is_tag(tag) or (scheme != "bioes" and tag[0] in _SINGLE | _LAST):
        letters = "B-, I-, E-, S-" if scheme == "bioes" else "B-, I-"
        expected = f"O, or one of {letters} and a label (scheme {scheme})"
        remedy = "Correct the tag, or name the scheme with --format-option scheme=NAME"
        raise ParseError("wrong tag", f"{tag!r} is not a tag", expected, remedy, line=line)


def _check_start(tag: str, scheme: Scheme, line: int | None) -> None:
    if tag[0] in ("I" if scheme == "bio" else "IEL" if scheme == "bioes" else ""):
        raise ParseError(
            f"{tag[0]}- without B-",
            f"{tag!r} continues a span that has no beginning",
            f"B-{tag[2:]} at the first word of a span (scheme {scheme})",
            "Correct the tag; if the whole file is IOB1, add --format-option scheme=iob1",
            line=line,
        )


def _close_span(start: int, end: int, last_tag: str, scheme: Scheme, line: int | None) -> Span:
    if scheme == "bioes":
        problem = f"The span that ends in {last_tag!r} has no last word"
        raise ParseError("B- without E-", problem, f"E-{last_tag[2:]} at its last word", "Correct the tag", line=line)
    return Span(start, end, last_tag[2:])
