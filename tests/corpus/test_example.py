"""Examples: the model inputs that they form."""

from __future__ import annotations

from tests.corpus.sentences import FIRST, SECOND

from bertology.corpus.example import Example, concatenate_segments
from bertology.corpus.sentence import sentence_from_text


def test_model_inputs_by_kind_of_example() -> None:
    segments = tuple(sentence_from_text(text) for text in ("A b.", "C?", "d", "e f"))
    choice = Example(segments, "choice", "0")
    assert [text_input.segments[1].text for text_input in choice.text_inputs] == ["C? d", "C? e f"]
    assert len(Example(segments[:2], "pair").text_inputs) == 1
    assert len(Example(segments[:2], "minimal_pair").text_inputs) == 2
    assert Example(segments[:2], "question").text_inputs[0].words == ("A", "b", ".", "C", "?")


def test_offsets_hold_in_concatenated_texts() -> None:
    sentence = concatenate_segments((FIRST, SECOND))
    assert sentence.text == "Dogs bark. Cats?"
    assert tuple(sentence.text[start:end] for start, end in sentence.offsets) == sentence.words
