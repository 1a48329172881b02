"""Characters to words: the words that overlap, found without reading the whole sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.corpus.character_spans import word_span
from bertology.corpus.sentence import sentence_from_text
from bertology.corpus.text_files import ParseError

TEXT = "The old  man's dog, which\tbarked."


@given(st.integers(0, len(TEXT)), st.integers(0, len(TEXT)))
def test_a_span_has_all_words_that_overlap_the_characters(start: int, end: int) -> None:
    sentence = sentence_from_text(TEXT)
    words = [index for index, (a, b) in enumerate(sentence.offsets) if a < end and b > start]
    if not words:
        with pytest.raises(ParseError, match="no word at the offset"):
            word_span(sentence, start, end)
    else:
        span = word_span(sentence, start, end, "x")
        assert (span.start, span.end, span.label) == (words[0], words[-1] + 1, "x")
