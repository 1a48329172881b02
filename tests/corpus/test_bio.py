"""Tags to spans and back: planted spans come back, and what a scheme forbids is a fault."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.corpus.checks import DETERMINED

from bertology.corpus.bio import Scheme, decode, encode, scheme_of
from bertology.corpus.faults import Fault
from bertology.corpus.sentence import Span


@st.composite
def planted(draw: st.DrawFn) -> tuple[tuple[Span, ...], int]:
    """Spans that do not overlap, some touching, and the number of words."""
    spans: list[Span] = []
    position = 0
    for _ in range(draw(st.integers(0, 5))):
        start = position + draw(st.integers(0, 2))
        position = start + draw(st.integers(1, 3))
        spans.append(Span(start, position, draw(st.sampled_from(["PER", "B-X", "creative-work"]))))
    return tuple(spans), position + draw(st.integers(0, 2))


def written(spans: tuple[Span, ...], length: int, scheme: Scheme) -> list[str]:
    """The same spans in a scheme, independently of `encode`."""
    tags = ["O"] * length
    for index, span in enumerate(spans):
        after_same = index > 0 and spans[index - 1].end == span.start and spans[index - 1].label == span.label
        for word in range(span.start, span.end):
            first, last = word == span.start, word == span.end - 1
            letter = {
                "bio": "B" if first else "I",
                "iob1": "B" if first and after_same else "I",
                "bioes": "S" if first and last else "B" if first else "E" if last else "I",
            }[scheme]
            tags[word] = f"{letter}-{span.label}"
    return tags


@pytest.mark.parametrize("scheme", ["bio", "iob1", "bioes"])
def test_planted_spans_come_back(scheme: Scheme) -> None:
    @DETERMINED
    @given(planted())
    def holds(case: tuple[tuple[Span, ...], int]) -> None:
        spans, length = case
        tags = written(spans, length, scheme)
        assert decode(tags, scheme=scheme) == spans
        assert decode(tags, scheme=scheme_of([tags])) == spans, "the scheme found reads the same"
        assert decode(encode(spans, length)) == spans

    holds()


@pytest.mark.parametrize(
    ("tags", "scheme", "reason"),
    [
        (["I-X"], "bio", "I- without B-"),
        (["B-X", "I-Y"], "bio", "I- without B-"),
        (["B-X", "O", "I-X"], "bio", "I- without B-"),
        (["S-X"], "bio", "wrong tag"),
        (["E-X"], "iob1", "wrong tag"),
        (["B-"], "bio", "wrong tag"),
        (["b-X"], "bio", "wrong tag"),
        ([""], "bio", "wrong tag"),
        (["I-X"], "bioes", "I- without B-"),
        (["E-X"], "bioes", "E- without B-"),
        (["B-X", "O"], "bioes", "B- without E-"),
        (["B-X"], "bioes", "B- without E-"),
        (["B-X", "S-X"], "bioes", "B- without E-"),
    ],
)
def test_what_a_scheme_forbids_is_a_fault(tags: list[str], scheme: Scheme, reason: str) -> None:
    with pytest.raises(Fault) as caught:
        decode(tags, scheme=scheme, lines=range(10, 10 + len(tags)))
    assert caught.value.reason == reason
    assert caught.value.line in range(10, 10 + len(tags))


def test_a_mixture_is_taken_for_bio() -> None:
    assert scheme_of([["B-X", "O", "I-X"]]) == "bio"
    assert scheme_of([]) == "bio"
    assert scheme_of([["I-X", "B-X"]]) == "iob1"
