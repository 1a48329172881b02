"""Examples survive JSON with all annotations; the text that hashes are computed from does not change."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

import pytest

from bertology.corpus.corpus import STORED_KEYS, Example, example_from_json, example_to_json, hash_text
from bertology.corpus.sentence import ANNOTATIONS, SemanticFrame, Sentence, Span, sentence_from_text

FULL = replace(
    sentence_from_text("Dogs bark", id="1"),
    document="d",
    lemmas=("dog", "bark"),
    pos=("NOUN", "VERB"),
    xpos=("NNS", "VBP"),
    morphology=("Number=Plur", "_"),
    governors=(1, -1),
    relations=("nsubj", "root"),
    tags=("B-X", "O"),
    senses=("dog.n.01", None),
    further_senses=(("frump.n.01", "cad.n.01"), ()),
    chunks=(Span(0, 1, "NP"),),
    entities=(Span(0, 1, "X"),),
    mentions=(Span(0, 2, "0"), Span(0, 1, "1")),
    answer_spans=(),
    frames=(SemanticFrame(1, "bark.01", (Span(0, 1, "ARG0"),)),),
    label="yes",
    marked_words=MappingProxyType({"target": (1,), "nothing": ()}),
    word_labels=MappingProxyType({"mood": ("glad", "")}),
    span_labels=MappingProxyType({"part": (Span(0, 2, "all"),), "empty": ()}),
)


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


def test_the_hashed_text_has_the_stored_keys() -> None:
    """Other keys would change the order of examples in random splits, and with it published numbers."""
    assert set(STORED_KEYS) == {"segments", "morphology", "governors", "answer_spans", "marked_words"}
    data = json.loads(hash_text(Example((FULL,))))
    assert set(data) == {"kind", "parts"}
    assert {"features", "heads", "answers", "marks"} < set(data["parts"][0])


def test_factors_are_hashed_as_the_source_of_an_example_without_source() -> None:
    factors = MappingProxyType({"condition": "A1", "distance": "3"})
    assert json.loads(hash_text(Example((FULL,), factors=factors)))["source"] == "condition=A1;distance=3"
    assert json.loads(hash_text(Example((FULL,), source="agr.4", factors=factors)))["source"] == "agr.4"


def test_labels_by_name_do_not_change_the_order_of_examples() -> None:
    bare = replace(FULL, word_labels=MappingProxyType({}), span_labels=MappingProxyType({}))
    labelled = Example((FULL,), labels=MappingProxyType({"genre": "fiction"}))
    assert hash_text(labelled) == hash_text(Example((bare,)))
