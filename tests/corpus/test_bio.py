"""BIO tags: spans survive encoding and decoding, and tags that violate a scheme are malformed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.corpus.bio import Scheme, decode, detect_scheme, encode, word_tags
from bertology.corpus.sentence import Span, sentence_from_words
from bertology.corpus.text_files import ParseError


@st.composite
def random_spans(draw: st.DrawFn) -> tuple[tuple[Span, ...], int]:
    """Spans that do not overlap, some of them adjacent, and the number of words."""
    spans: list[Span] = []
    position = 0
    for _ in range(draw(st.integers(0, 5))):
        start = position + draw(st.integers(0, 2))
        position = start + draw(st.integers(1, 3))
        spans.append(Span(start, position, draw(st.sampled_from(["PER", "B-X", "creative-work"]))))
    return tuple(spans), position + draw(st.integers(0, 2))


def expected_tags(spans: tuple[Span, ...], length: int, scheme: Scheme) -> list[str]:
    """The tags of the spans in a scheme, independently of `encode`."""
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
def test_spans_survive_encoding_and_decoding(scheme: Scheme) -> None:
    @given(random_spans())
    def check(case: tuple[tuple[Span, ...], int]) -> None:
        spans, length = case
        tags = expected_tags(spans, length, scheme)
        assert decode(tags, scheme=scheme) == spans
        assert decode(tags, scheme=detect_scheme([tags])) == spans, "the detected scheme gives the same spans"
        assert decode(encode(spans, length)) == spans

    check()


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
def test_a_tag_that_violates_the_scheme_is_malformed(tags: list[str], scheme: Scheme, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        decode(tags, scheme=scheme, lines=range(10, 10 + len(tags)))
    assert caught.value.reason == reason
    assert caught.value.line in range(10, 10 + len(tags))


def test_ambiguous_tags_are_read_as_bio() -> None:
    assert detect_scheme([["B-X", "O", "I-X"]]) == "bio"
    assert detect_scheme([]) == "bio"
    assert detect_scheme([["I-X", "B-X"]]) == "iob1"


def test_word_tags_are_the_annotation_or_bio_tags_of_its_spans() -> None:
    sentence = replace(sentence_from_words(["Ann", "Lee", "sang"]), pos=("PROPN", "PROPN", "VERB"))
    assert word_tags(sentence, "pos") == ("PROPN", "PROPN", "VERB")
    assert word_tags(sentence, "entities") is None
    assert word_tags(replace(sentence, entities=(Span(0, 2, "PER"),)), "entities") == ("B-PER", "I-PER", "O")
