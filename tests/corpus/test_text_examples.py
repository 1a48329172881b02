"""Texts become the same examples whether they are read one by one, in slices or by `bertology.corpus`."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from bertology.corpus.from_objects import build_corpus
from bertology.corpus.read import as_corpus
from bertology.corpus.sentence import OffsetArray, sentence_from_text, sentences_from_texts
from bertology.corpus.text_examples import TextExamples

TEXTS = st.lists(
    st.one_of(st.text("ab1_ '’-–\n\t\xa0\u2028.é\u0301你", max_size=12), st.text(max_size=8)), min_size=1, max_size=8
)


@given(TEXTS)
def test_texts_together_are_split_as_each_alone(texts: list[str]) -> None:
    assert sentences_from_texts(texts) == list(map(sentence_from_text, texts))


@given(TEXTS, st.integers(0, 8), st.integers(0, 8))
def test_examples_are_those_of_a_corpus(texts: list[str], start: int, end: int) -> None:
    texts = [f"{text}a" for text in texts]
    expected = build_corpus(texts)
    assert list(as_corpus(texts)) == list(expected)
    assert list(as_corpus(texts)[start:end]) == list(expected[start:end])
    assert [TextExamples(texts)[index] for index in range(len(texts))] == list(expected)
    assert as_corpus(texts).fingerprint == expected.fingerprint


def test_offsets_in_an_array_are_those_in_a_tuple() -> None:
    (sentence,), expected = sentences_from_texts(["Mind the gap."]), sentence_from_text("Mind the gap.")
    assert isinstance(sentence.offsets, OffsetArray)
    assert sentence.offsets == expected.offsets and hash(sentence.offsets) == hash(expected.offsets)
    assert (sentence.offsets[-1], list(sentence.offsets[1:])) == (expected.offsets[-1], list(expected.offsets[1:]))
    assert pickle.loads(pickle.dumps(sentence.offsets)) == expected.offsets and repr(sentence) == repr(expected)


def test_one_long_text_is_not_missed_by_the_estimate_of_words() -> None:
    texts = ["two words"] * 3000
    texts[1234] = "two words " * 5000
    words = TextExamples(texts).estimate_words(1)
    assert len(words) == len(texts)
    assert abs(words[1234] - 10_000) < 1_500 and abs(words[0] - 2) < 0.1
