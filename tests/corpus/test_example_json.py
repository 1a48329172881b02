"""Examples survive JSON with all annotations."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from tests.corpus.sentences import FULL

from bertology.corpus.example import Example
from bertology.corpus.example_json import example_from_json, example_to_json
from bertology.corpus.sentence import ANNOTATIONS, Sentence, sentence_from_text


def round_trip(example: Example) -> Example:
    return example_from_json(json.loads(json.dumps(example_to_json(example))))


def test_every_annotation_survives() -> None:
    assert FULL.annotations() == {*ANNOTATIONS, "marked_words"}, "the sample has every annotation"
    factors = MappingProxyType({"condition": "A1", "distance": "3"})
    labels = MappingProxyType({"genre": "fiction"})
    example = Example((FULL, FULL), "pair", "entailment", "id", "source", factors, labels)
    assert round_trip(example) == example
    assert round_trip(example).segments[0].annotations() == FULL.annotations()


@pytest.mark.parametrize("annotation", [name for name in ANNOTATIONS if name != "label"])
def test_an_empty_annotation_is_not_absent(annotation: str) -> None:
    bare = Sentence(words=(), text="", offsets=())
    empty = Sentence(words=(), text="", offsets=(), **{annotation: ()})  # pyright: ignore[reportArgumentType]
    assert round_trip(Example((empty,))).segments[0].annotations() == {annotation}
    assert round_trip(Example((bare,))).segments[0].annotations() == frozenset()


def test_text_of_every_script_survives() -> None:
    example = Example((sentence_from_text("我们 naïve 😀 \u2028 x"),))
    assert round_trip(example) == example
