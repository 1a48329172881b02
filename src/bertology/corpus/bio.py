"""Tags such as B-PER, I-PER, O to spans and back, in the schemes BIO, IOB1 and BIOES.

| scheme | a span begins with | continues with | ends with |
|---|---|---|---|
| bio (IOB2) | B | I | I |
| iob1 | I; B where needed, right after a span of the same label (and read wherever it stands) | I | I |
| bioes (BILOU) | B; S or U alone | I | E or L |

A tag that its scheme does not allow is a fault: an I without a B is read only where the whole file is IOB1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from bertology.corpus.faults import Fault
from bertology.corpus.sentence import Span

Scheme = Literal["bio", "iob1", "bioes"]
SCHEMES: tuple[Scheme, ...] = ("bio", "iob1", "bioes")
TAG = re.compile(r"O|[BIESLU]-\S+")
_SINGLE, _LAST = frozenset("SU"), frozenset("EL")


def is_tag(text: str) -> bool:
    """Whether the text is O, or a position letter, a hyphen and a label."""
    return TAG.fullmatch(text) is not None


def scheme_of(sentences: Iterable[Sequence[str]]) -> Scheme:
    """The scheme in which these tags are written; BIO where several fit or none does."""
    began_with_i = began_with_b = False
    for tags in sentences:
        before = "O"
        for tag in tags:
            if tag[:1] in _SINGLE | _LAST:
                return "bioes"
            fresh = before == "O" or before[2:] != tag[2:]
            began_with_i |= tag[:1] == "I" and fresh
            began_with_b |= tag[:1] == "B" and fresh
            before = tag
    return "iob1" if began_with_i and not began_with_b else "bio"


def decode(tags: Sequence[str], *, scheme: Scheme = "bio", lines: Sequence[int] | None = None) -> tuple[Span, ...]:
    """The spans that the tags mark; a fault at the first tag that the scheme does not allow there."""
    spans: list[Span] = []
    start: int | None = None
    for index, tag in enumerate(tags):
        line = None if lines is None else lines[index]
        _check_form(tag, scheme, line)
        before = tags[index - 1] if start is not None else "O"
        if start is not None and not _continues(before, tag, scheme):
            spans.append(_closed(start, index, before, scheme, line))
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
        spans.append(_closed(start, len(tags), tags[-1], scheme, None if lines is None else lines[-1]))
    return tuple(spans)


def encode(spans: Iterable[Span], length: int) -> tuple[str, ...]:
    """BIO tags of spans that do not overlap; the inverse of `decode`."""
    tags = ["O"] * length
    for span in spans:
        tags[span.start : span.end] = [f"I-{span.label}"] * (span.end - span.start)
        tags[span.start] = f"B-{span.label}"
    return tuple(tags)


def _continues(before: str, tag: str, scheme: Scheme) -> bool:
    """Whether `tag` carries on the span that is open after `before`."""
    letters = "IEL" if scheme == "bioes" else "I"
    return tag != "O" and tag[0] in letters and tag[2:] == before[2:]


def _check_form(tag: str, scheme: Scheme, line: int | None) -> None:
    if not is_tag(tag) or (scheme != "bioes" and tag[0] in _SINGLE | _LAST):
        letters = "B-, I-, E-, S-" if scheme == "bioes" else "B-, I-"
        expected = f"O or one of {letters} and a label (scheme {scheme})"
        raise Fault("wrong tag", f"{tag!r} is no tag", expected, "Correct it, or name the scheme", line=line)


def _check_start(tag: str, scheme: Scheme, line: int | None) -> None:
    if tag[0] in ("I" if scheme == "bio" else "IEL" if scheme == "bioes" else ""):
        raise Fault(
            f"{tag[0]}- without B-",
            f"{tag!r} continues a span that was never begun",
            f"B-{tag[2:]} at the first word of a span (scheme {scheme})",
            "Correct the tag; where the whole file is IOB1, say so with the option scheme=iob1",
            line=line,
        )


def _closed(start: int, end: int, before: str, scheme: Scheme, line: int | None) -> Span:
    if scheme == "bioes":
        found = f"The span that ends in {before!r} has no last word"
        raise Fault("B- without E-", found, f"E-{before[2:]} at its last word", "Correct the tag", line=line)
    return Span(start, end, before[2:])
