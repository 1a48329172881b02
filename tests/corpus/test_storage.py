"""Items through JSON and back, every layer filled, nothing lost."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType

import pytest

from bertology.corpus.corpus import Item
from bertology.corpus.sentence import LAYERS, Frame, Sentence, Span, from_text
from bertology.corpus.storage import item_from_json, item_to_json

FULL = replace(
    from_text("Dogs bark", id="1"),
    document="d",
    lemmas=("dog", "bark"),
    pos=("NOUN", "VERB"),
    xpos=("NNS", "VBP"),
    features=("Number=Plur", "_"),
    heads=(1, -1),
    relations=("nsubj", "root"),
    tags=("B-X", "O"),
    senses=("dog.n.01", None),
    chunks=(Span(0, 1, "NP"),),
    entities=(Span(0, 1, "X"),),
    mentions=(Span(0, 2, "0"), Span(0, 1, "1")),
    answers=(),
    frames=(Frame(1, "bark.01", (Span(0, 1, "ARG0"),)),),
    label="yes",
    marks=MappingProxyType({"target": (1,), "nothing": ()}),
)


def through(item: Item) -> Item:
    return item_from_json(json.loads(json.dumps(item_to_json(item))))


def test_every_layer_survives() -> None:
    assert FULL.layers() == {*LAYERS, "marks"}, "the sample fills every layer"
    item = Item((FULL, FULL), "pair", "entailment", "id", "source")
    assert through(item) == item
    assert through(item).parts[0].layers() == FULL.layers()


@pytest.mark.parametrize("layer", [name for name in LAYERS if name != "label"])
def test_an_empty_layer_is_not_an_absent_one(layer: str) -> None:
    bare = Sentence(words=(), text="", offsets=())
    empty = Sentence(words=(), text="", offsets=(), **{layer: ()})  # pyright: ignore[reportArgumentType]
    assert through(Item((empty,))).parts[0].layers() == {layer}
    assert through(Item((bare,))).parts[0].layers() == frozenset()


def test_text_of_every_script_survives() -> None:
    item = Item((from_text("我们 naïve 😀 \u2028 x"),))
    assert through(item) == item
