"""Annotation lies along the words of all parts of an input."""

from __future__ import annotations

from dataclasses import replace

import planted
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import ROOT, from_text
from bertology.recording.annotation import pieces_of_words, word_heads, word_layer

ONE = replace(from_text("a b"), heads=(1, ROOT), relations=("det", "root"), xpos=("DT", "NN"))
TWO = replace(from_text("c d e"), heads=(ROOT, 0, 1), pos=("X", "Y", "Z"), xpos=("x", "y", "z"))
(ENTRY,) = planted.entries_of(Corpus((Item((ONE, TWO), "pair"),)))
(BARE,) = planted.entries_of(Corpus((Item((from_text("f"), ONE), "pair"),)))


def test_heads_point_into_the_whole_input() -> None:
    assert word_heads(ENTRY) == (1, ROOT, ROOT, 2, 3)
    assert word_heads(BARE) == (None, 2, ROOT)


def test_the_first_layer_that_is_there_counts() -> None:
    assert word_layer(ENTRY, "pos", "xpos") == ("DT", "NN", "X", "Y", "Z")
    assert word_layer(ENTRY, "relations") == ("det", "root", None, None, None)


def test_pieces_by_word() -> None:
    assert pieces_of_words(ENTRY) == {0: [1], 1: [2], 2: [4], 3: [5], 4: [6]}
